// This file adds links most of which are known, like those of crawled pages.

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

const newIn = 20 // one of this many links is new

func known(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	s, have, err := r.takeOver(src)
	if err != nil {
		return err
	}
	n := have.Next
	r.measure("known", float64(n), "")
	rng := rand.New(rand.NewPCG(r.cfg.Seed, 5))
	popular := zipfHosts(uint64(n), 1.1)
	step := uint64(float64(n)*0.618) | 1 // the popular ones are not neighbours
	for gcd(step, uint64(n)) != 1 {
		step += 2
	}
	draws := []struct {
		name string
		draw func() int
	}{
		{"even", func() int { return rng.IntN(n) }},
		{"popular", func() int { return int(popular(0, rng.Uint64()) * step % uint64(n)) }},
	}
	for _, d := range draws {
		if err := r.offer(s, src, &have, d.name, d.draw); err != nil {
			return errors.Join(err, s.close())
		}
	}
	return errors.Join(s.checkSmall(), r.leave(s, have))
}

// offer adds links for as long as a phase lasts.
func (r *run) offer(s *subject, src source, have *set, name string, draw func() int) error {
	fresh := have.Fresh
	number := func(i int) (int, bool) {
		if i%newIn == 0 {
			fresh++
			return fresh - 1, true
		}
		return draw(), false
	}
	gen := generating(src, number)
	fresh = have.Fresh
	r.measure(name+".generator.cpu", gen/1e3, "us")
	var (
		p       page
		adds    histogram
		offered atomic.Int64
		making  time.Duration
	)
	w := r.watch(name, s, offered.Load, calls{"add": {&adds}})
	defer w.stop()
	from := usageNow()
	for time.Since(from.at) < r.cfg.Phase {
		begun := time.Now()
		entries := p.fill(src, perCall, number)
		made := time.Now()
		added, err := s.Add(r.ctx, entries...)
		adds.record(time.Since(made))
		making += made.Sub(begun)
		if err != nil {
			return err
		}
		if int64(added) != p.fresh.N {
			return fmt.Errorf("of %d new links %d were admitted", p.fresh.N, added)
		}
		have.Fresh = fresh
		have.Waiting.plus(p.fresh)
		offered.Add(perCall)
	}
	n := offered.Load()
	wall := time.Since(from.at)
	r.cost(name, n, from, genTime(gen, n))
	r.measure(name+".rate.net", float64(n)/(wall-making).Seconds(), "/s")
	r.latencies(name+".add", merged([]*histogram{&adds}))
	return nil
}
