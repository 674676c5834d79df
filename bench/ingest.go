// This file measures the speed of adding URLs, and the space that they take.

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

func ingest(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	s, l, err := r.ingested(src, r.shared(), nil)
	if err != nil {
		return err
	}
	return r.leave(s, l.set)
}

// ingested adds all URLs to a new store, scheduled ones with the due time due.
func (r *run) ingested(src source, dir string, due func() time.Time) (*subject, *loader, error) {
	gen := generating(src, following(0))
	r.measure("generator.cpu", gen/1e3, "us")
	if err := os.RemoveAll(dir); err != nil {
		return nil, nil, err
	}
	s, err := openStore(r.ctx, dir, r.cfg, r.cfg.options())
	if err != nil {
		return nil, nil, err
	}
	r.measure("disk.empty", diskBytes(s.dir), "B")
	runtime.GC()
	r.measure("anon.before", anonymousMemory(), "B")
	l := r.loader(s, src)
	l.due = due
	w := r.watch("add", s, l.added.Load, calls{"add": {&l.calls}})
	from := usageNow()
	err = l.to(r.cfg.URLs)
	r.added(l, from, gen)
	if err == nil {
		r.settled("settle", s.dir)
	}
	w.stop()
	r.measure("anon.peak", w.peak, "B")
	if err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	r.weigh(s, l, from)
	if st, want := s.Stats(), l.set.Waiting.N; st.Waiting+st.Scheduled != want || (st.Scheduled > 0) != (due != nil) {
		return nil, nil, errors.Join(fmt.Errorf("%d URLs wait, and %d for their time; %d were admitted", st.Waiting, st.Scheduled, want), s.close())
	}
	if err := s.checkSmall(); err != nil {
		return nil, nil, errors.Join(err, s.close())
	}
	return s, l, nil
}

// added records the cost of adding.
func (r *run) added(l *loader, from usage, gen float64) {
	n := l.added.Load()
	if n == 0 {
		return
	}
	wall := usageNow().at.Sub(from.at)
	r.cost("add", n, from, genTime(gen, n))
	r.measure("add.rate.net", float64(n)/(wall-l.gen).Seconds(), "/s") // as if URLs cost nothing
	r.latencies("add", merged([]*histogram{&l.calls}))
	r.tenths("add", r.cfg.URLs, from.at, l.tens)
	r.measure("urls", float64(n), "")
	r.measure("hosts", float64(l.s.Stats().Hosts), "")
	r.measure("url.bytes", float64(l.set.Bytes)/float64(n), "B")
	if l.refused > 0 || l.known > 0 {
		r.note("%d of %d URLs were refused by the frontier, %d were known to it", l.refused, r.cfg.URLs, l.known)
	}
	r.measure("written/byte.before", (writtenBytes()-from.written)/float64(l.set.Bytes), "")
}

// weigh records the size of the settled frontier.
func (r *run) weigh(s *subject, l *loader, from usage) {
	n := float64(l.added.Load())
	disk := diskBytes(s.dir)
	r.measure("disk", disk, "B")
	r.measure("disk/url", disk/n, "B")
	r.measure("written/byte", (writtenBytes()-from.written)/float64(l.set.Bytes), "")
	r.measure("cpu.settled", float64(cpuTime()-from.cpu)/1e3/n, "us")
	r.measure("anon.settled", anonymousMemory(), "B")
	st := s.Stats()
	r.measure("stats.memory", float64(st.MemoryBytes), "B")
	r.measure("stats.resident", float64(st.Resident), "B")
	r.measure("heap", heapBytes(), "B")
}
