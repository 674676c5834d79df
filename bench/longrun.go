// This file fills and empties a frontier repeatedly and checks whether it grows or slows down.

package main

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const (
	lowShare = 4      // the set is emptied to this fraction
	warmUp   = 1. / 6 // part of the time that is ignored for slopes
	minTeeth = 4      // for a slope
)

// tooth is one time up and down.
type tooth struct {
	hours  float64 // since the start, at its middle
	known  float64 // URLs ever added, at its end
	values map[string]float64
}

// longrun stores no known URLs: fingerprints are kept on disk forever by design, and would hide any
// other drift. longrunKnown stores them, and reports how much each URL ever added has left behind.
func longrun(r *run) error      { return r.sawtooth(true) }
func longrunKnown(r *run) error { return r.sawtooth(false) }

func (r *run) sawtooth(noDedup bool) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	o := r.cfg.options()
	o.NoDedup = noDedup
	s, err := openStore(r.ctx, r.dir(), r.cfg, o)
	if err != nil {
		return err
	}
	high, low := int64(r.cfg.URLs), int64(r.cfg.URLs/lowShare)
	l, d := r.loader(s, src), r.drainer(s, endless, r.cfg.Workers)
	w := r.watch("sawtooth", s, func() int64 { return l.added.Load() + d.out.Load() }, calls{"add": {&l.calls}, "next": d.nexts, "done": d.dones})
	begun := time.Now()
	var teeth []tooth
	for time.Since(begun) < r.cfg.Time && err == nil {
		var t tooth
		t, err = r.tooth(l, d, begun, high, low)
		if err == nil {
			teeth = append(teeth, t)
			r.logf("tooth %d: in %s/s, p99 %s; out %s/s; at the top %s of memory and %s of disk", len(teeth), count(t.values["add.rate"]),
				show(t.values["add.p99"], "us"), count(t.values["drain.rate"]), show(t.values["anon.high"], "B"), show(t.values["disk.high"], "B"))
		}
	}
	w.stop()
	st := s.Stats()
	r.measure("teeth", float64(len(teeth)), "")
	r.measure("added", float64(l.added.Load()), "")
	r.measure("handed.out", float64(d.out.Load()), "")
	r.measure("anon.peak", w.peak, "B")
	r.latencies("add", merged([]*histogram{&l.calls}))
	r.latencies("next", merged(d.nexts))
	r.latencies("done", merged(d.dones))
	r.slopes(teeth)
	if want := l.added.Load() - d.out.Load(); err == nil && st.Waiting != want {
		err = fmt.Errorf("%d URLs wait, want %d", st.Waiting, want)
	}
	if err == nil { // everything left comes out, each URL once
		err = errors.Join(d.take(st.Waiting), d.empty(l.set.Waiting))
	}
	return errors.Join(err, s.checkSmall(), s.close())
}

// tooth adds up to high and takes down to low.
func (r *run) tooth(l *loader, d *drainer, begun time.Time, high, low int64) (tooth, error) {
	v := map[string]float64{}
	from := time.Now()
	adds := merged([]*histogram{&l.calls})
	start := l.added.Load()
	for l.s.Stats().Waiting < high {
		n := l.set.Next
		number := following(n)
		if end := l.src.size(); n+perCall > end { // a list is at its end
			number = func(i int) (int, bool) { return n + i - end, true }
		}
		if err := l.call(perCall, number); err != nil {
			return tooth{}, err
		}
		l.set.Next += perCall
	}
	top := time.Now()
	v["add.rate"] = float64(l.added.Load()-start) / top.Sub(from).Seconds()
	v["disk.high"], v["anon.high"] = diskBytes(l.s.dir), anonymousMemory()
	v["add.p99"] = float64(merged([]*histogram{&l.calls}).since(adds).at(0.99)) / 1e3
	nexts, dones, out := merged(d.nexts), merged(d.dones), d.out.Load()
	if err := d.take(l.s.Stats().Waiting - low); err != nil {
		return tooth{}, err
	}
	end := time.Now()
	v["drain.rate"] = float64(d.out.Load()-out) / end.Sub(top).Seconds()
	v["disk.low"], v["anon.low"] = diskBytes(l.s.dir), anonymousMemory()
	v["next.p99"] = float64(merged(d.nexts).since(nexts).at(0.99)) / 1e3
	v["done.p99"] = float64(merged(d.dones).since(dones).at(0.99)) / 1e3
	v["stats.memory"] = float64(l.s.Stats().MemoryBytes)
	return tooth{from.Add(end.Sub(from) / 2).Sub(begun).Hours(), float64(l.added.Load()), v}, nil
}

// slopes reports for each figure its change per hour, and that change over the whole run relative
// to its mean: as estimated, and the minimum in the bad direction (two standard errors below).
func (r *run) slopes(teeth []tooth) {
	for len(teeth) > 0 && teeth[0].hours < warmUp*r.cfg.Time.Hours() {
		teeth = teeth[1:]
	}
	if len(teeth) < minTeeth {
		r.note("%d times up and down after the first sixth of the time are too few for slopes: let it run longer or with fewer URLs", len(teeth))
		return
	}
	var known []float64
	for _, t := range teeth {
		known = append(known, t.known)
	}
	for _, name := range []string{"anon.low", "disk.low"} {
		var y []float64
		for _, t := range teeth {
			y = append(y, t.values[name])
		}
		slope, _, _ := regression(known, y)
		r.measure(name+"/added", slope, "B")
	}
	units := map[string]string{"rate": "/s", "p99": "us"}
	for _, name := range []string{"anon.high", "anon.low", "disk.high", "disk.low", "stats.memory", "add.p99", "next.p99", "done.p99", "add.rate", "drain.rate"} {
		var x, y []float64
		for _, t := range teeth {
			if v := t.values[name]; !math.IsNaN(v) {
				x, y = append(x, t.hours), append(y, v)
			}
		}
		if len(x) < minTeeth {
			continue
		}
		unit := "B"
		for suffix, u := range units {
			if name[len(name)-min(len(name), len(suffix)):] == suffix {
				unit = u
			}
		}
		slope, fault, mean := regression(x, y)
		hours := x[len(x)-1] - x[0]
		r.measure(name+".mean", mean, unit)
		r.measure(name+".slope", slope, unit+"/h")
		r.measure(name+".drift", 100*slope*hours/mean, "%")
		if unit == "/s" {
			slope = -slope
		}
		r.measure(name+".drift.sure", 100*max(0, slope-2*fault)*hours/mean, "%")
	}
}

// regression fits a line by least squares. fault is the slope's standard error.
func regression(x, y []float64) (slope, fault, mean float64) {
	n := float64(len(x))
	var mx float64
	for i := range x {
		mx += x[i] / n
		mean += y[i] / n
	}
	var sxx, sxy, rest float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - mean)
	}
	slope = sxy / sxx
	for i := range x {
		d := y[i] - mean - slope*(x[i]-mx)
		rest += d * d
	}
	return slope, math.Sqrt(rest / math.Max(n-2, 1) / sxx), mean
}
