// This file adds URLs with one caller, 1,000 at a time, and counts what was admitted.

package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
)

const perCall = 1000

// loader adds the URLs of a source in order.
type loader struct {
	r     *run
	s     *subject
	src   source
	set   set
	calls histogram
	added atomic.Int64
	gen   time.Duration // wall clock spent making URLs
	tens  []time.Time   // when each tenth was in
	page  page
	due   func() time.Time // nil: at once

	refused int // entries that the frontier refused
	known   int // entries that were already known
}

func (r *run) loader(s *subject, src source) *loader { return &loader{r: r, s: s, src: src} }

// to adds URLs up to number n.
func (l *loader) to(n int) error {
	first := l.set.Next
	for l.set.Next < n {
		from := l.set.Next
		if err := l.call(min(perCall, n-from), following(from)); err != nil {
			return err
		}
		l.set.Next = min(from+perCall, n)
		for len(l.tens) < 10 && 10*(l.set.Next-first) >= (len(l.tens)+1)*(n-first) {
			l.tens = append(l.tens, time.Now())
		}
	}
	return nil
}

// call adds n URLs in one call.
func (l *loader) call(n int, number func(int) (int, bool)) error {
	begun := time.Now()
	entries := l.page.fill(l.src, n, number)
	for i := range entries {
		if l.due != nil {
			entries[i].NotBefore = l.due()
		}
	}
	made := time.Now()
	admitted, err := l.s.Add(l.r.ctx, entries...)
	done := time.Now()
	l.gen += made.Sub(begun)
	l.calls.record(done.Sub(made))
	bad := frontier.EntryErrors(err)
	if err != nil && len(bad) == 0 {
		if errors.Is(err, frontier.ErrFull) {
			st := l.s.Stats()
			err = fmt.Errorf("-budget %d MiB is too small for %d URLs of %d hosts: %w", l.r.cfg.budget()>>20, st.Known, st.Hosts, err)
		}
		return err
	}
	for _, e := range bad {
		var t tally
		t.add(entries[e.Index].URL)
		l.page.tally.minus(t)
		l.page.bytes -= int64(len(entries[e.Index].URL))
	}
	l.refused += len(bad)
	l.known += n - len(bad) - admitted
	l.set.Waiting.plus(l.page.tally)
	l.set.Waiting.plus(l.page.fresh)
	l.set.Bytes += l.page.bytes
	l.added.Add(int64(admitted))
	return nil
}

// tenths adds the speed of the first and the last tenth.
func (r *run) tenths(what string, n int, begun time.Time, tens []time.Time) {
	if len(tens) < 10 {
		return
	}
	each := float64(n) / 10
	first, last := each/tens[0].Sub(begun).Seconds(), each/tens[9].Sub(tens[8]).Seconds()
	r.measure(what+".first", first, "/s")
	r.measure(what+".last", last, "/s")
	r.measure(what+".last/first", last/first, "")
}
