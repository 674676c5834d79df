// This file has the promises of the loops around Next and Done.

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// rest works until the crawl is over, and returns the last try of each URL that comes.
func rest(t *testing.T, f Loops) map[string]int {
	t.Helper()
	time.Sleep(leaseTime / 2) // as in cancel
	var mu sync.Mutex
	got := map[string]int{}
	require.NoError(t, f.Work(t.Context(), 3, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		got[l.Entry.URL] = l.Attempt
		return frontier.Outcome{}, nil
	}))
	assert.Equal(t, []int64{0, 0}, left(f))
	return got
}

// Leases comes to an end with the crawl, or with an error.
func leases(t *testing.T, f Loops) {
	fill(t, f, a1, a2, b1)
	n := 0
	for l, err := range f.Leases(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		n++
	}
	assert.Equal(t, 3, n)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, err := range f.Leases(ctx) {
		assert.ErrorIs(t, err, context.Canceled)
		n++
	}
	assert.Equal(t, 4, n)
}

// Work visits everything that links lead to, by as many workers as there are. The context ends with the lease.
func work(t *testing.T, f Loops) {
	fill(t, f, "http://example/")
	var mu sync.Mutex
	all, busy, most := 0, 0, 0
	require.NoError(t, f.Work(t.Context(), 5, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		deadline, ok := ctx.Deadline()
		assert.True(t, ok)
		within(t, l.Deadline, deadline)
		mu.Lock()
		all++
		busy++
		most = max(most, busy)
		mu.Unlock()
		time.Sleep(time.Second)
		mu.Lock()
		busy--
		mu.Unlock()
		var add []frontier.Entry
		for i := range 3 {
			if l.Entry.Depth < 3 {
				add = append(add, frontier.Entry{URL: fmt.Sprintf("http://%d.%s/", i, l.Host), Depth: l.Entry.Depth + 1})
			}
		}
		return frontier.Outcome{Add: add}, nil
	}))
	assert.Equal(t, []int{1 + 3 + 9 + 27, 5}, []int{all, most})
	assert.Equal(t, []int64{0, 0}, left(f))
	assert.ErrorContains(t, f.Work(t.Context(), 0, nil), "0 workers; want at least 1")
}

// An error stops Work, and so does an outcome that is none. Both hand their leases back, as fetches do
// that this cut.
func workStops(t *testing.T, f Loops) {
	fill(t, f, a1, b1)
	mine := errors.New("my database")
	for why, stops := range map[string]func() (frontier.Outcome, error){
		mine.Error():  func() (frontier.Outcome, error) { return frontier.Outcome{Result: frontier.Gone}, mine },
		"Failure dns": func() (frontier.Outcome, error) { return frontier.Outcome{Failure: frontier.FailureDNS}, nil },
	} {
		var begun sync.WaitGroup
		begun.Add(2)
		err := f.Work(t.Context(), 2, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
			begun.Done()
			begun.Wait()
			if l.Entry.URL == a1 {
				return stops()
			}
			<-ctx.Done()
			return frontier.Outcome{Result: frontier.Failed}, nil
		})
		assert.ErrorContains(t, err, why)
		assert.NotErrorIs(t, err, context.Canceled)
		assert.Zero(t, f.Stats().Leased, why)
		time.Sleep(leaseTime / 2) // as in cancel
	}
	assert.Equal(t, map[string]int{a1: 1, b1: 1}, rest(t, f))
}

// The end of the context costs no try.
func workCut(t *testing.T, f Loops) {
	fill(t, f, a1, b1)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	err := f.Work(ctx, 3, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		<-ctx.Done()
		if l.Entry.URL == a1 {
			return frontier.Outcome{}, nil // in time
		}
		return frontier.Outcome{}, fmt.Errorf("get: %w", ctx.Err())
	})
	assert.Equal(t, context.DeadlineExceeded, err)
	assert.Equal(t, map[string]int{b1: 1}, rest(t, f))
}

// A panic and a deadline are failed tries. A panic reaches the caller of Work.
func workFails(t *testing.T, f Loops) {
	fill(t, f, a1)
	func() {
		defer func() {
			err, _ := recover().(error)
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
			assert.ErrorContains(t, err, "loops.go")
		}()
		_ = f.Work(t.Context(), 2, func(context.Context, frontier.Lease) (frontier.Outcome, error) { panic(io.ErrUnexpectedEOF) })
	}()
	time.Sleep(leaseTime / 2) // as in cancel
	whole, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	var tries []int
	require.NoError(t, f.Work(whole, 1, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
		if tries = append(tries, l.Attempt); l.Attempt > 2 {
			return frontier.Outcome{}, nil
		}
		<-ctx.Done()
		assert.False(t, time.Now().Before(l.Deadline))
		return frontier.Outcome{}, ctx.Err()
	}))
	assert.Equal(t, []int{2, 3}, tries)
}

// URLs that an operator holds end Work.
func workHeld(t *testing.T, f Loops) {
	fill(t, f, a1, b1)
	require.NoError(t, f.Pause(scope.Host("b.example")))
	var held *frontier.HeldError
	require.ErrorAs(t, f.Work(t.Context(), 2, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		assert.Equal(t, a1, l.Entry.URL)
		return frontier.Outcome{}, nil
	}), &held)
	assert.EqualValues(t, 1, held.Held)
	require.NoError(t, f.Resume(scope.Host("b.example")))
	assert.Equal(t, map[string]int{b1: 1}, rest(t, f))
}
