// These examples follow a URL through Add, Next and Done, and show what leases can do.

package frontier_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
)

// A crawl in memory, from the first URL to the last.
func Example() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for lease, err := range f.Leases(ctx) { // ends when nothing is left
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Entry.URL, "depth", lease.Entry.Depth, "priority", lease.Priority)
		var links []frontier.Entry // your fetch finds them
		if lease.Entry.Depth < 2 {
			next := lease.Entry.Depth + 1
			links = []frontier.Entry{{URL: fmt.Sprintf("http://a.example/%d", next), Depth: next}, {URL: "http://a.example/"}}
		}
		if err := f.Done(lease, frontier.Outcome{Add: links}); err != nil {
			log.Fatal(err)
		}
	}
	s := f.Stats()
	fmt.Println(s.Known, "URLs,", s.Duplicates, "links to known ones")
	// Output:
	// http://a.example/ depth 0 priority 8
	// http://a.example/1 depth 1 priority 7
	// http://a.example/2 depth 2 priority 6
	// 3 URLs, 2 links to known ones
}

// With a Spill the frontier is a folder, and goes on where it was.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "frontier")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for run := range 2 {
		db, err := spill.Open(dir, spill.Options{})
		if err != nil {
			log.Fatal(err)
		}
		f, err := frontier.Open(ctx, frontier.Options{Spill: db})
		if err != nil {
			log.Fatal(err)
		}
		n, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("run", run, "-", n, "new,", f.Stats().Waiting, "waiting")
		if err := errors.Join(f.Close(), db.Close()); err != nil { // in this order
			log.Fatal(err)
		}
	}
	// Output:
	// run 0 - 2 new, 2 waiting
	// run 1 - 0 new, 2 waiting
}

// Known URLs are no error; bad ones are reported, and the others admitted.
func ExampleFrontier_Add() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	n, err := f.Add(ctx,
		frontier.Entry{URL: "http://a.example/"},
		frontier.Entry{URL: "http://a.example/"},
		frontier.Entry{URL: "about"},
		frontier.Entry{URL: "http://b.example/", NotBefore: time.Now().Add(time.Hour)},
	)
	fmt.Println(n, "new")
	for _, e := range frontier.EntryErrors(err) {
		fmt.Println("bad: entry", e.Index, e.URL)
	}
	s := f.Stats()
	fmt.Println(s.Waiting, "waits,", s.Scheduled, "scheduled,", s.Duplicates, "known")
	// Output:
	// 2 new
	// bad: entry 2 about
	// 1 waits, 1 scheduled, 1 known
}

// With Normalize, the spellings of a URL are one URL, wherever the program names it.
func ExampleOptions_normalize() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Normalize: urlnorm.New().Normalize})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	n, err := f.Add(ctx,
		frontier.Entry{URL: "http://a.example"},
		frontier.Entry{URL: "HTTP://A.example:80/#top"},
		frontier.Entry{URL: "mailto:me@a.example"},
	)
	fmt.Println(n, "new;", err)
	s, err := inspect.New(f).Status(ctx, frontier.Entry{URL: "http://a.example/x/.."})
	fmt.Println(s.Entry.URL, s.State, err)
	// Output:
	// 1 new; frontier: entry 2 "mailto:me@a.example": scheme cannot be crawled
	// http://a.example/ waiting <nil>
}

// Ten workers crawl until nothing is left. A fetch that fails is an Outcome; an error stops them all.
func ExampleFrontier_Work() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond), Retry: frontier.Retries(2, time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	pages := map[string][]string{ // yours are on the web
		"http://a.example/":  {"http://a.example/1", "http://a.example/2", "mailto:me@a.example"},
		"http://a.example/1": {"http://a.example/"},
	}
	err = f.Work(ctx, 10, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		links, ok := pages[l.Entry.URL] // yours is fetched under ctx
		if !ok {
			return frontier.Outcome{Result: frontier.Failed}, nil
		}
		out := frontier.Outcome{}
		for _, u := range links {
			out.Add = append(out.Add, frontier.Entry{URL: u, Depth: l.Entry.Depth + 1})
		}
		return out, nil
	})
	s := f.Stats()
	fmt.Println(s.Done[frontier.Visited], "visited,", s.GivenUp, "given up,", s.Refused, "bad link;", err)
	// Output:
	// 2 visited, 1 given up, 1 bad link; <nil>
}

// Next waits until some host may be contacted, and ends with the crawl.
func ExampleFrontier_Next() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(20 * time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"}); err != nil {
		log.Fatal(err)
	}
	var ended time.Time
	for {
		lease, err := f.Next(ctx)
		if errors.Is(err, frontier.ErrExhausted) {
			fmt.Println("the crawl is over")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lease.Entry.URL, "politely:", lease.LeasedAt.Sub(ended) >= 20*time.Millisecond)
		ended = time.Now()
		if err := f.Done(lease, frontier.Outcome{Ended: ended}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// http://a.example/1 politely: true
	// http://a.example/2 politely: true
	// the crawl is over
}

// Without waiting: for an event loop, or for virtual time.
func ExampleFrontier_TryNext() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"}); err != nil {
		log.Fatal(err)
	}
	lease, _, err := f.TryNext()
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(500 * time.Millisecond) // so long did the fetch take
	if err := f.Done(lease, frontier.Outcome{}); err != nil {
		log.Fatal(err)
	}
	_, again, err := f.TryNext()
	fmt.Println(err, "for", again.Sub(clock.Now()))
	clock.Set(again)
	lease, _, err = f.TryNext()
	fmt.Println(lease.Entry.URL, err)
	// Output:
	// frontier: nothing due for 5s
	// http://a.example/2 <nil>
}

// An outcome says what became of the URL, and what the host asked for.
func ExampleFrontier_Done() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for _, o := range []frontier.Outcome{
		{Result: frontier.Failed, Failure: frontier.FailureUnavailable, RetryAfter: 2 * time.Minute}, // 503
		{Result: frontier.Visited, Bytes: 12_345, Add: []frontier.Entry{{URL: "http://b.example/", Depth: 1}}},
	} {
		lease, again, err := f.TryNext()
		for errors.Is(err, frontier.ErrNotDue) {
			clock.Set(again)
			lease, again, err = f.TryNext()
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Done(lease, o); err != nil {
			log.Fatal(err)
		}
		s := f.Stats()
		fmt.Printf("%s, try %d: %v; %d waiting, %d scheduled\n", clock.Now().Format(time.TimeOnly), lease.Attempt, o.Result, s.Waiting, s.Scheduled)
	}
	// Output:
	// 00:00:00, try 1: failed; 0 waiting, 1 scheduled
	// 00:02:00, try 2: visited; 1 waiting, 0 scheduled
}

// A lease ends by itself; who needs longer says so in time.
func ExampleFrontier_Extend() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock, LeaseTime: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/large.iso"}); err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	clock.Advance(50 * time.Second)
	if err := f.Extend(&lease, time.Minute); err != nil { // from now
		log.Fatal(err)
	}
	fmt.Println("until", lease.Deadline.Sub(lease.LeasedAt))
	clock.Advance(2 * time.Minute) // too late
	fmt.Println(f.Done(lease, frontier.Outcome{}))
	// Output:
	// until 1m50s
	// frontier: not leased
}

// A host's slot without a URL of it, for its robots.txt.
func ExampleFrontier_Contact() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	lease, err := f.Contact(ctx, "a.example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(lease.Host, lease.ContactOnly())
	// It is fetched here. It said "Crawl-delay: 5".
	if err := f.Done(lease, frontier.Outcome{CrawlDelay: 5 * time.Second}); err != nil {
		log.Fatal(err)
	}
	h, err := inspect.New(f).Host(ctx, "a.example")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.CrawlDelay)
	// Output:
	// a.example true
	// 5s
}

// The page was handed out before its host's robots.txt was known.
func ExampleFrontier_HandBack() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	robots := map[string]bool{}
	for lease, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if !robots[lease.Host] {
			if lease, err = f.HandBack(lease); err != nil { // the slot stays ours
				log.Fatal(err)
			}
			robots[lease.Host] = true
			fmt.Println("robots.txt of", lease.Host)
		} else {
			fmt.Println(lease.Entry.URL, "try", lease.Attempt)
		}
		if err := f.Done(lease, frontier.Outcome{}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// robots.txt of a.example
	// http://a.example/ try 1
}

// An orderly end: nothing new is handed out, and what is out may be finished.
func ExampleFrontier_Drain() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}); err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	drained := make(chan error)
	go func() { drained <- f.Drain(ctx) }()
	if err := f.Done(lease, frontier.Outcome{}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-drained)
	_, err = f.Next(ctx)
	fmt.Println(err, "-", f.Stats().Waiting, "waiting")
	// Output:
	// <nil>
	// frontier: closed - 1 waiting
}

// A shutdown that a stuck disk cannot hold up: a minute for all that is left.
func ExampleFrontier_CloseContext() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{}) // on a disk with Options.Spill
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch _, err := f.DoneContext(ctx, l, frontier.Outcome{}); {
	case errors.Is(err, frontier.ErrUnsettled):
		fmt.Println("the URL is finished or comes again: the next Open tells")
	case err != nil:
		fmt.Println("the URL comes again:", err)
	default:
		fmt.Println("the URL is finished")
	}
	if err := f.CloseContext(ctx); err != nil {
		log.Fatal(err) // what was begun goes on until the disk answers or the process ends
	}
	fmt.Println("closed")
	// Output:
	// the URL is finished
	// closed
}

// What became of each entry, for a server that acknowledges them.
func ExampleFrontier_AddVerdicts() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	verdicts, err := f.AddVerdicts(ctx,
		frontier.Entry{URL: "http://a.example/"},
		frontier.Entry{URL: "http://a.example/"},
		frontier.Entry{URL: "mailto:someone"},
	)
	for _, bad := range frontier.EntryErrors(err) {
		fmt.Println(bad.Index, bad.Err)
	}
	fmt.Println(verdicts)
	// Output:
	// 2 not an absolute URL with a host
	// [new known bad]
}

// Many leases end together.
func ExampleFrontier_DoneAll() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"}); err != nil {
		log.Fatal(err)
	}
	leases, err := f.Take(ctx, frontier.TakeOptions{Hosts: 2})
	if err != nil {
		log.Fatal(err)
	}
	var ends []frontier.End
	for _, l := range leases {
		ends = append(ends, frontier.End{Lease: l, Outcome: frontier.Outcome{Add: []frontier.Entry{{URL: "http://a.example/page"}}}})
	}
	for i, ended := range f.DoneAll(ctx, ends) {
		fmt.Println(ends[i].Lease.Entry.URL, ended.Verdicts, ended.Err)
	}
	// Output:
	// http://a.example/ [new] <nil>
	// http://b.example/ [known] <nil>
}
