// These examples show policies: priorities, selectors, tries, visits; and views.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/selector"
)

// The largest hosts, and those that come next.
func ExampleFrontier_Largest() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 30 {
		urls := []frontier.Entry{{URL: fmt.Sprintf("http://big.example/%d", i), Depth: i}}
		if i < 5 {
			urls = append(urls, frontier.Entry{URL: fmt.Sprintf("http://www.big.example/%d", i), Depth: i})
		}
		if i == 29 {
			urls = append(urls, frontier.Entry{URL: "http://small.example/"})
		}
		if _, err := f.Add(ctx, urls...); err != nil {
			log.Fatal(err)
		}
	}
	for _, h := range f.Largest(2) {
		fmt.Println(h.Host, h.Waiting, h.Queues[0].Priority)
	}
	for h := range f.Hosts(frontier.Domain("big.example"), "") { // in domain order
		fmt.Println(h.Host, "of big.example:", h.Reason)
	}
	coming, err := f.Upcoming(ctx, 3, true) // to look up their names ahead
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(coming), "come soon, all of priority", coming[2].Priority)

	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Done(lease, frontier.Outcome{Duration: time.Second}); err != nil {
		log.Fatal(err)
	}
	if coming, err = f.Upcoming(ctx, 3, false); err != nil {
		log.Fatal(err)
	}
	for _, u := range coming {
		fmt.Println("in", max(0, u.Due.Sub(clock.Now())))
	}
	// Output:
	// big.example 30 8
	// www.big.example 5 8
	// big.example of big.example: back queue
	// www.big.example of big.example: back queue
	// 3 come soon, all of priority 8
	// in 0s
	// in 0s
	// in 10s
}

// What waits, page by page, and what became of one URL.
func ExampleFrontier_URLs() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 5 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i)}); err != nil {
			log.Fatal(err)
		}
	}
	after := ""
	for page := 1; ; page++ {
		n := 0
		for u, err := range f.URLs(ctx, frontier.Domain("example"), after) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println("page", page, u.Entry.URL)
			if after = u.Cursor(); n == 2 { // fit for a query string
				break
			}
			n++
		}
		if n < 2 {
			break
		}
	}
	for _, u := range []string{"http://a.example/4", "http://a.example/5"} {
		s, err := f.Status(ctx, 0, u)
		fmt.Println(u, s.State, err)
	}
	// Output:
	// page 1 http://a.example/0
	// page 1 http://a.example/1
	// page 1 http://a.example/2
	// page 2 http://a.example/3
	// page 2 http://a.example/4
	// http://a.example/4 waiting <nil>
	// http://a.example/5 unknown <nil>
}

// Priority 3 goes before all others. Of the others 2 has a probability of p, which is
// changed while the frontier runs.
func ExampleCascade() {
	ctx := context.Background()
	mix := selector.Mix(1, 0, 1) // p = 1
	f, err := frontier.Open(ctx, frontier.Options{
		Priorities:  3,
		Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(e.Weight) }),
		Selector: selector.Cascade(selector.Strict(),
			selector.Tier{Levels: 2, Selector: mix},
			selector.Tier{Levels: 1, Selector: selector.Strict()}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for n, weight := range []float64{1, 1, 2, 2, 3} {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", n), Weight: weight}); err != nil {
			log.Fatal(err)
		}
	}
	for range 2 {
		l, err := f.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("priority", l.Priority)
	}
	if err := mix.Set(1, 0); err != nil { // p = 0
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("priority", l.Priority)
	// Output:
	// priority 3
	// priority 2
	// priority 1
}

// Shares without chance: of ten hand-outs seven, two and one.
func ExampleWeighted() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Priorities:  3,
		Prioritizer: frontier.ByWeight(3, 1), // Entry.Weight from 0 to 1
		Selector:    selector.Weighted(1, 2, 7),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 300 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i), Weight: float64(i) / 300}); err != nil {
			log.Fatal(err)
		}
	}
	var got [4]int
	for range 100 {
		lease, err := f.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		got[lease.Priority]++
		if err := f.Done(lease, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(got[1:])
	// Output:
	// [10 20 70]
}

// A prioritizer of one's own: what changed often is more urgent.
func ExamplePrioritizerFunc() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Priorities: 3,
		Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, h frontier.History) int {
			switch {
			case h.Visits == 0:
				return 2
			case 2*h.Changes > h.Visits:
				return 3
			}
			return 1
		}),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/news"}); err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	tomorrow := time.Now().Add(24 * time.Hour)
	if err := f.Done(lease, frontier.Outcome{Result: frontier.Changed, Next: tomorrow}); err != nil {
		log.Fatal(err)
	}
	s, err := f.Status(ctx, 0, "http://a.example/news")
	fmt.Println("was", lease.Priority, "- is", s.Priority, s.State, err)
	// Output:
	// was 2 - is 3 scheduled <nil>
}

// eachHour visits everything that is not gone each hour.
type eachHour struct{}

// Next implements frontier.Scheduler.
func (eachHour) Next(v frontier.Visit) (time.Time, frontier.State) {
	if v.Outcome.Result > frontier.Unchanged {
		return time.Time{}, frontier.State{} // never again: it is gone, denied, or failed too often
	}
	return v.Outcome.Ended.Add(time.Hour), frontier.State{}
}

// A Scheduler says when pages are visited again.
func ExampleScheduler() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock, Scheduler: eachHour{}})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for {
		lease, again, err := f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue):
			clock.Set(again)
		case err != nil:
			fmt.Println(err)
			return
		default:
			o := frontier.Outcome{Result: frontier.Unchanged}
			if lease.History.Visits == 2 {
				o.Result = frontier.Gone
			}
			fmt.Println(clock.Now().Format(time.TimeOnly), o.Result)
			if err := f.Done(lease, o); err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// 00:00:00 unchanged
	// 01:00:00 unchanged
	// 02:00:00 gone
	// frontier: exhausted
}

// Tries by kind of failure.
func ExampleRetriesByKind() {
	p := frontier.RetriesByKind(frontier.Retries(3, time.Minute), map[frontier.Failure]frontier.RetryPolicy{
		frontier.FailureDNS:     frontier.Retries(1, 0),
		frontier.FailureTooMany: frontier.Retries(20, time.Second),
	})
	for _, kind := range []frontier.Failure{frontier.FailureTimeout, frontier.FailureDNS, frontier.FailureTooMany} {
		wait, again := p.Retry(frontier.Entry{}, 2, frontier.Outcome{Result: frontier.Failed, Failure: kind})
		fmt.Println(kind, wait, again)
	}
	// Output:
	// timeout 4m0s true
	// dns 0s false
	// too many requests 4s true
}

// What a crawler does with half a page: the last try keeps it.
func ExampleFrontier_TriesAgain() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Retry: frontier.Retries(2, 0), Backoff: frontier.Backoff{Base: time.Millisecond, Max: time.Millisecond}})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		o := frontier.Outcome{Result: frontier.Failed}
		again := f.TriesAgain(l, o)
		fmt.Println("try", l.Attempt, "tries again:", again)
		if !again {
			o.Result = frontier.Visited
		}
		if err := f.Done(l, o); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// try 1 tries again: true
	// try 2 tries again: false
}

// All figures. A log line shows them too (slog.Info("crawl", "frontier", s)), and
// package expvar: expvar.Func(func() any { return f.Stats() }).
func ExampleFrontier_Stats() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://a.example/1", Depth: 1})
	if err != nil {
		log.Fatal(err)
	}
	s := f.Stats()
	fmt.Println(s.Waiting, "waiting, by priority", s.WaitingBy)
	fmt.Println("budget kept:", s.MemoryBytes < 256<<20)
	// Output:
	// 2 waiting, by priority [0 0 0 0 0 0 1 1]
	// budget kept: true
}

// The default host key: politeness is owed to the machine, whatever the port.
func ExampleHostName() {
	for _, u := range []string{"https://WWW.Example.org:8443/a", "http://[2001:db8::1]/", "mailto:me@example.org"} {
		host, err := frontier.HostName(u)
		fmt.Println(host, err != nil)
	}
	// Output:
	// www.example.org false
	// 2001:db8::1 false
	//  true
}
