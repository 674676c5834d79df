// This file measures a continuous crawl: workers take a URL, report it, and add as many as they
// took, on a full store.

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

const cycleAdds = 100 // URLs in a call of Add

func cycle(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	s, have, err := r.filled(src, r.dir(), r.cfg.URLs)
	if err != nil {
		return err
	}
	r.settled("settle", s.dir)
	var fresh atomic.Int64
	cycles := int64(0)
	for _, c := range []struct {
		name    string
		workers int
		links   bool
	}{{"16", 16, false}, {"64", 64, false}, {"64.links", 64, true}} {
		y := &cycler{r: r, s: s, src: src, fresh: &fresh, links: c.links}
		if err := y.run(c.name, c.workers); err != nil {
			return errors.Join(err, s.close())
		}
		cycles += y.count.Load()
	}
	st := s.Stats()
	if want := have.Waiting.N + fresh.Load() - cycles; st.Waiting != want || st.Duplicates != 0 {
		err = fmt.Errorf("%d URLs wait, want %d; %d taken for known", st.Waiting, want, st.Duplicates)
	}
	return errors.Join(err, s.checkSmall(), s.close())
}

// cycler is one phase.
type cycler struct {
	r     *run
	s     *subject
	src   source
	fresh *atomic.Int64 // URLs of the source's second set that were added
	links bool          // URLs are added as the link of a Done, one each
	count atomic.Int64

	adds, nexts, dones []*histogram
}

func (c *cycler) run(name string, workers int) error {
	r := c.r
	gen := generating(c.src, func(i int) (int, bool) { return int(c.fresh.Load()) + i, true })
	for range workers {
		c.adds, c.nexts, c.dones = append(c.adds, &histogram{}), append(c.nexts, &histogram{}), append(c.dones, &histogram{})
	}
	w := r.watch(name, c.s, c.count.Load, calls{"next": c.nexts, "done": c.dones, "add": c.adds})
	from := usageNow()
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.Phase)
	defer cancel()
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			if err := c.work(ctx, i); err != nil {
				failed.CompareAndSwap(nil, &err)
				cancel()
			}
		})
	}
	all.Wait()
	n := c.count.Load()
	r.cost(name, n, from, genTime(gen, n))
	w.stop()
	r.measure(name+".anon.peak", w.peak, "B")
	r.latencies(name+".next", merged(c.nexts))
	r.latencies(name+".done", merged(c.dones))
	r.latencies(name+".add", merged(c.adds))
	if err := failed.Load(); err != nil {
		return *err
	}
	return r.ctx.Err()
}

// work runs until ctx ends. It reports and replaces what it took.
func (c *cycler) work(ctx context.Context, i int) error {
	var p page
	owed := 0
	add := func(n int) ([]frontier.Entry, error) {
		first := int(c.fresh.Add(int64(n))) - n
		entries := p.fill(c.src, n, func(i int) (int, bool) { return first + i, true })
		if c.links {
			return entries, nil
		}
		begun := time.Now()
		_, err := c.s.Add(context.Background(), entries...)
		c.adds[i].record(time.Since(begun))
		return nil, err
	}
	for ctx.Err() == nil {
		begun := time.Now()
		l, err := c.s.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		got := time.Now()
		c.nexts[i].record(got.Sub(begun))
		var o frontier.Outcome
		if c.links {
			if o.Add, err = add(1); err != nil {
				return err
			}
			got = time.Now()
		}
		if err := c.s.Done(l, o); err != nil {
			return err
		}
		c.dones[i].record(time.Since(got))
		c.count.Add(1)
		if owed++; !c.links && owed == cycleAdds {
			if _, err := add(owed); err != nil {
				return err
			}
			owed = 0
		}
	}
	if owed > 0 && !c.links {
		_, err := add(owed)
		return err
	}
	return nil
}
