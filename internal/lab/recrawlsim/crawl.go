// This file crawls a web with a budget according to a policy, and measures how fresh the copy is.

package recrawlsim

import (
	"math/rand/v2"
)

// Policy decides when pages are fetched again. Times are days.
type Policy interface {
	// Done reports the fetch of a page, and returns when the page is due again.
	Done(page int, v Visit) (due float64)
	// Recheck is called when a page is due, and returns when to fetch it.
	Recheck(page int, now float64) (due float64)
	// Early is called before a page is fetched early because nothing else is due, and returns when
	// to fetch it.
	Early(page int, due float64) float64
	// Budget reports a new budget, in fetches per day.
	Budget(perDay float64)
}

// Visit is a fetch.
type Visit struct {
	Now, Last float64 // Last is the time of the fetch before; -1: none
	Changed   bool
	Modified  float64 // Last-Modified; -1: none
}

// Result is the result of a crawl.
type Result struct {
	Start, Score float64 // weighted freshness in the first and the second half
	Fetches      int     // in the second half
	Spam         int     // part of these
	Early        int     // part of these, made early because nothing was due
	Moved        int     // of all, put off at the last moment
	Prices       []float64
}

type run struct {
	*web
	policy Policy
	last   []float64 // of each page: the last fetch; -1: none
	stale  []float64 // when its copy became stale
	worth  float64   // sum of weights
	sum    [2]float64
	Result
}

// Run crawls a scenario. The policy is made for the web by make.
func Run(s Scenario, make func(*Web) Policy) Result {
	w := newWeb(s)
	r := newRun(w)
	r.policy = make(&Web{w})
	r.crawl()
	return r.finish()
}

// Web is what a policy with complete knowledge may see of a web.
type Web struct{ w *web }

func newRun(w *web) *run {
	r := &run{web: w, last: make([]float64, w.Pages), stale: make([]float64, w.Pages)}
	for i := range r.last {
		r.last[i] = -1
		r.worth += w.pages[i].weight
	}
	return r
}

// fetch makes a fetch, and returns its visible result.
func (r *run) fetch(i int, now float64) Visit {
	p := &r.pages[i]
	v := Visit{Now: now, Last: r.last[i], Modified: -1}
	r.account(i, now)
	last, next := r.web.fetch(p, now)
	v.Changed = v.Last < 0 || p.kind == spam || last > v.Last
	switch {
	case r.Lies:
		v.Modified = now - 0.01
	case r.Dates && p.host%2 == 0 && last >= 0:
		v.Modified = last
	}
	r.last[i], r.stale[i] = now, next
	if now >= r.Length/2 {
		r.Fetches++
		if p.kind == spam {
			r.Spam++
		}
	}
	return v
}

// account adds the time for which the page's copy was fresh until now.
func (r *run) account(i int, now float64) {
	from, to := r.last[i], min(now, r.stale[i])
	if from < 0 || to <= from {
		return
	}
	half := r.Length / 2
	w := r.pages[i].weight
	r.sum[0] += w * max(0, min(to, half)-from)
	r.sum[1] += w * max(0, to-max(from, half))
}

func (r *run) finish() Result {
	for i := range r.pages {
		r.account(i, r.Length)
	}
	r.Start, r.Score = r.sum[0]/r.worth/(r.Length/2), r.sum[1]/r.worth/(r.Length/2)
	return r.Result
}

// crawl is a crawler that is never idle: if nothing is due it fetches what is due next.
func (r *run) crawl() {
	q := newQueues(r.Pages, r.Hosts)
	rng := rand.New(rand.NewPCG(r.Seed, 3))
	for _, i := range rng.Perm(r.Pages) {
		q.push(i, r.pages[i].host, 0)
	}
	budget, steps := r.Budget, r.Steps
	r.policy.Budget(budget)
	sampled := 0.
	for now := 0.; now < r.Length; now += 1 / budget {
		if len(steps) > 0 && now >= steps[0].Day {
			budget = r.Budget * steps[0].Times
			steps = steps[1:]
			r.policy.Budget(budget)
		}
		if x, ok := r.policy.(interface{ Price() float64 }); ok && now >= sampled {
			r.Prices = append(r.Prices, x.Price())
			sampled += 1
		}
		q.free(now)
		for i, ok := q.look(now); ok; i, ok = q.look(now) {
			q.push(i, r.pages[i].host, now)
		}
		for tries := 0; ; tries++ {
			i, host, due, ok := q.pop()
			if !ok {
				break
			}
			ask := r.policy.Recheck
			if due > now { // nothing is due
				ask = r.policy.Early
			}
			if later := ask(i, max(now, due)); later > max(now, due) && tries < 1000 {
				r.Moved++
				if due > now {
					q.looks.push(item{due, int32(i)})
				}
				q.push(i, host, later)
				q.back(host)
				continue
			}
			if due > now && now >= r.Length/2 {
				r.Early++
			}
			next := r.policy.Done(i, r.fetch(i, now))
			q.push(i, host, next)
			if r.HostMost > 0 {
				q.waiting.push(item{now + 1/r.HostMost, host})
			} else {
				q.back(host)
			}
			break
		}
	}
}

// queues hold the pages of each host by due time, and hosts by their first page or by the time of
// their next contact.
type queues struct {
	pages   []heap    // of hosts; what is not a page's key is of no account
	key     []float64 // of pages
	out     []bool    // of hosts: popped, or waiting
	ready   heap      // hosts, by the due time of their first page; others are of no account
	waiting heap      // hosts, by when they may be contacted
	looks   heap      // pages that were put off before their time, by that time
}

func newQueues(pages, hosts int) *queues {
	return &queues{pages: make([]heap, hosts), key: make([]float64, pages), out: make([]bool, hosts)}
}

func (q *queues) push(page int, host int32, due float64) {
	q.key[page] = due
	q.pages[host].push(item{due, int32(page)})
	if !q.out[host] {
		q.back(host)
	}
}

// free releases the hosts that may be contacted now.
func (q *queues) free(now float64) {
	for len(q.waiting) > 0 && q.waiting[0].key <= now {
		q.back(q.waiting.pop().id)
	}
}

// look removes a page that must be rechecked, and still waits for a later time.
func (q *queues) look(now float64) (page int, ok bool) {
	for len(q.looks) > 0 && q.looks[0].key <= now {
		if x := q.looks.pop(); q.key[x.id] > now {
			return int(x.id), true
		}
	}
	return 0, false
}

// back puts a host that was popped back, to be contacted at any time.
func (q *queues) back(host int32) {
	q.out[host] = false
	pages := &q.pages[host]
	for len(*pages) > 0 && (*pages)[0].key != q.key[(*pages)[0].id] {
		pages.pop()
	}
	if len(*pages) > 0 {
		q.ready.push(item{(*pages)[0].key, host})
	}
}

// pop removes the first page of all hosts that may be contacted. The caller must put its host back.
func (q *queues) pop() (page int, host int32, due float64, ok bool) {
	for len(q.ready) > 0 {
		r := q.ready.pop()
		if pages := &q.pages[r.id]; !q.out[r.id] && len(*pages) > 0 && (*pages)[0].key == r.key {
			x := pages.pop()
			if x.key != q.key[x.id] {
				q.back(r.id)
				continue
			}
			q.out[r.id] = true
			return int(x.id), r.id, x.key, true
		}
	}
	return 0, 0, 0, false
}

type item struct {
	key float64
	id  int32
}

// heap is a binary heap, least key first.
type heap []item

func (h *heap) push(x item) {
	a := append(*h, x)
	i := len(a) - 1
	for i > 0 && x.key < a[(i-1)/2].key {
		a[i] = a[(i-1)/2]
		i = (i - 1) / 2
	}
	a[i] = x
	*h = a
}

func (h *heap) pop() item {
	a := *h
	top, x := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	i := 0
	for {
		c := 2*i + 1
		if c >= len(a) {
			break
		}
		if c+1 < len(a) && a[c+1].key < a[c].key {
			c++
		}
		if a[c].key >= x.key {
			break
		}
		a[i] = a[c]
		i = c
	}
	if len(a) > 0 {
		a[i] = x
	}
	return top
}
