// This file looks at the process while a scenario runs: memory ten times a
// second, and all the rest once.

package main

import (
	"fmt"
	"math"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	glance    = 100 * time.Millisecond
	lookEvery = 10 // glances
)

// watcher makes a series.
type watcher struct {
	r     *run
	s     *subject // may be nil
	name  string
	urls  func() int64
	calls calls
	begun time.Time
	every int // glances from point to point
	quit  chan struct{}
	ended sync.WaitGroup

	peak   float64 // of anonymous memory
	points []point
	last   map[string]*latencies
}

// calls are histograms by kind of call.
type calls map[string][]*histogram

// watch begins a series; urls counts them.
func (r *run) watch(name string, s *subject, urls func() int64, of calls) *watcher {
	w := &watcher{
		r: r, s: s, name: name, urls: urls, calls: of, begun: time.Now(), every: lookEvery,
		quit: make(chan struct{}), peak: math.NaN(), last: map[string]*latencies{},
	}
	w.ended.Go(w.run)
	return w
}

// stop ends the series and stores it.
func (w *watcher) stop() {
	close(w.quit)
	w.ended.Wait()
	w.r.out.Series = append(w.r.out.Series, series{w.r.name, w.name, w.points})
}

func (w *watcher) run() {
	t := time.NewTicker(glance)
	defer t.Stop()
	for n := 1; ; n++ {
		if m := anonymousMemory(); !(m <= w.peak) {
			w.peak = m
		}
		select {
		case <-w.quit:
			w.look()
			return
		case <-t.C:
		}
		if n%w.every == 0 {
			w.look()
		}
		if len(w.points) == 2000 { // long runs are seen from farther away
			w.thin()
		}
	}
}

type quantiles struct{ p50, p99, max time.Duration }

func (p *point) set(call string, q quantiles) {
	if p.Calls == nil {
		p.Calls = map[string][3]float64{}
	}
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	p.Calls[call] = [3]float64{us(q.p50), us(q.p99), us(q.max)}
}

func (w *watcher) look() {
	p := point{Seconds: time.Since(w.begun).Seconds(), URLs: w.urls(), Heap: heapBytes()}
	told := ""
	for call, hs := range w.calls {
		now := merged(hs)
		span := now
		if last := w.last[call]; last != nil {
			span = now.since(last)
		}
		w.last[call] = now
		if span.n > 0 {
			q := quantiles{span.at(0.5), span.at(0.99), span.max}
			p.set(call, q)
			told += fmt.Sprintf(", %s p99 %v", call, q.p99.Round(time.Microsecond))
		}
	}
	if n := len(w.points); n > 0 {
		p.Rate = float64(p.URLs-w.points[n-1].URLs) / (p.Seconds - w.points[n-1].Seconds)
	} else if p.Seconds > 0 {
		p.Rate = float64(p.URLs) / p.Seconds
	}
	p.Anon, p.Written = zeroNaN(anonymousMemory()), zeroNaN(writtenBytes())
	if w.s != nil {
		st := w.s.Stats()
		p.Memory, p.Waiting = st.MemoryBytes, st.Waiting
		if w.s.dir != "" {
			p.Disk = zeroNaN(diskBytes(w.s.dir))
		}
	}
	w.points = append(w.points, p)
	if len(w.points)%5 == 0 {
		w.r.logf("%s: %s URLs, %s/s, %s waiting%s, anonymous %s, disk %s", w.name, count(float64(p.URLs)),
			count(p.Rate), count(float64(p.Waiting)), told, show(p.Anon, "B"), show(p.Disk, "B"))
	}
}

// thin drops every second point.
func (w *watcher) thin() {
	kept := w.points[:0]
	for i := 1; i < len(w.points); i += 2 {
		kept = append(kept, w.points[i])
	}
	w.points = kept
	w.every *= 2
}

func zeroNaN(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// heapBytes returns the size of the Go heap, including garbage.
func heapBytes() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64())
}

const (
	quietFor   = 5 * time.Second
	quietBytes = 1 << 20 // bytes that may still be written in that time
)

// settle waits until hardly anything is written and the folder's size is stable, and returns how
// long that took, without the quiet time.
func (r *run) settle(dir string, limit time.Duration) (took time.Duration, quiet bool) {
	begun := time.Now()
	since, written, disk := begun, writtenBytes(), diskBytes(dir)
	for time.Since(begun) < limit && r.ctx.Err() == nil {
		if time.Since(since) >= min(quietFor, limit/2) {
			return since.Sub(begun), true
		}
		r.pause(min(500*time.Millisecond, limit/8))
		if w, d := writtenBytes(), diskBytes(dir); math.Abs(w-written) > quietBytes || math.Abs(d-disk) > quietBytes {
			since, written, disk = time.Now(), w, d
		}
	}
	return time.Since(begun), false
}

// pause waits, unless the run is interrupted.
func (r *run) pause(d time.Duration) {
	select {
	case <-r.ctx.Done():
	case <-time.After(d):
	}
}

// settled is settle, with a note of how it went.
func (r *run) settled(what, dir string) {
	took, quiet := r.settle(dir, r.cfg.Settle)
	r.measure(what+".time", took.Seconds(), "s")
	if !quiet {
		r.note("%s: the disk was not quiet after %v", what, r.cfg.Settle)
	}
}
