// This file has the promises about leases that are out, and of controls.

package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// A lease that is not ended ends by its deadline. Its URL comes again.
func expiry(t *testing.T, open Open) {
	f := filled(t, open, a1)
	old := next(t, f)
	l := next(t, f)
	assert.False(t, time.Now().Before(old.Deadline))
	assert.Equal(t, []any{a1, 2}, []any{l.Entry.URL, l.Attempt})
	assert.ErrorIs(t, f.Done(old, frontier.Outcome{}), frontier.ErrNotLeased)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	assert.EqualValues(t, 1, f.Stats().Expired)
}

// An extended lease lasts until its new deadline.
func extend(t *testing.T, open Open) {
	f := filled(t, open, a1)
	l := next(t, f)
	require.NoError(t, f.Extend(&l, 10*time.Minute))
	within(t, time.Now().Add(10*time.Minute), l.Deadline)
	time.Sleep(9 * time.Minute)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	assert.Error(t, f.Extend(&l, 0))
}

// A lease that is handed back keeps its host; the URL is the first to come then, untried.
func handBack(t *testing.T, open Open) {
	f := filled(t, open, a1, a2)
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
func contact(t *testing.T, open Open) {
	f := filled(t, open, a1)
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
func join(t *testing.T, open Open) {
	f := filled(t, open, a1, b1)
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
	assert.GreaterOrEqual(t, time.Since(ended), delay)
	assert.Equal(t, []any{second.Entry.URL, 1}, []any{l.Entry.URL, l.Attempt})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A paused host gets no leases until it is resumed.
func pause(t *testing.T, open Open) {
	f := filled(t, open, a1)
	require.NoError(t, f.Pause(frontier.Host("a.example")))
	_, err := f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
	var held *frontier.HeldError
	require.ErrorAs(t, err, &held)
	assert.EqualValues(t, 1, held.Held)
	require.NoError(t, f.Resume(frontier.Host("a.example")))
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{}))
}

// What is deleted does not come.
func deleted(t *testing.T, open Open) {
	f := filled(t, open, a1, a2, b1)
	n, err := f.Delete(t.Context(), frontier.Host("a.example"))
	require.NoError(t, err)
	assert.EqualValues(t, 2, n)
	l := next(t, f)
	assert.Equal(t, b1, l.Entry.URL)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	_, err = f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
}

// A host is known by its URLs and its clock.
func host(t *testing.T, open Open) {
	f := filled(t, open, a1, a2)
	_, err := f.Host(t.Context(), "unknown.example")
	assert.ErrorIs(t, err, frontier.ErrUnknownHost)
	l := next(t, f)
	h, err := f.Host(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, []any{"a.example", 1, int64(1)}, []any{h.Host, h.Leased, h.Waiting})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	h, err = f.Host(t.Context(), "a.example")
	require.NoError(t, err)
	within(t, time.Now().Add(delay), h.Due)
}
