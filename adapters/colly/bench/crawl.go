// This file is the crawler process.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/spill"
)

// crawl crawls as its standard input says, and writes samples until it is done.
func crawl(string) {
	var s settings
	err := json.NewDecoder(os.Stdin).Decode(&s)
	if err == nil {
		done := make(chan error, 1)
		go func() { done <- crawlBy(s) }()
		err = sampling(done)
	}
	last := sample{RSS: rss(), Goroutines: int(goroutines.Load())}
	if err != nil {
		last.Err = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(last)
}

var goroutines atomic.Int64 // at most so far

func sampling(done <-chan error) error {
	out := json.NewEncoder(os.Stdout)
	often := time.NewTicker(50 * time.Millisecond)
	defer often.Stop()
	for n := 1; ; n++ {
		select {
		case err := <-done:
			return err
		case <-often.C:
			goroutines.Store(max(goroutines.Load(), int64(runtime.NumGoroutine())))
			if n%20 == 0 {
				_ = out.Encode(sample{RSS: rss(), Goroutines: int(goroutines.Load())})
			}
		}
	}
}

// rss returns the process's peak memory, on systems that report it.
func rss() int64 {
	b, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, _ := strconv.ParseInt(strings.TrimSpace(strings.Split(rest, "kB")[0]), 10, 64)
	return kb << 10
}

func crawlBy(s settings) error {
	switch s.Way {
	case throughQueue:
		return queued(s)
	case oneRule:
		return plain(s, []*colly.LimitRule{{DomainGlob: "*", Parallelism: s.Threads, Delay: s.Delay}})
	case ruleEach:
		var rules []*colly.LimitRule
		for i := range s.Hosts {
			rules = append(rules, &colly.LimitRule{DomainGlob: web.Host(i), Parallelism: 1, Delay: s.Delay})
		}
		return plain(s, rules)
	}
	return fmt.Errorf("no way %q", s.Way)
}

// plain crawls with colly as its documentation shows.
func plain(s settings, rules []*colly.LimitRule) error {
	c := colly.NewCollector(colly.Async(true))
	c.WithTransport(web.Transport(s.Addrs))
	if err := c.Limits(rules); err != nil {
		return err
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { _ = e.Request.Visit(e.Attr("href")) }) // known ones are errors
	for _, u := range s.Seeds {
		if err := c.Visit(u); err != nil {
			return err
		}
	}
	c.Wait()
	return nil
}

// queued crawls with colly through the queue.
func queued(s settings) (err error) {
	store, err := spill.Open(s.Dir, spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := frontier.Open(context.Background(), frontier.Options{Spill: store, Delay: frontier.FixedDelay(s.Delay)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	q, err := frontiercolly.New(f, frontiercolly.Options{Threads: s.Threads, Transport: &polite.Transport{Base: web.Transport(s.Addrs)}})
	if err != nil {
		return err
	}
	c := colly.NewCollector()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := q.Visit(e.Request, e.Attr("href")); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	})
	for _, u := range s.Seeds {
		if err := q.AddURL(u); err != nil {
			return err
		}
	}
	return q.Run(c)
}
