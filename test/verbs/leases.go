// This file has the promises about leases that are out, and of controls.

package verbs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// A lease that is not ended ends by its deadline. Its URL comes again, when its host has been left
// alone from then on.
func expiry(t *testing.T, f Frontier) {
	fill(t, f, a1)
	old := next(t, f)
	l := next(t, f)
	assert.False(t, time.Now().Before(old.Deadline.Add(delay)))
	assert.Equal(t, a1, l.Entry.URL)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	assert.Equal(t, []int64{0, 0}, left(f))
}

// A lease counts the tries of its URL. One that is put off does not count, nor does one that no caller
// of Next got. After a visit the count begins anew.
func tries(t *testing.T, f Leases) {
	fill(t, f, a1)
	attempt := func(want int) frontier.Lease {
		t.Helper()
		l := next(t, f)
		assert.Equal(t, []any{a1, want}, []any{l.Entry.URL, l.Attempt})
		return l
	}
	later := func() time.Time { return time.Now().Add(10 * time.Minute) }
	require.NoError(t, f.Done(attempt(1), frontier.Outcome{Result: frontier.PutOff, Next: later()}))
	time.Sleep(10*time.Minute - 5*time.Second)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := f.Next(ctx)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	time.Sleep(leaseTime / 2) // as in cancel
	require.NoError(t, f.Done(attempt(1), frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany}))
	old := attempt(2)
	l := attempt(3)
	assert.ErrorIs(t, f.Done(old, frontier.Outcome{}), frontier.ErrNotLeased)
	assert.EqualValues(t, 1, f.Stats().Expired)
	require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Visited, Next: later()}))
	l = attempt(1)
	assert.Equal(t, []any{1, frontier.Visited}, []any{l.History.Visits, l.History.Last})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// An extended lease lasts until its new deadline.
func extend(t *testing.T, f Leases) {
	fill(t, f, a1)
	l := next(t, f)
	require.NoError(t, f.Extend(&l, 10*time.Minute))
	within(t, time.Now().Add(10*time.Minute), l.Deadline)
	time.Sleep(9 * time.Minute)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	assert.Error(t, f.Extend(&l, 0))
}

// A lease that is handed back keeps its host; the URL is the first to come then, untried.
func handBack(t *testing.T, f Leases) {
	fill(t, f, a1, a2)
	slot, err := f.HandBack(next(t, f))
	require.NoError(t, err)
	assert.Equal(t, []any{true, "a.example"}, []any{slot.ContactOnly(), slot.Host})
	_, _, err = f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	require.NoError(t, f.Done(slot, frontier.Outcome{CrawlDelay: 10 * time.Second}))
	ended := time.Now()
	l := next(t, f)
	assert.GreaterOrEqual(t, time.Since(ended), 10*time.Second)
	assert.Equal(t, []any{a1, 1}, []any{l.Entry.URL, l.Attempt})
	require.NoError(t, f.Done(l, frontier.Outcome{CrawlDelay: frontier.NoCrawlDelay}))
	ended = time.Now()
	l = next(t, f)
	assert.Less(t, time.Since(ended), 5*time.Second)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A contact waits for the host's clock, or ends with its context.
func contact(t *testing.T, f Leases) {
	fill(t, f, a1)
	l := next(t, f)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := f.Contact(ctx, l.Host)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	ended := time.Now()
	slot, err := f.Contact(t.Context(), l.Host)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(ended), delay)
	assert.True(t, slot.ContactOnly())
	require.NoError(t, f.Done(slot, frontier.Outcome{}))
	slot, err = f.Contact(t.Context(), "new.example")
	require.NoError(t, err)
	require.NoError(t, f.Done(slot, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
}

// Hosts of a group are not contacted at once.
func join(t *testing.T, f Leases) {
	fill(t, f, a1, b1)
	first, second := next(t, f), next(t, f)
	require.NoError(t, f.Join(&first, "192.0.2.1"))
	assert.Equal(t, "192.0.2.1", first.Group)
	require.ErrorIs(t, f.Join(&second, "192.0.2.1"), frontier.ErrGroupBusy)
	require.NoError(t, f.Done(second, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	_, _, err := f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	require.NoError(t, f.Done(first, frontier.Outcome{}))
	ended := time.Now()
	l := next(t, f)
	for f.Join(&l, "192.0.2.1") != nil { // where hosts are divided it may come too early
		require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		l = next(t, f)
	}
	assert.GreaterOrEqual(t, time.Since(ended), delay)
	assert.Equal(t, []any{second.Entry.URL, 1}, []any{l.Entry.URL, l.Attempt})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A paused host gets no leases until it is resumed.
func pause(t *testing.T, f Frontier) {
	fill(t, f, a1)
	require.NoError(t, f.Pause(scope.Host("a.example")))
	_, err := f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
	var held *frontier.HeldError
	require.ErrorAs(t, err, &held)
	assert.EqualValues(t, 1, held.Held)
	require.NoError(t, f.Resume(scope.Host("a.example")))
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{}))
}

// What is deleted does not come.
func deleted(t *testing.T, f Frontier) {
	fill(t, f, a1, a2, b1)
	n, err := f.Delete(t.Context(), scope.Host("a.example"))
	require.NoError(t, err)
	assert.EqualValues(t, 2, n)
	l := next(t, f)
	assert.Equal(t, b1, l.Entry.URL)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	_, err = f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
}

// A host is known by its URLs.
func host(t *testing.T, f Frontier) {
	fill(t, f, a1, a2)
	_, err := f.Host(t.Context(), "unknown.example")
	assert.ErrorIs(t, err, frontier.ErrUnknownHost)
	l := next(t, f)
	h, err := f.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, []any{"a.example", 1, int64(1)}, []any{h.Host, h.Leased, h.Waiting})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	h, err = f.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, []any{0, int64(1)}, []any{h.Leased, h.Waiting})
}

// The URLs of a host that sinks have a lower priority, and get theirs back.
func standing(t *testing.T, f Stander) {
	fill(t, f, a1, a2, "http://a.example/3")
	served := func(levels int) int {
		t.Helper()
		h, err := f.Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, levels, h.Standing)
		l := next(t, f)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
		return l.Priority
	}
	own := served(0)
	require.NoError(t, f.SetStanding("a.example", -2))
	require.NoError(t, f.SetStanding("a.example", -2), "again")
	assert.ErrorContains(t, f.SetStanding("a.example", 99), "99 levels; want -")
	assert.Error(t, f.SetStanding("", 1))
	assert.Equal(t, own-2, served(-2))
	require.NoError(t, f.SetStanding("a.example", 0))
	assert.Equal(t, own, served(0))
}
