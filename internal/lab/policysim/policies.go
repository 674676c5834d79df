package policysim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// pace orders hosts by the time from which they may be contacted.
type pace []due

type due struct {
	at   time.Duration
	host int32
}

func (p pace) Len() int           { return len(p) }
func (p pace) Less(i, j int) bool { return p[i].at < p[j].at }
func (p pace) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pace) Push(x any)        { *p = append(*p, x.(due)) }
func (p *pace) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

// take removes the first host if it may be contacted now.
func (p *pace) take(now time.Duration) (int32, bool) {
	if len(*p) == 0 || (*p)[0].at > now {
		return 0, false
	}
	return heap.Pop(p).(due).host, true
}

func (p *pace) put(host int32, at time.Duration) { heap.Push(p, due{at, host}) }

func (p pace) wake() time.Duration {
	if len(p) == 0 {
		return Never
	}
	return p[0].at
}

// hosts is the state of a crawl's hosts that all policies share.
type hosts struct {
	delay   time.Duration
	pace    pace
	due     []time.Duration
	waiting []([Levels + 1]int32) // by priority; [0] is their sum
	bound   []bool                // is in pace, or fetched from
}

func newHosts(c Crawl) hosts {
	return hosts{
		delay:   c.Delay,
		due:     make([]time.Duration, c.Hosts),
		waiting: make([][Levels + 1]int32, c.Hosts),
		bound:   make([]bool, c.Hosts),
	}
}

func (h *hosts) count(u URL, n int32) {
	h.waiting[u.Host][0] += n
	h.waiting[u.Host][u.Priority] += n
}

// best removes a URL of the highest priority of the host.
func (h *hosts) best(host int32) URL {
	for p := uint8(Levels); ; p-- {
		if h.waiting[host][p] > 0 {
			u := URL{host, p}
			h.count(u, -1)
			return u
		}
	}
}

func (h *hosts) bind(host int32) {
	h.bound[host] = true
	h.pace.put(host, h.due[host])
}

func (h *hosts) Wake(time.Duration) time.Duration { return h.pace.wake() }

// timed keeps every host with URLs in a single order by time.
type timed struct{ hosts }

// TimeOrder returns the policy under which a worker is idle only if no host with URLs may be
// contacted: all hosts are in one set, ordered by the time of their next contact. There are no
// priorities, and the number of ready hosts is not limited.
func TimeOrder(c Crawl) Policy { return &timed{newHosts(c)} }

func (p *timed) Add(urls []URL) {
	for _, u := range urls {
		p.count(u, 1)
		if !p.bound[u.Host] {
			p.bind(u.Host)
		}
	}
}

func (p *timed) Next(now time.Duration) (URL, bool) {
	host, ok := p.pace.take(now)
	if !ok {
		return URL{}, false
	}
	return p.best(host), true
}

func (p *timed) Done(now time.Duration, u, found URL) {
	p.due[u.Host] = now + p.delay
	p.bound[u.Host] = p.waiting[u.Host][0] > 0
	if p.bound[u.Host] {
		p.pace.put(u.Host, p.due[u.Host])
	}
	p.Add([]URL{found})
}

// fifo is a queue.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int { return len(q.items) - q.head }
func (q *fifo[T]) push(x T) { q.items = append(q.items, x) }
func (q *fifo[T]) pop() T {
	x := q.items[q.head]
	if q.head++; q.head > 4096 && q.head > len(q.items)/2 {
		q.items = append([]T(nil), q.items[q.head:]...)
		q.head = 0
	}
	return x
}

// front are the front queues, with a selector that picks f with a probability
// proportional to f.
type front struct {
	queues [Levels + 1]fifo[int32]
	rand   *rand.Rand
}

func newFront(c Crawl) front { return front{rand: rand.New(rand.NewPCG(c.Seed, 3))} }

func (f *front) pick() uint8 {
	sum := 0
	for p := range f.queues {
		if f.queues[p].len() > 0 {
			sum += p
		}
	}
	if sum == 0 {
		return 0
	}
	x := f.rand.IntN(sum)
	for p := range f.queues {
		if f.queues[p].len() > 0 {
			if x -= p; x < 0 {
				return uint8(p)
			}
		}
	}
	return 0
}

// Published is Mercator as published: front queues of URLs, and a fixed number of back queues. A
// worker that empties a back queue refills it from the front queues; URLs of hosts that have a back
// queue go to that one.
type Published struct {
	hosts
	front front
	free  int // back queues without a host

	Resident    int // URLs in back queues
	MaxResident int
	Pulls       int // URLs taken from front queues
	Refills     int // back queues filled
}

// NewPublished returns the policy with the given number of back queues.
func NewPublished(c Crawl, backQueues int) *Published {
	return &Published{hosts: newHosts(c), front: newFront(c), free: backQueues}
}

// Add implements Policy.
func (p *Published) Add(urls []URL) {
	for _, u := range urls {
		p.front.queues[u.Priority].push(u.Host)
	}
}

func (p *Published) refill() {
	for p.free > 0 {
		level := p.front.pick()
		if level == 0 {
			return
		}
		u := URL{p.front.queues[level].pop(), level}
		p.Pulls++
		p.count(u, 1)
		p.Resident++
		p.MaxResident = max(p.MaxResident, p.Resident)
		if !p.bound[u.Host] {
			p.bind(u.Host)
			p.free--
			p.Refills++
		}
	}
}

// Next implements Policy.
func (p *Published) Next(now time.Duration) (URL, bool) {
	p.refill()
	host, ok := p.pace.take(now)
	if !ok {
		return URL{}, false
	}
	p.Resident--
	return p.best(host), true
}

// Done implements Policy.
func (p *Published) Done(now time.Duration, u, found URL) {
	p.due[u.Host] = now + p.delay
	if p.waiting[u.Host][0] > 0 {
		p.pace.put(u.Host, p.due[u.Host])
	} else {
		p.bound[u.Host] = false
		p.free++
	}
	p.Add([]URL{found})
}

// fixed has front queues of host tokens and a fixed number of back queues.
type fixed struct {
	hosts
	front   front
	free    int
	quantum int32
	served  []int32
	queued  []uint16 // bit p: the host has a token in front queue p
}

// FixedB returns a policy that differs from the frontier's only in its fixed number of back queues.
func FixedB(c Crawl, backQueues, quantum int) Policy {
	return &fixed{
		hosts: newHosts(c), front: newFront(c), free: backQueues, quantum: int32(quantum),
		served: make([]int32, c.Hosts), queued: make([]uint16, c.Hosts),
	}
}

func (p *fixed) token(host int32, level uint8) {
	if p.queued[host]&(1<<level) == 0 {
		p.queued[host] |= 1 << level
		p.front.queues[level].push(host)
	}
}

func (p *fixed) Add(urls []URL) {
	for _, u := range urls {
		p.count(u, 1)
		if !p.bound[u.Host] {
			p.token(u.Host, u.Priority)
		}
	}
}

func (p *fixed) refill() {
	for p.free > 0 {
		level := p.front.pick()
		if level == 0 {
			return
		}
		host := p.front.queues[level].pop()
		p.queued[host] &^= 1 << level
		if p.bound[host] || p.waiting[host][level] == 0 {
			continue // a stale token
		}
		p.bind(host)
		p.free--
		p.served[host] = 0
	}
}

func (p *fixed) Next(now time.Duration) (URL, bool) {
	p.refill()
	host, ok := p.pace.take(now)
	if !ok {
		return URL{}, false
	}
	p.served[host]++
	return p.best(host), true
}

func (p *fixed) Done(now time.Duration, u, found URL) {
	p.due[u.Host] = now + p.delay
	if w := &p.waiting[u.Host]; w[0] > 0 && p.served[u.Host] < p.quantum {
		p.pace.put(u.Host, p.due[u.Host])
	} else {
		p.bound[u.Host] = false
		p.free++
		for level := uint8(1); level <= Levels; level++ {
			if w[level] > 0 {
				p.token(u.Host, level)
			}
		}
	}
	p.Add([]URL{found})
}
