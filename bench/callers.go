// This file adds URLs with many callers at once, each call waiting for the disk.

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

// synced measures Add when every commit must survive a loss of power.
func synced(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	r.cfg.Sync = true
	for _, c := range []struct{ callers, each int }{{16, 100}, {256, 1}, {1, 1000}} {
		s, err := openStore(r.ctx, r.dir(), r.cfg, r.cfg.options())
		if err != nil {
			return err
		}
		err = r.addTogether(s, src, fmt.Sprintf("%dx%d", c.callers, c.each), c.callers, c.each)
		if err := errors.Join(err, s.checkSmall(), s.close(), os.RemoveAll(r.dir())); err != nil {
			return err
		}
	}
	return nil
}

// addTogether adds new URLs for as long as a phase lasts.
func (r *run) addTogether(s *subject, src source, name string, callers, each int) error {
	var taken, added atomic.Int64
	fresh := func(first int) func(int) (int, bool) {
		return func(i int) (int, bool) { return first + i, true }
	}
	gen := generating(src, fresh(0))
	adds := make([]*histogram, callers)
	errs := make([]error, callers)
	for i := range adds {
		adds[i] = &histogram{}
	}
	w := r.watch(name, s, added.Load, calls{"add": adds})
	from := usageNow()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			var p page
			for time.Since(from.at) < r.cfg.Phase && r.ctx.Err() == nil {
				entries := p.fill(src, each, fresh(int(taken.Add(int64(each)))-each))
				begun := time.Now()
				n, err := s.Add(r.ctx, entries...)
				adds[i].record(time.Since(begun))
				added.Add(int64(n))
				if bad := frontier.EntryErrors(err); err != nil && len(bad) == 0 {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	n := added.Load()
	r.cost(name, n, from, genTime(gen, n))
	w.stop()
	r.latencies(name+".add", merged(adds))
	if waiting := s.Stats().Waiting; waiting != n {
		errs = append(errs, fmt.Errorf("%d URLs wait, %d were admitted", waiting, n))
	}
	return errors.Join(errs...)
}
