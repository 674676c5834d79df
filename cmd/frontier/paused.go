// This file keeps a crawl that is paused as a whole alive: it waits for unpause.

package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
)

// lookAgain is how often a worker of a paused crawl looks whether it goes on.
const lookAgain = 200 * time.Millisecond

// whilePaused is for crawler.Options.Held: workers wait while the whole crawl is paused and
// URLs wait that are not parked.
func (s *settings) whilePaused(f *frontier.Frontier, c *atomic.Pointer[crawler.Crawler], log *slog.Logger) func(context.Context) bool {
	var told atomic.Bool
	var seen atomic.Int64 // when the crawl was seen to be paused, in nanoseconds
	return func(ctx context.Context) bool {
		if all, _ := f.Rule(frontier.All()); all.Paused == frontier.On {
			p := c.Load().Progress()
			if p.Frontier.Waiting <= p.Parked+p.NextRun {
				return false
			}
			seen.Store(time.Now().UnixNano())
			if !told.Swap(true) {
				log.Warn("the whole crawl is paused: " + s.unpausing() + ", Ctrl-C ends it")
			}
		} else if time.Now().UnixNano()-seen.Load() > int64(5*lookAgain) { // another one's pause may have ended since this one's Next
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

// unpausing says how a paused crawl goes on.
func (s *settings) unpausing() string {
	if s.dir == "" {
		return "its page lets it go on"
	}
	return "frontier unpause -dir " + s.dir + " '*' lets it go on"
}
