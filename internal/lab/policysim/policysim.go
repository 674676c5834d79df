// Package policysim runs crawls in virtual time, to compare how busy scheduling policies keep the
// workers.
//
// A crawl has T workers, many URLs waiting at the start, and one new URL found by each fetch. Its
// URLs and the times of its fetches depend only on its seed: the n-th URL and the n-th fetch are
// the same under every policy.
package policysim

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// URL is the part of a URL that matters here.
type URL struct {
	Host     int32
	Priority uint8 // 1 to Levels
}

// Levels is F, the number of priorities.
const Levels = 8

// Never is later than any time.
const Never time.Duration = math.MaxInt64

// Policy chooses the host from which a free worker fetches. Times are since the start of the crawl
// and never decrease.
type Policy interface {
	// Add takes URLs. It is called before anything else.
	Add(urls []URL)
	// Next removes and returns a URL that may be fetched now.
	Next(now time.Duration) (URL, bool)
	// Wake returns when the answer of Next may change without another call.
	Wake(now time.Duration) time.Duration
	// Done ends the fetch of u, which found the URL found.
	Done(now time.Duration, u, found URL)
}

// Crawl is a workload.
type Crawl struct {
	Workers int
	URLs    int           // waiting at the start
	Hosts   int           // from which URLs are drawn
	Zipf    float64       // exponent of their popularity
	Half    bool          // every second URL is of host 0
	Delay   time.Duration // between two fetches from a host
	Length  time.Duration
	Seed    uint64
}

// Result is what came of a crawl.
type Result struct {
	Busy       float64 // share of the workers' time spent on fetches
	Fetched    int
	ByPriority [Levels + 1]int
}

// Stream returns the URLs of the crawl one by one.
func (c Crawl) Stream() func() URL {
	r := rand.New(rand.NewPCG(c.Seed, 1))
	z := rand.NewZipf(r, c.Zipf, 10, uint64(c.Hosts-1))
	n := 0
	return func() URL {
		n++
		u := URL{Host: int32(z.Uint64()), Priority: uint8(1 + r.IntN(Levels))}
		if c.Half && n%2 == 0 {
			u.Host = 0
		}
		return u
	}
}

// MeanFetch is the mean duration of a fetch: 50 ms and an exponential part.
const MeanFetch = 300 * time.Millisecond

// Run runs the crawl. Seen, unless nil, is called after every second of it.
func (c Crawl) Run(p Policy, seen func()) Result {
	found := c.Stream()
	for left := c.URLs; left > 0; {
		batch := make([]URL, min(left, 1000))
		for i := range batch {
			batch[i] = found()
		}
		p.Add(batch)
		left -= len(batch)
	}
	r := rand.New(rand.NewPCG(c.Seed, 2))
	fetch := func() time.Duration {
		return 50*time.Millisecond + time.Duration(r.ExpFloat64()*float64(MeanFetch-50*time.Millisecond))
	}
	var (
		res    Result
		now    time.Duration
		busy   time.Duration
		second = time.Second
		out    ends
	)
	for now < c.Length {
		for len(out) < c.Workers {
			u, ok := p.Next(now)
			if !ok {
				break
			}
			heap.Push(&out, end{now + fetch(), u})
			res.Fetched++
			res.ByPriority[u.Priority]++
		}
		t := c.Length
		if len(out) > 0 {
			t = min(t, out[0].at)
		}
		if len(out) < c.Workers {
			t = min(t, p.Wake(now))
		}
		busy += time.Duration(len(out)) * (t - now)
		for now = t; len(out) > 0 && out[0].at <= now; {
			p.Done(now, heap.Pop(&out).(end).url, found())
		}
		for ; seen != nil && now >= second; second += time.Second {
			seen()
		}
	}
	for len(out) > 0 {
		p.Done(now, heap.Pop(&out).(end).url, found())
	}
	res.Busy = float64(busy) / float64(c.Workers) / float64(c.Length)
	return res
}

// end is when a fetch ends.
type end struct {
	at  time.Duration
	url URL
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
