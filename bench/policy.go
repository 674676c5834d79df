// This file runs crawls in virtual time and compares how busy the frontier keeps their workers with
// other policies, including Mercator as published.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/policysim"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/simclock"
)

const policyURLs = 2_000_000

type namedCrawl struct {
	name string
	policysim.Crawl
}

// crawls are the workloads that separate policies. With fewer URLs than policyURLs they are smaller
// and shorter.
func crawls(urls int, seed uint64) []namedCrawl {
	second, minute := time.Second, time.Minute
	all := []namedCrawl{
		{"T100.D1", policysim.Crawl{Workers: 100, Zipf: 1.1, Delay: second, Length: 30 * minute}},
		{"T100.D1.half", policysim.Crawl{Workers: 100, Zipf: 1.1, Half: true, Delay: second, Length: 30 * minute}},
		{"T1000.D1", policysim.Crawl{Workers: 1000, Zipf: 1.1, Delay: second, Length: 10 * minute}},
		{"T1000.D1.half", policysim.Crawl{Workers: 1000, Zipf: 1.1, Half: true, Delay: second, Length: 10 * minute}},
		{"T100.D10", policysim.Crawl{Workers: 100, Zipf: 1.1, Delay: 10 * second, Length: 30 * minute}},
		{"T100.D1.Zipf1.4", policysim.Crawl{Workers: 100, Zipf: 1.4, Delay: second, Length: 30 * minute}},
	}
	for i := range all {
		c := &all[i].Crawl
		c.URLs, c.Hosts, c.Seed = min(urls, policyURLs), min(urls, policyURLs)/2, seed
		if c.URLs < policyURLs {
			c.Workers /= 5
			c.Length /= 12
			if c.URLs < policyURLs/20 {
				c.Length /= 10
			}
		}
	}
	return all
}

func policy(r *run) error {
	var (
		mu    sync.Mutex
		worst = 100.0
		errs  []error
		all   sync.WaitGroup
		turns = make(chan struct{}, runtime.GOMAXPROCS(0))
	)
	if r.cfg.URLs < policyURLs {
		r.note("with fewer than %d URLs the crawls have a fifth of the workers and are shorter", policyURLs)
	}
	for _, c := range crawls(r.cfg.URLs, r.cfg.Seed) {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			if r.ctx.Err() != nil {
				return
			}
			got, err := r.comparePolicies(c.Crawl)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			if err != nil {
				return
			}
			for _, m := range got {
				r.measure(c.name+"."+m.Name, m.Value, m.Unit)
				if m.Name == "ours/best" {
					worst = min(worst, m.Value)
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(append(errs, r.ctx.Err())...); err != nil {
		return err
	}
	r.measure("worst", worst, "%")
	return nil
}

// comparePolicies runs one crawl under every policy.
func (r *run) comparePolicies(c policysim.Crawl) ([]measure, error) {
	var out []measure
	add := func(name string, value float64, unit string) {
		out = append(out, measure{Name: name, Value: value, Unit: unit})
	}
	ours := &crawled{ctx: r.ctx, clock: simclock.New(time.Unix(0, 0)), leases: map[int32]frontier.Lease{}}
	if err := ours.open(c); err != nil {
		return nil, err
	}
	busy := c.Run(ours, ours.look).Busy
	if err := errors.Join(ours.err, ours.f.Close()); err != nil {
		return nil, err
	}
	add("ours", 100*busy, "%")
	best := 0.0
	rival := func(name string, p policysim.Policy) {
		if r.ctx.Err() != nil {
			return
		}
		b := c.Run(interruptible{p, r.ctx}, nil).Busy
		best = max(best, b)
		add(name, 100*b, "%")
	}
	published := policysim.NewPublished(c, 3*c.Workers)
	rival("published", published)
	rival("bubing", policysim.TimeOrder(c))
	for _, b := range []int{3, 10, 50} {
		rival(fmt.Sprintf("tokens.B%dT", b), policysim.FixedB(c, b*c.Workers, 32))
	}
	add("ours/best", 100*busy/best, "%")
	add("bound.most", float64(ours.bound), "")
	add("bound.needed", float64(c.Workers)*(1+float64(c.Delay)/float64(policysim.MeanFetch)), "")
	add("published.backqueues.most", float64(published.MaxResident), "")
	add("published.pulls/refill", float64(published.Pulls)/float64(max(published.Refills, 1)), "")
	return out, r.ctx.Err()
}

// interruptible is a policy that offers nothing more when ctx ends.
type interruptible struct {
	policysim.Policy
	ctx context.Context
}

func (p interruptible) Next(now time.Duration) (policysim.URL, bool) {
	if p.ctx.Err() != nil {
		return policysim.URL{}, false
	}
	return p.Policy.Next(now)
}

func (p interruptible) Wake(now time.Duration) time.Duration {
	if p.ctx.Err() != nil {
		return policysim.Never
	}
	return p.Policy.Wake(now)
}

// crawled is the frontier as a policy of policysim. After its first error it stays idle.
type crawled struct {
	ctx    context.Context
	f      *frontier.Frontier
	clock  *simclock.Clock
	leases map[int32]frontier.Lease // by host
	found  int                      // makes URLs unique
	wake   time.Time
	bound  int64
	err    error
}

func (s *crawled) open(c policysim.Crawl) (err error) {
	s.f, err = frontier.Open(s.ctx, frontier.Options{
		Clock:        s.clock,
		MemoryBudget: 4 << 30,
		Delay:        frontier.FixedDelay(c.Delay),
		Selector:     selector.BiasedRandom(c.Seed),
		Prioritizer:  frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return int(e.Weight) }),
	})
	return err
}

func (s *crawled) failed(err error) bool {
	if s.err == nil {
		s.err = err
	}
	if s.err == nil {
		s.err = s.ctx.Err()
	}
	return s.err != nil
}

func (s *crawled) entry(u policysim.URL) frontier.Entry {
	s.found++
	return frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", u.Host, s.found), Weight: float64(u.Priority)}
}

// Add implements policysim.Policy, as do Next, Wake and Done.
func (s *crawled) Add(urls []policysim.URL) {
	entries := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		entries[i] = s.entry(u)
	}
	if !s.failed(nil) {
		_, err := s.f.Add(s.ctx, entries...)
		s.failed(err)
	}
}

func (s *crawled) Next(now time.Duration) (policysim.URL, bool) {
	if s.failed(nil) {
		return policysim.URL{}, false
	}
	s.clock.Set(time.Unix(0, 0).Add(now))
	l, at, err := s.f.TryNext()
	if errors.Is(err, frontier.ErrNotDue) {
		s.wake = at
		return policysim.URL{}, false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(l.Host, "h"), ".")
	host, bad := strconv.Atoi(name)
	if s.failed(errors.Join(err, bad)) {
		return policysim.URL{}, false
	}
	s.leases[int32(host)] = l
	return policysim.URL{Host: int32(host), Priority: uint8(l.Priority)}, true
}

func (s *crawled) Wake(time.Duration) time.Duration {
	if s.err != nil || s.wake.IsZero() {
		return policysim.Never
	}
	return s.wake.Sub(time.Unix(0, 0))
}

func (s *crawled) Done(now time.Duration, u, found policysim.URL) {
	if s.failed(nil) {
		return
	}
	s.clock.Set(time.Unix(0, 0).Add(now))
	s.failed(s.f.Done(s.leases[u.Host], frontier.Outcome{Add: []frontier.Entry{s.entry(found)}}))
	delete(s.leases, u.Host)
}

func (s *crawled) look() { s.bound = max(s.bound, s.f.Stats().Bound) }
