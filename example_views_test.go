// These examples show how to look into a frontier: hosts, URLs, counts, events, exports.

package frontier_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/simclock"
)

// Why is nothing of a host handed out, and what waits?
func ExampleFrontier_Host() {
	ctx := context.Background()
	clock := simclock.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) // yours is the system's
	f, err := frontier.Open(ctx, frontier.Options{Clock: clock})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx,
		frontier.Entry{URL: "http://example.org/1"},
		frontier.Entry{URL: "http://example.org/2"},
		frontier.Entry{URL: "http://www.example.org/", NotBefore: clock.Now().Add(time.Hour)},
	)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := f.Done(lease, frontier.Outcome{RetryAfter: time.Minute}); err != nil {
		log.Fatal(err)
	}
	for h := range f.Hosts(frontier.Domain("example.org"), "") {
		fmt.Printf("%s: %d wait, not served now: %v\n", h.Host, h.Waiting, h.Reason)
	}
	for name := range f.HostNames(frontier.All(), "example.org") { // behind it
		fmt.Println("and", name)
	}
	h, err := f.Host(ctx, "example.org")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("again in", h.Until.Sub(clock.Now()))
	for u, err := range f.URLs(ctx, frontier.All(), "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("waits:", u.Entry.URL)
	}
	s, err := f.Status(ctx, frontier.Entry{URL: "http://www.example.org/"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.State, "for", s.Until.UTC().Format(time.TimeOnly))
	urls := 0
	for _, err := range f.Scan(ctx, frontier.All()) { // all that is held, whatever it waits for
		if err != nil {
			log.Fatal(err)
		}
		urls++
	}
	fmt.Println(urls, "URLs in all")
	// Output:
	// example.org: 1 wait, not served now: retry after
	// www.example.org: 0 wait, not served now: not before
	// and www.example.org
	// again in 1m0s
	// waits: http://example.org/2
	// scheduled for 01:00:00
	// 2 URLs in all
}

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
		s, err := f.Status(ctx, frontier.Entry{URL: u})
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

// What happens in a frontier, and what it looks like from outside.
func ExampleOptions_onEvent() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{
		Retry:   frontier.Retries(1, 0), // give up at once
		OnEvent: func(e frontier.Event) { fmt.Println(e.Kind, e.URL, e.Failure) },
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	for l, err := range f.Leases(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		if err := f.Done(l, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureDNS}); err != nil {
			log.Fatal(err)
		}
	}
	if err := f.Close(); err != nil { // all events have been delivered when it returns
		log.Fatal(err)
	}
	v := expvar.Func(func() any { return f.Stats() }) // for expvar.Publish
	var seen struct {
		Added   int `json:"added"`
		GivenUp int `json:"given_up"`
	}
	if err := json.Unmarshal([]byte(v.String()), &seen); err != nil {
		log.Fatal(err)
	}
	fmt.Println(seen.Added, "added,", seen.GivenUp, "given up")
	// Output:
	// url given up http://a.example/ dns
	// 1 added, 1 given up
}

// Everything that a frontier holds, as lines, and back.
func ExampleFrontier_Export() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	if err := f.Pause(frontier.Domain("b.example")); err != nil {
		log.Fatal(err)
	}
	var export bytes.Buffer
	if err := f.Export(ctx, &export, frontier.ExportOptions{}); err != nil {
		log.Fatal(err)
	}
	for line := range strings.Lines(export.String()) {
		if strings.HasPrefix(line, `{"url"`) || strings.HasPrefix(line, `{"rule"`) {
			fmt.Print(line)
		}
	}
	g, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	took, err := g.Import(ctx, &export, frontier.ImportOptions{})
	fmt.Println(took.URLs, "URL,", took.Rules, "rule,", err)
	// Output:
	// {"rule":"domain","name":"b.example","paused":"on"}
	// {"url":"http://a.example/","priority":8}
	// 1 URL, 1 rule, <nil>
}

// A plain list of URLs is read, too.
func ExampleFrontier_Import() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	list := strings.NewReader("# seeds\nhttp://a.example/\nno URL\n{\"url\":\"http://b.example/\",\"priority\":3}\n")
	took, err := f.Import(ctx, list, frontier.ImportOptions{SkipBad: true})
	fmt.Println(took.URLs, "URLs of", took.Lines, "lines")
	if bad, ok := errors.AsType[*frontier.LineError](err); ok {
		fmt.Println("line", bad.Line, bad.Text)
	}
	// Output:
	// 2 URLs of 4 lines
	// line 3 no URL
}

// Contact, Host and the rules take a host's key; HostKey finds it for a URL.
func ExampleFrontier_HostKey() {
	f, err := frontier.Open(context.Background(), frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	host, err := f.HostKey("https://A.example:8443/page")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(host)
	// Output: a.example
}

// With Options.Count the frontier counts the URLs of each host, and with Options.Keep those
// that are done, too.
func ExampleFrontier_QueueStats() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Count: true, Keep: true})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	_, err = f.Add(ctx,
		frontier.Entry{URL: "http://a.example/1"},
		frontier.Entry{URL: "http://a.example/2"},
		frontier.Entry{URL: "http://b.example/", Finished: true},
	)
	if err != nil {
		log.Fatal(err)
	}
	q, ok, err := f.QueueStats("a.example", 0)
	fmt.Println(q.Waiting, "wait:", ok, err)
	for host, q := range f.Queues(0, "") {
		fmt.Printf("%s: %d waiting, %d finished\n", host, q.Waiting, q.Finished)
	}
	// Output:
	// 2 wait: true <nil>
	// a.example: 2 waiting, 0 finished
	// b.example: 0 waiting, 1 finished
}
