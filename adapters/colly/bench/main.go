// Bench crawls a loopback web of many sites with colly: through the queue of this module, and plainly
// with colly's two kinds of limits. The web runs in this process and counts early requests by its own
// clock. Each crawler runs in a process of its own, so its memory can be measured.
//
//	go run ./adapters/colly/bench
//	go run ./adapters/colly/bench -hosts 2000 -limit 30s
//
// The crawler with the queue is killed (SIGKILL) when half of the pages are served, and started again.
// The exit status is 1 if it loses a page or comes too early.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
)

// settings configure a crawler process.
type settings struct {
	Way     string // one of ways
	Addrs   []string
	Seeds   []string
	Hosts   int
	Threads int
	Delay   time.Duration
	Dir     string // the queue's
}

// ways to crawl.
const (
	throughQueue = "this queue"
	oneRule      = `LimitRule{"*"}`
	ruleEach     = "LimitRule per domain"
)

// sample is what a crawler process says about itself, each second.
type sample struct {
	RSS        int64 // bytes at most so far
	Goroutines int   // at most so far
	Err        string
}

// crawler is the environment variable that makes a process of this program crawl.
const crawler = "FRONTIERCOLLY_BENCH"

func main() {
	log.SetFlags(0)
	if s := os.Getenv(crawler); s != "" {
		crawl(s)
		return
	}
	hosts := flag.Int("hosts", 100_000, "number of domains")
	pages := flag.Int("pages", 5, "pages of each")
	threads := flag.Int("threads", 256, "threads of the queue, and the parallelism of LimitRule{\"*\"}")
	delay := flag.Duration("delay", time.Second, "what must lie between two contacts of a domain")
	limit := flag.Duration("limit", 2*time.Minute, "how long plain colly may take")
	flag.Parse()
	if *hosts < 1 || *pages < 1 || *threads < 1 || *delay <= 0 || *limit <= 0 || flag.NArg() > 0 {
		log.Fatal("bench: numbers and durations must be positive, and there are no arguments")
	}
	w := &web.Web{Hosts: *hosts, Pages: *pages, Seeds: max(1, *hosts/100), Delay: *delay}
	if runtime.GOOS == "linux" {
		w.Addresses = 16 // one address has too few ports for so many connections
	}
	if err := w.Start(); err != nil {
		log.Fatal("bench: ", err)
	}
	s := settings{Addrs: w.Addrs(), Seeds: w.SeedURLs(), Hosts: *hosts, Threads: *threads, Delay: *delay}
	fmt.Printf("%d domains x %d pages, %v between contacts, %d threads\n\n", *hosts, *pages, *delay, *threads)
	fmt.Println("| colly with | pages | again | seconds | pages/s | requests too early | domains contacted too early | smallest gap | memory | goroutines |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	err := throughTheQueue(w, s)
	for _, way := range []string{oneRule, ruleEach} {
		s.Way = way
		w.Reset()
		began := time.Now()
		most, plain := run(w, s, *limit, never)
		row(w, way, time.Since(began), most, plain)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		log.Fatal("bench: ", err)
	}
}

// throughTheQueue kills a crawl with the queue in the middle, lets another process end it, and judges the whole.
func throughTheQueue(w *web.Web, s settings) error {
	s.Way = throughQueue
	dir, err := os.MkdirTemp("", "frontiercolly-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s.Dir = dir
	began := time.Now()
	half := func() bool { return w.Count() >= w.Hosts*w.Pages/2 }
	before, err := run(w, s, 0, half)
	if !errors.Is(err, errKilled) {
		return fmt.Errorf("the crawl ended before it was killed: %w", err)
	}
	most, err := run(w, s, 0, never)
	most.RSS, most.Goroutines = max(most.RSS, before.RSS), max(most.Goroutines, before.Goroutines)
	row(w, s.Way+", killed once", time.Since(began), most, err)
	l := w.Log()
	switch {
	case err != nil:
		return err
	case l.Pages != w.Hosts*w.Pages:
		return fmt.Errorf("%d pages were lost", w.Hosts*w.Pages-l.Pages)
	case l.Early+l.Together > 0:
		return fmt.Errorf("%d requests were impolite", l.Early+l.Together)
	}
	return nil
}

func never() bool { return false }

func row(w *web.Web, way string, took time.Duration, most sample, err error) {
	l := w.Log()
	fmt.Printf("| %s | %d | %d | %.0f | %.0f | %d | %d of %d | %v | %d MB | %d |\n", way, l.Pages, l.Again, took.Seconds(),
		float64(l.Pages)/took.Seconds(), l.Early+l.Together, l.Rude, l.Hosts, l.Least.Round(time.Millisecond/10), most.RSS>>20, most.Goroutines)
	if err != nil {
		fmt.Printf("\n%s: %v\n\n", way, err)
	}
}

var (
	errKilled = errors.New("killed")
	errLimit  = errors.New("stopped at its limit")
)

// run crawls in a process until it ends, the limit (0: none) passes, or kill returns true; it calls kill
// each second. Every half minute it prints the progress.
func run(w *web.Web, s settings, limit time.Duration, kill func() bool) (most sample, err error) {
	self, err := os.Executable()
	if err != nil {
		return most, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return most, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	if limit > 0 {
		defer time.AfterFunc(limit, func() { cancel(errLimit) }).Stop()
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Stderr = os.Stderr
	cmd.Stdin = strings.NewReader(string(text)) // 100,000 seeds would be too long for an environment
	cmd.Env = append(os.Environ(), crawler+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return most, err
	}
	if err := cmd.Start(); err != nil {
		return most, err
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewScanner(out)
		for n := 1; lines.Scan(); n++ {
			_ = json.Unmarshal(lines.Bytes(), &most)
			if n%30 == 0 {
				log.Printf("%s: %d pages", s.Way, w.Count())
			}
			if kill() {
				cancel(errKilled)
			}
		}
	})
	reading.Wait()
	err = cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return most, cause
	}
	if most.Err != "" {
		err = errors.New(most.Err)
	}
	return most, err
}
