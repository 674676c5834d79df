// This file measures a frontier in memory: Next and Done without a disk.

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

const (
	residentURLs = 3_000_000 // at most
	timedOne     = 16        // of so many calls: a look at the clock takes as long as a part of the call
)

func resident(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	n := min(r.cfg.URLs, residentURLs)
	gen := generating(src, following(0))
	for _, workers := range []int{1, 16} {
		name := fmt.Sprint(workers)
		s, err := openMemory(r.ctx, r.cfg.options())
		if err != nil {
			return err
		}
		l := r.loader(s, src)
		from := usageNow()
		if err := l.to(n); err != nil {
			return errors.Join(err, s.close())
		}
		if workers == 1 {
			r.cost("add", l.added.Load(), from, genTime(gen, l.added.Load()))
		}
		if err := errors.Join(r.takeAll(s, name, workers, l.set.Waiting), s.checkSmall(), s.close()); err != nil {
			return err
		}
	}
	return nil
}

// takeAll hands out and reports all URLs.
func (r *run) takeAll(s *subject, name string, workers int, want tally) error {
	nexts, dones := make([]*histogram, workers), make([]*histogram, workers)
	tallies, errs := make([]tally, workers), make([]error, workers)
	for i := range workers {
		nexts[i], dones[i] = &histogram{}, &histogram{}
	}
	var out atomic.Int64
	w := r.watch(name, s, out.Load, calls{"next": nexts, "done": dones})
	from := usageNow()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { tallies[i], errs[i] = takeResident(r.ctx, s, &out, nexts[i], dones[i]) })
	}
	all.Wait()
	r.cost(name, want.N, from, 0)
	w.stop()
	r.latencies(name+".next", merged(nexts))
	r.latencies(name+".done", merged(dones))
	var got tally
	for _, t := range tallies {
		got.plus(t)
	}
	if got != want && r.ctx.Err() == nil {
		errs = append(errs, fmt.Errorf("handed out %+v, added %+v", got, want))
	}
	return errors.Join(errs...)
}

func takeResident(ctx context.Context, s *subject, out *atomic.Int64, next, done *histogram) (t tally, err error) {
	for n := int64(1); ; n++ {
		timed := n%timedOne == 0
		var begun, got time.Time
		if timed {
			begun = time.Now()
		}
		l, err := s.Next(ctx)
		if errors.Is(err, frontier.ErrExhausted) {
			return t, nil
		}
		if err != nil {
			return t, err
		}
		if timed {
			got = time.Now()
			next.record(got.Sub(begun))
			out.Add(timedOne)
		}
		if err := s.Done(l, frontier.Outcome{}); err != nil {
			return t, err
		}
		if timed {
			done.record(time.Since(got))
		}
		t.add(l.Entry.URL)
	}
}
