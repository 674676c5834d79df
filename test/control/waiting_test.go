// This file tests that calls of Next that wait already obey what is said meanwhile: they
// get nothing that is held, and at once what is set free.

package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever holds a host comes in time for a call that waits for its delay.
func TestControlsHoldForWhoeverWaits(t *testing.T) {
	for name, hold := range map[string]func(f *frontier.Frontier) error{
		"pause":     func(f *frontier.Frontier) error { return f.Pause(scope.Domain("example")) },
		"pause all": func(f *frontier.Frontier) error { return f.Pause(scope.All()) },
		"delete": func(f *frontier.Frontier) error {
			_, err := f.Delete(context.Background(), scope.Domain("example"))
			return err
		},
		"deletecrawl": func(f *frontier.Frontier) error {
			_, err := f.Delete(context.Background(), scope.Crawl(0))
			return err
		},
		"crawl": func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} })
		},
		"limit": func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1, Period: time.Hour} })
		},
		"block": func(f *frontier.Frontier) error {
			return f.BlockUntil(scope.Host("a.example"), time.Now().Add(time.Hour))
		},
		"group": func(f *frontier.Frontier) error {
			if err := f.Assign("b.other", "g"); err != nil {
				return err
			}
			l, err := f.Contact(context.Background(), "b.other")
			if err != nil {
				return err
			}
			if err := f.Done(l, frontier.Outcome{}); err != nil {
				return err
			}
			return f.Assign("a.example", "g")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(10 * time.Second), GroupDelay: frontier.FixedDelay(time.Hour), KeepOpen: true})
				require.NoError(t, err)
				_, err = f.Add(t.Context(), harness.URLs("a.example", 3)...)
				require.NoError(t, err)
				l, err := f.Next(t.Context())
				require.NoError(t, err)
				require.NoError(t, f.Done(l, frontier.Outcome{}))
				ctx, cancel := context.WithTimeout(t.Context(), 59*time.Minute)
				defer cancel()
				got := make(chan error)
				go func() { l, err := f.Next(ctx); t.Log(l.Entry.URL); got <- err }()
				time.Sleep(5 * time.Second)
				require.NoError(t, hold(f))
				if name == "limit" {
					// nothing was counted before: one may come
					require.NoError(t, <-got)
					go func() { _, err := f.Next(ctx); got <- err }()
				}
				require.ErrorIs(t, <-got, context.DeadlineExceeded)
				harness.Ended(t, f)
			})
		})
	}
}

// Whatever sets a host free wakes a call that waits, at that moment.
func TestControlsWakeWhoeverWaits(t *testing.T) {
	for name, c := range map[string]struct {
		hold, free func(f *frontier.Frontier) error
	}{
		"group": {func(f *frontier.Frontier) error {
			if err := f.SetGroup("g", frontier.GroupSettings{Delay: frontier.FixedDelay(time.Hour)}); err != nil {
				return err
			}
			if err := f.Assign("b.other", "g"); err != nil {
				return err
			}
			l, err := f.Contact(context.Background(), "b.other")
			if err != nil {
				return err
			}
			if err := f.Done(l, frontier.Outcome{}); err != nil {
				return err
			}
			return f.Assign("a.example", "g")
		}, func(f *frontier.Frontier) error { return f.Assign("a.example", "") }},
		"group more slots": {func(f *frontier.Frontier) error {
			if err := f.Assign("b.other", "g"); err != nil {
				return err
			}
			if _, err := f.Contact(context.Background(), "b.other"); err != nil {
				return err
			}
			return f.Assign("a.example", "g")
		}, func(f *frontier.Frontier) error {
			return f.SetGroup("g", frontier.GroupSettings{Concurrency: 2})
		}},
		"crawl": {func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { *r = frontier.Rule{Paused: scope.On} })
		}, func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { *r = frontier.Rule{} })
		}},
		"off for the host": {func(f *frontier.Frontier) error { return f.Pause(scope.All()) }, func(f *frontier.Frontier) error { return f.Resume(scope.Host("a.example")) }},
		"rule cleared":     {func(f *frontier.Frontier) error { return f.Pause(scope.Domain("example")) }, func(f *frontier.Frontier) error { return f.Clear(scope.Domain("example")) }},
		"lanes": {func(f *frontier.Frontier) error { _, err := f.Next(context.Background()); return err }, func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Concurrency = 2 })
		}},
		"backoff forgotten": {func(f *frontier.Frontier) error {
			for range 3 {
				l, err := f.Next(context.Background())
				if err != nil {
					return err
				}
				if err := f.Done(l, harness.Failing(frontier.FailureConnect)); err != nil {
					return err
				}
			}
			return nil
		}, func(f *frontier.Frontier) error { return f.Forget("a.example") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(time.Second), KeepOpen: true, Quarantine: frontier.Quarantine{After: 3}, Retry: frontier.Retries(9, time.Minute)})
				require.NoError(t, err)
				_, err = f.Add(t.Context(), harness.URLs("a.example", 9)...)
				require.NoError(t, err)
				require.NoError(t, c.hold(f))
				at := make(chan time.Time)
				go func() {
					_, err := f.Next(t.Context())
					assert.NoError(t, err)
					at <- time.Now()
				}()
				time.Sleep(5 * time.Minute)
				now := time.Now()
				require.NoError(t, c.free(f))
				require.Equal(t, now, <-at)
				harness.Ended(t, f)
			})
		})
	}
}
