// This file measures loads with unusual distributions of hosts.

package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"
)

const shapeURLs = 1_000_000 // at most

// shaped adds n URLs and drains them: a quarter by one worker, unless that takes
// too long, the rest by all.
func (r *run) shaped(name string, hosts hostsBy, n int) error {
	src := r.made(hosts)
	dir := filepath.Join(r.dir(), name)
	s, err := openStore(r.ctx, dir, r.cfg, r.cfg.options())
	if err != nil {
		return err
	}
	l := r.loader(s, src)
	w := r.watch(name+".add", s, l.added.Load, calls{"add": {&l.calls}})
	from := usageNow()
	err = l.to(n)
	r.cost(name+".add", l.added.Load(), from, l.gen)
	w.stop()
	r.latencies(name+".add", merged([]*histogram{&l.calls}))
	r.measure(name+".hosts", float64(s.Stats().Hosts), "")
	r.measure(name+".anon.peak", w.peak, "B")
	if err != nil {
		return errors.Join(err, s.close())
	}
	r.settled(name+".settle", s.dir)
	var whole tally
	drain := func(what string, urls, workers int, until time.Time) error {
		d := r.drainer(s, int64(urls), workers)
		d.until = until
		w := r.watch(what, s, d.out.Load, calls{"next": d.nexts, "done": d.dones})
		from := usageNow()
		err := d.take(int64(urls))
		r.cost(what, d.out.Load(), from, 0)
		w.stop()
		r.latencies(what+".next", merged(d.nexts))
		r.latencies(what+".done", merged(d.dones))
		whole.plus(d.tally)
		d.tally = whole
		if until.IsZero() && err == nil {
			err = d.empty(l.set.Waiting)
		}
		return err
	}
	err = drain(name+".drain.1", n/4, 1, time.Now().Add(min(r.cfg.Phase, 5*time.Second)))
	if err == nil {
		err = drain(name+".drain", n, r.cfg.Workers, time.Time{})
	}
	return errors.Join(err, s.checkSmall(), s.close(), os.RemoveAll(dir))
}

// again marks the figures of a second run.
const again = ".again"

// against runs the mixed load and a shape in turns, twice each, and compares their better rates,
// and their lower CPU time, under the given names.
func (r *run) against(shape string, hosts hostsBy, names ...string) error {
	n := min(r.cfg.URLs, shapeURLs)
	mixed := zipfHosts(zipfUsual, 1.1)
	for _, suffix := range []string{"", again} {
		if err := r.shaped("mixed"+suffix, mixed, n); err != nil {
			return err
		}
		if err := r.shaped(shape+suffix, hosts, n); err != nil {
			return err
		}
	}
	f := figures{}
	for _, m := range r.out.Measures {
		f[m.Name] = m.Value
	}
	best := func(load, name string) (rate, cpu float64) {
		rate = max(f.at(load+"."+name+".rate"), f.at(load+again+"."+name+".rate"))
		return rate, min(f.at(load+"."+name+".cpu"), f.at(load+again+"."+name+".cpu"))
	}
	worst := math.Inf(1)
	for _, name := range names {
		rate, cpu := best(shape, name)
		mixedRate, mixedCPU := best("mixed", name)
		r.measure(name+"/mixed", rate/mixedRate, "")
		r.measure(name+".cpu/mixed", cpu/mixedCPU, "")
		worst = min(worst, rate/mixedRate)
	}
	r.measure("worst", worst, "")
	return nil
}

// oneHostOnly has no work for two workers at once: it is compared with one worker on the mixed
// load.
func oneHostOnly(r *run) error {
	r.note("a host has one lease at a time: its drain is compared with that of the mixed load by one worker")
	return r.against("one-host", oneHost, "add", "drain.1")
}

func oneURLHosts(r *run) error { return r.against("one-url-hosts", ownHost, "add", "drain") }

func skew(r *run) error {
	n := min(r.cfg.URLs, shapeURLs)
	for _, s := range []struct {
		name  string
		hosts hostsBy
	}{
		{"zipf-1.1", zipfHosts(zipfUsual, 1.1)},
		{"zipf-1.4", zipfHosts(zipfUsual, 1.4)},
		{"half", halfOf(zipfHosts(zipfUsual, 1.1))},
	} {
		if err := r.shaped(s.name, s.hosts, n); err != nil {
			return err
		}
	}
	return nil
}

const wideHosts = 5_000_000

// wide is ingest with a great many hosts.
func wide(r *run) error {
	if r.cfg.Hosts == 0 {
		r.cfg.Hosts = min(wideHosts, r.cfg.URLs/2)
	}
	n := uint64(r.cfg.Hosts)
	src := r.made(everyHost(n, uint64(r.cfg.URLs), zipfHosts(n, 1.1)))
	s, l, err := r.ingested(src, r.dir(), nil)
	if err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	begun := time.Now()
	if s, err = openStore(r.ctx, r.dir(), r.cfg, r.cfg.options()); err != nil {
		return err
	}
	r.measure("reopen.clean", time.Since(begun).Seconds(), "s")
	d := r.drainer(s, l.set.Waiting.N, r.cfg.Workers)
	w := r.watch("drain", s, d.out.Load, calls{"next": d.nexts, "done": d.dones})
	from := usageNow()
	err = d.take(l.set.Waiting.N)
	r.cost("drain", d.out.Load(), from, 0)
	w.stop()
	r.latencies("next", merged(d.nexts))
	r.latencies("done", merged(d.dones))
	if err == nil {
		err = d.empty(l.set.Waiting)
	}
	return errors.Join(err, s.checkSmall(), s.close())
}
