// This file makes checkpoints of a running crawl.

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/backup"
)

// checkpointFlags are the flags about checkpoints.
type checkpointFlags struct {
	dir   string
	every time.Duration
	keep  int
}

func (c *checkpointFlags) define(fs *flagSet) {
	fs.StringVar(&c.dir, "checkpoint-dir", "", "keep copies of -dir, -seen and -stats, not of -warc, in this `folder`, made while the crawl goes on: every -checkpoint-every"+onSignal)
	fs.DurationVar(&c.every, "checkpoint-every", time.Hour, "`time` between two checkpoints, under -checkpoint-dir; 0: only on demand")
	fs.IntVar(&c.keep, "checkpoint-keep", 3, "how many checkpoints stay, under -checkpoint-dir")
}

// validate reports invalid values.
func (c *checkpointFlags) validate(o *options) {
	o.badIf(c.every < 0, "want >= 0", "checkpoint-every")
	o.badIf(c.keep < 1, "want >= 1", "checkpoint-keep")
}

// start makes checkpoints of parts until stop is called, and one whenever take is called. take is nil
// without -checkpoint-dir.
func (c *checkpointFlags) start(ctx context.Context, parts []backup.Part, log *slog.Logger) (take func(context.Context) (string, error), stop func(), err error) {
	run := declining(log)
	if c.dir != "" {
		k, err := backup.New(backup.Options{Dir: c.dir, Keep: c.keep, Every: c.every, Parts: parts, Logger: log})
		if err != nil {
			return nil, nil, err
		}
		take, run = k.Take, k.Run
	}
	ctx, cancel := context.WithCancel(ctx)
	demand, ignore := onDemand()
	var running sync.WaitGroup
	running.Go(func() { run(ctx, demand) })
	return take, func() {
		ignore()
		cancel()
		running.Wait()
	}, nil
}

// declining warns each time a signal asks for a checkpoint that the crawl does not make. Without a
// handler the signal would end the process.
func declining(log *slog.Logger) func(context.Context, <-chan struct{}) {
	return func(ctx context.Context, demand <-chan struct{}) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-demand:
				log.Warn("no checkpoint is made: there is no -checkpoint-dir")
			}
		}
	}
}
