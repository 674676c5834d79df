// This file tests a frontier whose store must be opened again: nothing is handed out, since
// nothing that comes of it could be stored.

package conformance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNothingIsHandedOutOfALostStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		s := &harness.Fenced{Spill: spilltest.OpenMemory(t, spill.Options{}).Store}
		f, err := frontier.Open(ctx, frontier.Options{Spill: s, Delay: frontier.FixedDelay(time.Hour)})
		require.NoError(t, err)
		defer f.Close()
		_, err = f.Add(ctx, frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/2"}, frontier.Entry{URL: "http://b.example/"})
		require.NoError(t, err)
		l, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, f.Err())
		waits := make(chan error, 3)
		for _, call := range []func() error{
			func() error {
				if _, err := f.Next(ctx); err != nil { // b.example
					return err
				}
				_, err := f.Next(ctx)
				return err
			},
			func() error {
				_, err := f.Take(ctx, frontier.TakeOptions{Host: "a.example", Wait: time.Hour})
				return err
			},
			func() error { _, err := f.Contact(ctx, "a.example"); return err },
		} {
			go func() { waits <- call() }()
		}
		synctest.Wait()
		s.Lost.Store(true)
		require.ErrorIs(t, f.Done(l, frontier.Outcome{}), frontier.ErrReopen)
		for range cap(waits) {
			require.ErrorIs(t, <-waits, frontier.ErrReopen, "it waited")
		}
		require.ErrorIs(t, f.Err(), frontier.ErrReopen)
		for range 3 {
			_, err = f.Next(ctx)
			require.ErrorIs(t, err, frontier.ErrReopen)
			_, _, err = f.TryNext()
			require.ErrorIs(t, err, frontier.ErrReopen)
			_, err = f.Take(ctx, frontier.TakeOptions{})
			require.ErrorIs(t, err, frontier.ErrReopen)
			_, err = f.Contact(ctx, "c.example")
			require.ErrorIs(t, err, frontier.ErrReopen)
			time.Sleep(2 * time.Hour)
		}
		require.ErrorIs(t, f.Work(ctx, 2, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
			assert.Fail(t, "a URL was handed out")
			return frontier.Outcome{}, nil
		}), frontier.ErrReopen)
		require.NoError(t, f.Check())
		s.Lost.Store(false) // Close stores its clocks
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.Err(), frontier.ErrClosed)
	})
}
