// This file is the part of the model that admits URLs as finished.

package model

import (
	"context"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Finish admits a URL as finished: one that is new, or with Force any. A leased one is
// finished after its Done.
func (m *model) Finish(t *rapid.T) {
	url, host, prio := m.draw()
	e := entry(url, prio)
	e.Finished, e.Force = true, rapid.Bool().Draw(t, "force")
	n, err := m.f.Add(context.Background(), e)
	it := &item{url: url, host: host, prio: prio, attempt: 1, finished: true}
	switch {
	case !m.opts.Keep:
		require.ErrorContains(t, err, "Finished without Options.Keep")
		return
	case e.Force:
		m.forced(it)
	case !m.known[url]:
		m.known[url] = true
		m.host(host)
		m.admit(it, it.due)
	default:
		require.NoError(t, err)
		require.Zero(t, n)
		return
	}
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s, err := m.f.StatusOf(context.Background(), e)
	require.NoError(t, err)
	if l := m.host(host).lease; l != nil && l.item != nil && l.item.url == url && m.kept[url] == "" {
		require.Equal(t, frontier.URLLeased, s.State)
		return
	}
	require.Equal(t, frontier.URLFinished, s.State)
	require.True(t, s.Entry.Finished)
}
