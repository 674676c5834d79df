// This file measures scheduled URLs: their cost, compared with that of waiting URLs (ingest).

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// scheduledSpan is when the URLs become due: a month from now, in the course of a year.
const scheduledFrom, scheduledSpan = 30 * 24 * time.Hour, 365 * 24 * time.Hour

func scheduled(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(r.cfg.Seed, 9))
	from := time.Now().Add(scheduledFrom)
	s, l, err := r.ingested(src, r.dir(), func() time.Time { return from.Add(time.Duration(rng.Int64N(int64(scheduledSpan)))) })
	if err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	begun := usageNow()
	again, err := openStore(r.ctx, r.dir(), r.cfg, r.cfg.options())
	if err != nil {
		return err
	}
	now := usageNow()
	r.measure("open", now.at.Sub(begun.at).Seconds(), "s")
	r.measure("open.cpu", (now.cpu - begun.cpu).Seconds(), "s")
	if got, want := again.Stats().Scheduled, l.added.Load(); got != want {
		err = fmt.Errorf("%d URLs are scheduled after reopening, %d were", got, want)
	}
	return errors.Join(err, again.checkSmall(), again.close())
}
