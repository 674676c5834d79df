// These examples show counts, events and exports.

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

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/scope"
)

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
		OnEvent: func(e event.Event) { fmt.Println(e.Kind, e.URL, e.Failure) },
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
	if err := f.Pause(scope.Domain("b.example")); err != nil {
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
