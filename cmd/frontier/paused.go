// This file keeps a fully paused crawl alive until unpause.

package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/scope"
)

// lookAgain is the interval at which a worker of a paused crawl checks the pause.
const lookAgain = 200 * time.Millisecond

// whilePaused returns crawler.Options.Held: workers wait while the whole crawl is paused and has waiting
// URLs that are not parked.
func (s *settings) whilePaused(f *frontier.Frontier, c *atomic.Pointer[crawler.Crawler], log *slog.Logger) func(context.Context) bool {
	var told atomic.Bool
	var seen atomic.Int64 // when a pause was last seen, in nanoseconds
	return func(ctx context.Context) bool {
		if all, _ := f.Rule(scope.All()); all.Paused == scope.On {
			p := c.Load().Progress()
			if p.Frontier.Waiting <= p.Parked+p.NextRun {
				return false
			}
			seen.Store(time.Now().UnixNano())
			if !told.Swap(true) {
				log.Warn("the whole crawl is paused: " + s.unpausing() + ", Ctrl-C ends it")
			}
		} else if time.Now().UnixNano()-seen.Load() > int64(5*lookAgain) { // another worker's pause may have ended since this one's Next
			return false
		} else if told.Swap(false) {
			log.Info("the crawl goes on")
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(lookAgain):
			return true
		}
	}
}

// unpausing describes how to continue a paused crawl.
func (s *settings) unpausing() string {
	if s.dir == "" {
		return "its page lets it go on"
	}
	return "frontier unpause -dir " + s.dir + " '*' lets it go on"
}
