// This file measures how URLs get out, and how the disk gets its room back.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

// drainer hands out URLs to workers that report them at once.
type drainer struct {
	r      *run
	s      *subject
	out    atomic.Int64 // URLs handed out and reported
	each   int64        // a tenth of all
	until  time.Time    // when take ends at the latest; zero: never
	nexts  []*histogram
	dones  []*histogram
	mu     sync.Mutex
	tally  tally                 // guarded by mu
	tens   [10]time.Time         // when each tenth was out
	failed atomic.Pointer[error] // of the first worker that could not continue
}

func (r *run) drainer(s *subject, n int64, workers int) *drainer {
	d := &drainer{r: r, s: s, each: max(n/10, 1)}
	for range workers {
		d.nexts, d.dones = append(d.nexts, &histogram{}), append(d.dones, &histogram{})
	}
	return d
}

// take hands out n URLs, or all if there are fewer.
func (d *drainer) take(n int64) error {
	var tickets atomic.Int64
	tickets.Store(n)
	ctx, cancel := context.WithCancel(d.r.ctx)
	defer cancel()
	var workers sync.WaitGroup
	for i := range d.nexts {
		workers.Go(func() {
			if err := d.work(ctx, &tickets, d.nexts[i], d.dones[i]); err != nil {
				d.failed.CompareAndSwap(nil, &err)
				cancel()
			}
		})
	}
	workers.Wait()
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (d *drainer) work(ctx context.Context, tickets *atomic.Int64, next, done *histogram) error {
	var out tally
	defer func() {
		d.mu.Lock()
		d.tally.plus(out)
		d.mu.Unlock()
	}()
	for tickets.Add(-1) >= 0 {
		begun := time.Now()
		if !d.until.IsZero() && begun.After(d.until) {
			return nil
		}
		l, err := d.s.Next(ctx)
		if errors.Is(err, frontier.ErrExhausted) {
			return nil
		}
		if err != nil {
			return err
		}
		got := time.Now()
		if err := d.s.Done(l, frontier.Outcome{}); err != nil {
			return err
		}
		next.record(got.Sub(begun))
		done.record(time.Since(got))
		out.add(l.Entry.URL)
		if n := d.out.Add(1); n%d.each == 0 && n/d.each <= 10 {
			d.tens[n/d.each-1] = time.Now()
		}
	}
	return nil
}

// empty returns an error unless all URLs that were added came out, each once.
func (d *drainer) empty(want tally) error {
	if d.tally != want {
		return fmt.Errorf("handed out %+v, added %+v", d.tally, want)
	}
	if _, _, err := d.s.TryNext(); !errors.Is(err, frontier.ErrExhausted) {
		return fmt.Errorf("after all URLs: %w", err)
	}
	if st := d.s.Stats(); st.Waiting+st.Leased+st.Scheduled != 0 {
		return fmt.Errorf("after all URLs: %+v", st)
	}
	return nil
}

func drain(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	s, have, err := r.takeOver(src)
	if err != nil {
		return err
	}
	r.settled("settle.before", s.dir)
	all := have.Waiting.N
	n := all
	if r.cfg.DrainURLs > 0 {
		n = min(n, int64(r.cfg.DrainURLs))
	}
	full := diskBytes(s.dir)
	r.measure("disk.full", full, "B")
	d := r.drainer(s, n, r.cfg.Workers)
	w := r.watch("drain", s, d.out.Load, calls{"next": d.nexts, "done": d.dones})
	err = d.drainAll(all, n)
	w.stop()
	r.measure("anon.peak", w.peak, "B")
	r.latencies("next", merged(d.nexts))
	r.latencies("done", merged(d.dones))
	if err == nil && n == all {
		err = d.empty(have.Waiting)
		r.watchDisk(s, full)
	}
	return errors.Join(err, s.checkSmall(), s.close(), os.RemoveAll(s.dir))
}

// drainAll takes n of all URLs, and checks the disk when a third of all is left.
func (d *drainer) drainAll(all, n int64) error {
	r := d.r
	from := usageNow()
	paused, pausedCPU := time.Duration(0), time.Duration(0)
	if first := all - all/3; first <= n {
		if err := d.take(first); err != nil {
			return err
		}
		begun, cpu := time.Now(), cpuTime()
		r.settled("settle.third", d.s.dir)
		r.measure("third.disk/url", diskBytes(d.s.dir)/float64(all-first), "B")
		r.measure("third.anon", anonymousMemory(), "B")
		paused, pausedCPU = time.Since(begun), cpuTime()-cpu
	}
	err := d.take(n - d.out.Load())
	begun := from.at
	from.at = from.at.Add(paused)
	r.cost("drain", d.out.Load(), from, 0)
	r.measure("drain.cpu.settling", float64(pausedCPU)/1e3/float64(n), "us")
	if !d.tens[9].IsZero() {
		r.tenths("drain", int(n), begun, d.tens[:])
	}
	return err
}

const (
	seenBytes = 16   // maximum size of a fingerprint on disk
	leftShare = 0.05 // part of a full store that an empty one may take in addition
)

// watchDisk waits, for a limited time, until an empty store has reclaimed its space.
func (r *run) watchDisk(s *subject, full float64) {
	known := float64(s.Stats().Known)
	enough := leftShare*full + seenBytes*known
	begun := time.Now()
	r.measure("disk.emptied", diskBytes(s.dir), "B")
	for diskBytes(s.dir) > enough && time.Since(begun) < r.cfg.Watch && r.ctx.Err() == nil {
		r.pause(time.Second)
	}
	took := time.Since(begun)
	if diskBytes(s.dir) <= enough {
		r.measure("disk.freed.time", took.Seconds(), "s")
	} else {
		r.note("after %v the folder of the empty frontier was still larger than %.0f %% of the full one and %d B for each known URL",
			took.Round(time.Second), 100*leftShare, seenBytes)
	}
	r.settled("settle.after", s.dir)
	left := diskBytes(s.dir)
	r.measure("disk.left", left, "B")
	r.measure("disk.left/known", left/known, "B")
	r.measure("disk.left/full", left/full, "")
	r.measure("anon.after", anonymousMemory(), "B")
}
