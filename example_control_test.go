// These examples show what an operator can do to a running crawl: pause, delete, limit.

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

// A paused domain keeps its URLs; a host in it may run all the same.
func ExampleFrontier_Pause() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx, frontier.Entry{URL: "http://www.a.example/"}, frontier.Entry{URL: "http://api.a.example/"})
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(f.Pause(scope.Domain("a.example")), f.Resume(scope.Host("api.a.example")))
	if err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("served:", lease.Host)
	if err := f.Done(lease, frontier.Outcome{}); err != nil {
		log.Fatal(err)
	}
	_, err = f.Next(ctx)
	if held, ok := errors.AsType[*frontier.HeldError](err); ok {
		fmt.Println("held back:", held.Held)
	}
	if err := f.Clear(scope.Domain("a.example")); err != nil { // or Resume
		log.Fatal(err)
	}
	lease, err = f.Next(ctx)
	fmt.Println("served:", lease.Host, err)
	// Output:
	// served: api.a.example
	// held back: 1
	// served: www.a.example <nil>
}

// Not before tomorrow; time alone ends it.
func ExampleFrontier_BlockUntil() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://www.a.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := f.BlockUntil(scope.Domain("a.example"), clock.Now().Add(16*time.Hour)); err != nil {
		log.Fatal(err)
	}
	h, err := inspect.New(f).Host(ctx, "www.a.example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Reason, "until", h.Until.UTC().Format(time.TimeOnly))
	// Output:
	// blocked until 22:00:00
}

// The most specific rule counts, setting by setting.
func ExampleFrontier_UpdateRule() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	err = errors.Join(
		f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Delay = frontier.FactorDelay(20, 2*time.Second, time.Minute) }),
		f.UpdateRule(scope.Domain("mine.example"), func(r *frontier.Rule) {
			r.Delay, r.Concurrency = frontier.FixedDelay(50*time.Millisecond), 4
		}),
		f.UpdateRule(scope.Host("old.mine.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(10 * time.Second) }),
	)
	if err != nil {
		log.Fatal(err)
	}
	took := frontier.Outcome{Duration: 300 * time.Millisecond}
	for _, host := range []string{"www.mine.example", "old.mine.example", "other.example"} {
		fmt.Println(host, f.DelayOf(host).Delay(host, took), f.RuleOf(host).Concurrency)
	}
	for s := range f.Rules() {
		_, set := f.Rule(s)
		fmt.Println(s, set)
	}
	// Output:
	// www.mine.example 50ms 4
	// old.mine.example 10s 4
	// other.example 6s 0
	// * true
	// *.mine.example true
	// old.mine.example true
}

// A budget for a domain, which begins anew each day.
func ExampleFrontier_UpdateRule_limits() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock, Delay: frontier.FixedDelay(time.Minute)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	a := scope.Domain("a.example")
	if err := f.UpdateRule(a, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 2, Period: 24 * time.Hour} }); err != nil {
		log.Fatal(err)
	}
	for i := range 5 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.a.example/", i)}); err != nil {
			log.Fatal(err)
		}
	}
	for {
		lease, again, err := f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue):
			used, _ := inspect.New(f).Used(a)
			fmt.Println(used.Served, "served; again in", again.Sub(clock.Now()))
			clock.Set(again)
		case errors.Is(err, frontier.ErrExhausted):
			fmt.Println("all served on day", clock.Now().Day())
			return
		case err != nil:
			log.Fatal(err)
		default:
			if err := f.Done(lease, frontier.Outcome{}); err != nil {
				log.Fatal(err)
			}
		}
	}
	// Output:
	// 2 served; again in 24h0m0s
	// 2 served; again in 24h0m0s
	// all served on day 3
}

// Ahead of everything else, but not of politeness.
func ExampleFrontier_CrawlNow() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := range 1000 {
		if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)}); err != nil {
			log.Fatal(err)
		}
	}
	if _, err := f.CrawlNow(ctx, frontier.Entry{URL: "http://h777.example/"}); err != nil { // known or not
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Entry.URL, lease.Priority == frontier.Immediate)
	// Output:
	// http://h777.example/ true
}

// URLs that wait get another priority, and so do those that come later.
func ExampleFrontier_UpdateRule_priority() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Selector: selector.Strict(), Prioritizer: frontier.Constant(5)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}, frontier.Entry{URL: "http://c.example/"})
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		f.UpdateRule(scope.Host("c.example"), func(r *frontier.Rule) { r.Priority = 8 }),
		f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Priorities[5] = 1 }), // those of 5 are served as of 1
	)
	if err != nil {
		log.Fatal(err)
	}
	for lease, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Priority, lease.Host)
		if err := f.Done(lease, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 8 c.example
	// 5 b.example
	// 1 a.example
}

// A site that was a mistake. Its URLs stay known, so that links do not bring
// them back.
func ExampleFrontier_Delete() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	entries := []frontier.Entry{{URL: "http://a.example/"}, {URL: "http://www.trap.example/1"}, {URL: "http://www.trap.example/2"}}
	if _, err := f.Add(ctx, entries...); err != nil {
		log.Fatal(err)
	}
	n, err := f.Delete(ctx, scope.Domain("trap.example"))
	fmt.Println(n, err)
	n2, err := f.Add(ctx, entries...)
	fmt.Println(n2, err, f.Stats().Waiting)
	// Output:
	// 2 <nil>
	// 0 <nil> 1
}

// Two crawls in one frontier: the second gets three of four hand-outs.
func ExampleFrontier_UpdateRule_crawl() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	err = f.UpdateRule(scope.Crawl(2), func(r *frontier.Rule) { // crawl 1 has Weight 1
		r.Weight, r.Limits.Served = 3, 30
	})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 100 {
		for crawl := uint32(1); crawl <= 2; crawl++ {
			if _, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.c%d.example/", i, crawl), Crawl: crawl}); err != nil {
				log.Fatal(err)
			}
		}
	}
	for range 40 {
		lease, err := f.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Done(lease, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
	for _, id := range inspect.New(f).Crawls() {
		s, _ := inspect.New(f).Crawl(id)
		fmt.Println("crawl", id, "has had", s.HandedOut, "and has", s.Waiting)
	}
	n, err := f.Delete(ctx, scope.Crawl(1))
	fmt.Println(n, "deleted,", err)
	// Output:
	// crawl 1 has had 10 and has 90
	// crawl 2 has had 30 and has 70
	// 90 deleted, <nil>
}

// Two hosts on one machine are left alone together.
func ExampleFrontier_Join() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if err := f.SetGroup("192.0.2.1", frontier.GroupSettings{Delay: frontier.FixedDelay(5 * time.Second)}); err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		lease, err := f.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		// Its name is looked up here.
		switch err := f.Join(&lease, "192.0.2.1"); {
		case errors.Is(err, frontier.ErrGroupBusy):
			fmt.Println(lease.Host, "has to wait")
			err = f.Done(lease, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
			if err != nil {
				log.Fatal(err)
			}
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(lease.Host, "is contacted")
			if err := f.Done(lease, frontier.Outcome{}); err != nil {
				log.Fatal(err)
			}
		}
	}
	g, _ := inspect.New(f).Group("192.0.2.1")
	fmt.Println("again in", g.Due.Sub(clock.Now()))
	// Output:
	// a.example is contacted
	// b.example has to wait
	// again in 5s
}

// An operator knows better than the network who belongs together.
func ExampleFrontier_Assign() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, host := range []string{"a.example", "b.example"} {
		if err := f.Assign(host, "hoster"); err != nil {
			log.Fatal(err)
		}
	}
	h, err := inspect.New(f).Host(ctx, "b.example")
	fmt.Println(h.Group, err)
	if err := f.Forget("b.example"); err != nil { // with all else that was learned
		log.Fatal(err)
	}
	h, err = inspect.New(f).Host(ctx, "b.example")
	fmt.Println(h.Group == "", errors.Is(err, frontier.ErrUnknownHost) || err == nil)
	// Output:
	// hoster <nil>
	// true true
}

// A name that no host can have is refused, rather than kept for ever.
func ExampleFrontier_CheckScope() {
	f, err := frontier.Open(context.Background(), frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Println(f.CheckScope(scope.Domain("example.org")))
	fmt.Println(f.CheckScope(scope.Host("Bücher.Example.")))
	fmt.Println(f.CheckScope(scope.Host("example.org:80")))
	// Output:
	// <nil>
	// <nil>
	// frontier: scope: "example.org:80" is not a host key; want "example.org": all ports are one host
}

// Two pages a day of each host, and a guard against traps.
func ExampleFrontier_UpdateRule_hostLimits() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)})
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		f.UpdateRule(scope.All(), func(r *frontier.Rule) {
			r.HostLimits = scope.Limits{Served: 2, Period: 24 * time.Hour, Waiting: 3}
		}),
		f.UpdateRule(scope.Host("big.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1_000_000} }), // an exception
		f.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Bytes: 1 << 40} }),          // of all of them together
	)
	if err != nil {
		log.Fatal(err)
	}
	n, err := f.Add(ctx,
		frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"},
		frontier.Entry{URL: "http://a.example/3"}, frontier.Entry{URL: "http://a.example/calendar/2999"},
	)
	fmt.Println(n, "added;", err)
	for l, _, err := f.TryNext(); err == nil; l, _, err = f.TryNext() {
		if err := f.Done(l, frontier.Outcome{Bytes: 1000}); err != nil {
			log.Fatal(err)
		}
	}
	h, err := inspect.New(f).Host(ctx, "a.example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Waiting, "waits; reason:", h.Reason, "for", h.Until.Sub(h.Used.Since))
	used, _ := inspect.New(f).Used(scope.Domain("example"))
	fmt.Println(used.Served, "pages,", used.Bytes, "bytes")
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 3 added; frontier: entry 3 "http://a.example/calendar/2999": limit reached: 3 URLs of host a.example wait, 3 may
	// 1 waits; reason: limit for 24h0m0s
	// 2 pages, 2000 bytes
}

// A server gives leases to clients in other processes by their IDs.
func ExampleFrontier_LeaseByID() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// In the client: what it received, with the ID.
	there, err := frontier.RestoreLease(l.ID(), frontier.Lease{Host: l.Host})
	if err != nil {
		log.Fatal(err)
	}
	// In the server: the client has sent the ID.
	if l, err = f.LeaseByID(there.ID()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Entry.URL, f.Done(l, frontier.Outcome{}))
	_, err = f.LeaseByID(there.ID())
	fmt.Println(err)
	// Output:
	// http://a.example/ <nil>
	// frontier: not leased
}

// Names of crawls, beside their URLs.
func ExampleFrontier_SetValue() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{}) // durable with Options.Spill
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"news", "blogs"} {
		if err := f.SetValue(ctx, "crawl/"+name, []byte("of "+name)); err != nil {
			log.Fatal(err)
		}
	}
	v, found, err := f.Value("crawl/news")
	fmt.Println(string(v), found, err)
	all, err := f.Values(ctx, "crawl/")
	fmt.Printf("%s %v\n", all, err)
	// Output:
	// of news true <nil>
	// map[crawl/blogs:of blogs crawl/news:of news] <nil>
}

// Take hands out several URLs at once: here up to 3 of each of 2 hosts.
func ExampleFrontier_Take() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(time.Second)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, u := range []string{"http://a.example/1", "http://a.example/2", "http://b.example/"} {
		if _, err := f.Add(ctx, frontier.Entry{URL: u}); err != nil {
			log.Fatal(err)
		}
	}
	leases, err := f.Take(ctx, frontier.TakeOptions{Hosts: 2, PerHost: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range leases {
		fmt.Println(l.Entry.URL, l.Gap)
		if err := f.Done(l, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// http://a.example/1 1s
	// http://a.example/2 1s
	// http://b.example/ 0s
}

// What a host has in one of two crawls is deleted.
func ExampleFrontier_DeleteWith() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for crawl := range uint32(2) {
		if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/", Crawl: crawl}); err != nil {
			log.Fatal(err)
		}
	}
	n, err := f.DeleteWith(ctx, frontier.DeleteOptions{Scope: scope.Host("a.example"), Crawls: []uint32{1}})
	fmt.Println(n, err, f.Stats().Waiting)
	// Output:
	// 1 <nil> 1
}
