package polite_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/polite"
)

// site is a server whose robots.txt asks for 100 ms between requests, in seconds.
func site() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "User-agent: *\nDisallow: /private/\nCrawl-delay: 0.1\n")
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	return httptest.NewServer(mux)
}

// Any http.Client becomes polite: requests to a host wait for each other, and for as long as the
// host asks.
func ExampleTransport() {
	server := site()
	defer server.Close()
	f, err := frontier.Open(context.Background(), frontier.Options{Delay: frontier.FixedDelay(10 * time.Millisecond)})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	client := &http.Client{Transport: &polite.Transport{
		Frontier: f,
		Robots:   &polite.Robots{Agent: "examplebot/1.0 (+https://bot.example)"},
		Timeout:  time.Minute, // of each contact; that of the client would count the wait
	}}
	defer client.CloseIdleConnections()
	begun := time.Now()
	for _, path := range []string{"/", "/moved", "/private/diary"} {
		resp, err := client.Get(server.URL + path)
		if denied, ok := errors.AsType[*polite.DeniedError](err); ok {
			fmt.Println("denied by line", denied.Line)
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close() // the contact ends
		fmt.Println(resp.StatusCode, resp.Request.URL.Path)
	}
	// robots.txt, /, /moved and its target are four contacts.
	fmt.Println("Crawl-delay kept:", time.Since(begun) > 3*100*time.Millisecond)
	// Output:
	// 200 /
	// 200 /
	// denied by line 2
	// Crawl-delay kept: true
}

// A request that would have to wait for too long fails at once.
func ExampleBusyError() {
	server := site()
	defer server.Close()
	client := &http.Client{Transport: &polite.Transport{MaxWait: 10 * time.Second}}
	defer client.CloseIdleConnections()
	for range 2 {
		resp, err := client.Get(server.URL + "/busy")
		if busy, ok := errors.AsType[*polite.BusyError](err); ok {
			fmt.Println(busy.Host, "is free in more than a minute:", time.Until(busy.Until) > time.Minute)
			continue
		} else if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 429
	// 127.0.0.1 is free in more than a minute: true
}

// A program that takes URLs from the frontier fetches them under their leases.
func ExampleWithLease() {
	ctx := context.Background()
	server := site()
	defer server.Close()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0)}) // it is our own server
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	client := &http.Client{
		Transport:     &polite.Transport{Frontier: f},
		CheckRedirect: polite.LastResponse, // targets of redirects go to the frontier
	}
	defer client.CloseIdleConnections()
	if _, err := f.Add(ctx, frontier.Entry{URL: server.URL + "/moved"}); err != nil {
		log.Fatal(err)
	}
	err = f.Work(ctx, 1, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		_, visit := polite.WithLease(ctx, l)
		resp, err := visit.Get(client)
		if err == nil {
			page, _ := io.ReadAll(resp.Body) // an error of it is in the outcome
			fmt.Printf("%d %q\n", resp.StatusCode, page)
		}
		o := visit.Outcome()
		fmt.Println(o.Result, len(o.Add))
		return o, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 302 "<a href=\"/\">Found</a>.\n\n"
	// visited 1
	// 200 "hello"
	// visited 0
}

// With a fetcher that takes no RoundTripper, read robots.txt and the outcome by themselves.
func ExampleOutcomeOf() {
	server := site()
	defer server.Close()
	robots := &polite.Robots{Agent: "examplebot/1.0 (+https://bot.example)"}
	ok, err := robots.Allowed(context.Background(), nil, server.URL+"/busy") // in its host's turn
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("allowed:", ok)
	resp, err := http.Get(server.URL + "/busy")
	if err == nil {
		defer resp.Body.Close()
	}
	o := polite.OutcomeOf(resp, err)
	o.CrawlDelay, _ = robots.CrawlDelay(server.URL)
	fmt.Println(o.Result, "-", o.Failure, "-", o.RetryAfter, "-", o.CrawlDelay)
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// allowed: true
	// failed - too many requests - 2m0s - 100ms
}

// Robots alone: which URLs may be fetched?
func ExampleRobots() {
	server := site()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	robots := &polite.Robots{Agent: "examplebot/1.0 (+https://bot.example)"}
	for _, path := range []string{"/", "/private/diary"} {
		ok, err := robots.Allowed(context.Background(), http.DefaultTransport, server.URL+path)
		fmt.Println(path, ok, err)
	}
	// Output:
	// / true <nil>
	// /private/diary false <nil>
}
