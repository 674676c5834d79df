// This file crawls a web with a real frontier, in virtual time.

package recrawlsim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/simclock"
)

// RunFrontier crawls a scenario with a frontier and a recrawl.Scheduler. The frontier hands out
// what is due, at the pace of the hosts; each Done returns the next visit of the URL, and stores
// its record of 12 bytes as the URL's Meta. When nothing is due the crawler waits, and catches up
// within a quarter of a day; it fetches nothing early. The frontier's invariants are checked at the
// end.
func RunFrontier(s Scenario, o frontier.Options) (result Result, err error) {
	w := newWeb(s)
	clock := simclock.New(start)
	o.Clock, o.KeepOpen = clock, true
	o.Delay = frontier.FixedDelay(0)
	if s.HostMost > 0 {
		o.Delay = frontier.FixedDelay(span(1 / s.HostMost))
	}
	f, err := frontier.Open(context.Background(), o)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := &frontierRun{run: newRun(w), f: f, clock: clock, s: newScheduler(&Web{w})}
	if err := r.add(); err != nil {
		return Result{}, err
	}
	if err := r.crawl(); err != nil {
		return Result{}, err
	}
	return r.finish(), f.Check()
}

func span(days float64) time.Duration { return time.Duration(days * 24 * float64(time.Hour)) }

type frontierRun struct {
	*run
	f     *frontier.Frontier
	clock *simclock.Clock
	s     *recrawl.Scheduler
}

func (r *frontierRun) add() error {
	var entries []frontier.Entry
	for i := range r.pages {
		p := &r.pages[i]
		page, _ := r.s.Admit(p.seen, uint32(p.host), start)
		record, err := page.AppendBinary(nil)
		if err != nil {
			return err
		}
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", p.host, i), Weight: p.seen, Meta: record})
	}
	_, err := r.f.Add(context.Background(), entries...)
	return err
}

func (r *frontierRun) crawl() error {
	budget, steps := r.Budget, r.Steps
	tokens, sampled := 0., 0.
	for now := 0.; now < r.Length; now += 1 / budget {
		if len(steps) > 0 && now >= steps[0].Day {
			budget = r.Budget * steps[0].Times
			steps = steps[1:]
			if err := r.s.SetBudget(budget / 86400); err != nil {
				return err
			}
		}
		if now >= sampled {
			r.Prices = append(r.Prices, r.s.Stats().Price)
			sampled++
		}
		r.clock.Set(at(now))
		for tokens = min(tokens+1, 1+budget/4); tokens >= 1; {
			fetched, err := r.step(now)
			if err != nil {
				return err
			}
			if !fetched {
				break
			}
			tokens--
		}
	}
	return nil
}

// step hands out URLs until one is fetched, or none is due.
func (r *frontierRun) step(now float64) (bool, error) {
	for {
		lease, _, err := r.f.TryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var i int
		var host uint32
		if _, err := fmt.Sscanf(lease.Entry.URL, "http://h%d.example/%d", &host, &i); err != nil {
			return false, err
		}
		page := recrawl.Page{Host: host}
		if err := page.UnmarshalBinary(lease.Entry.Meta); err != nil {
			return false, err
		}
		page, when := r.s.Recheck(page, at(now))
		out := frontier.Outcome{Next: when}
		fetch := !when.After(at(now))
		if fetch {
			v := r.fetch(i, now)
			visit := recrawl.Visit{At: at(now), Outcome: recrawl.Unchanged}
			out.Result = frontier.Unchanged
			if v.Changed {
				out.Result, visit.Outcome = frontier.Changed, recrawl.Changed
			}
			if v.Modified >= 0 {
				visit.Modified = at(v.Modified)
			}
			page, _ = r.s.Done(page, visit)
			out.Next = page.Due
		} else { // it is not worth it yet: the host was not contacted
			r.Moved++
			out.Result = frontier.PutOff
		}
		if out.Meta, err = page.AppendBinary(nil); err != nil {
			return false, err
		}
		if err := r.f.Done(lease, out); err != nil {
			return false, err
		}
		if fetch {
			return true, nil
		}
	}
}
