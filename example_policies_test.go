// These examples show policies: priorities, selectors, tries, visits and politeness.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
)

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
	s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: "http://a.example/news"})
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

// What to set for whom.
func Example_politeness() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	// A site of your own:
	err = f.UpdateRule(scope.Domain("mine.example"), func(r *frontier.Rule) {
		r.Delay, r.Concurrency = frontier.FixedDelay(50*time.Millisecond), 4
	})
	if err != nil {
		log.Fatal(err)
	}
	// A site that complains, and a hoster that does:
	err = errors.Join(
		f.Pause(scope.Domain("theirs.example")),
		f.SetGroup("203.0.113.7", frontier.GroupSettings{Delay: frontier.FixedDelay(10 * time.Second)}),
	)
	if err != nil {
		log.Fatal(err)
	}
	// A site that is larger than you want:
	err = errors.Join(
		f.UpdateRule(scope.All(), func(r *frontier.Rule) {
			r.HostLimits = scope.Limits{Served: 1000, Period: 24 * time.Hour}
		}),
		f.UpdateRule(scope.Domain("theirs.example"), func(r *frontier.Rule) {
			r.Limits = scope.Limits{Served: 100_000}
		}),
	)
	if err != nil {
		log.Fatal(err)
	}
	for s, r := range f.Rules() {
		fmt.Println(s, r.Delay != nil, r.Concurrency, r.Paused == scope.On, r.Limits.Served, r.HostLimits.Served)
	}
	// Output:
	// * false 0 false 0 1000
	// *.mine.example true 4 false 0 0
	// *.theirs.example false 0 true 100000 0
}

// Of a host that has shown little of use, all URLs come later.
func ExampleFrontier_SetStanding() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Selector: selector.Strict()})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://farm.example/"}, frontier.Entry{URL: "http://news.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := f.SetStanding("farm.example", -2); err != nil {
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	fmt.Println(l.Entry.URL, err)
	// Output:
	// http://news.example/ <nil>
}
