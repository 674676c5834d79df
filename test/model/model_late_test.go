// This file models a Done after the end of its lease.

package model

import (
	"context"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// LateDone reports a contact whose lease has expired, once or twice. Its URL is another
// one's by now, and its links are refused; but the host was contacted, and is left alone
// from then on.
func (m *model) LateDone(t *rapid.T) {
	if len(m.expired) == 0 {
		t.Skip("no lease has expired")
	}
	l := rapid.SampledFrom(m.expired).Draw(t, "late")
	url, _, prio := m.draw()
	link := entry(url, prio)
	link.AsIs = true
	o := frontier.Outcome{Add: []frontier.Entry{link}}
	o.Result = rapid.SampledFrom([]frontier.Result{frontier.Visited, frontier.Gone, frontier.Denied, frontier.Requeue}).Draw(t, "result")
	if o.Result >= frontier.Denied {
		o.Uncontacted = rapid.Bool().Draw(t, "uncontacted")
	}
	if rapid.IntRange(0, 3).Draw(t, "retryafter") == 0 {
		o.RetryAfter = time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * time.Second
	}
	require.ErrorIs(t, m.f.Done(l, o), frontier.ErrNotLeased)
	if o.Uncontacted && o.RetryAfter == 0 {
		return
	}
	_, err := m.f.Add(context.Background()) // waits until the host's clock is committed
	require.NoError(t, err)
	h := m.host(l.Host)
	if o.Uncontacted {
		h.due = later(h.due, m.now().Add(o.RetryAfter))
		h.free = later(h.free, m.now().Add(o.RetryAfter))
		return
	}
	for _, g := range []string{l.Group, h.group} {
		m.stamp(g, m.now())
	}
	h.modelFailures = h.ended(o, m.opts.Quarantine.After)
	h.due = later(h.due, m.now().Add(max(modelDelay, h.crawl, h.gap(), o.RetryAfter)))
	h.free = later(h.free, m.now().Add(max(modelDelay, h.crawl, o.RetryAfter)))
}
