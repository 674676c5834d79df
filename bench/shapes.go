// This file measures loads whose hosts are not those of a usual crawl.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

const shapeURLs = 1_000_000 // at most

// shaped adds n URLs and drains them: a quarter by one worker, unless that takes
// too long, the rest by all.
func (r *run) shaped(name string, hosts hostsBy, n int) (f figures, err error) {
	src := r.made(hosts)
	dir := filepath.Join(r.dir(), name)
	s, err := openStore(r.ctx, dir, r.cfg, r.cfg.options())
	if err != nil {
		return nil, err
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
		return nil, errors.Join(err, s.close())
	}
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
	f = figures{}
	for _, m := range r.out.Measures {
		f[m.Name] = m.Value
	}
	return f, errors.Join(err, s.checkSmall(), s.close(), os.RemoveAll(dir))
}

// against compares a shape with the mixed load, in what names say, and measures
// the worst.
func (r *run) against(shape string, f figures, names ...string) {
	worst := 0.0
	for i, name := range names {
		x := f.at(shape+"."+name+".rate") / f.at("mixed."+name+".rate")
		r.measure(name+"/mixed", x, "")
		if i == 0 || x < worst {
			worst = x
		}
	}
	r.measure("worst", worst, "")
}

// oneHostOnly has no two workers who could work at once: it is compared with one
// worker on the mixed load.
func oneHostOnly(r *run) error {
	n := min(r.cfg.URLs, shapeURLs)
	if _, err := r.shaped("mixed", zipfHosts(zipfUsual, 1.1), n); err != nil {
		return err
	}
	f, err := r.shaped("one-host", oneHost, n)
	if err != nil {
		return err
	}
	r.against("one-host", f, "add", "drain.1")
	r.note("a host has one lease at a time: its drain is compared with that of the mixed load by one worker")
	return nil
}

func oneURLHosts(r *run) error {
	n := min(r.cfg.URLs, shapeURLs)
	if _, err := r.shaped("mixed", zipfHosts(zipfUsual, 1.1), n); err != nil {
		return err
	}
	f, err := r.shaped("one-url-hosts", ownHost, n)
	if err != nil {
		return err
	}
	r.against("one-url-hosts", f, "add", "drain")
	return nil
}

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
		if _, err := r.shaped(s.name, s.hosts, n); err != nil {
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
	s, l, err := r.ingested(src, r.dir())
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
