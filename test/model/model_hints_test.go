// This file is the part of the model that finds known URLs again.

package model

import (
	"context"
	"time"

	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Hint adds a URL with a hint, and waits until it is answered. One that is scheduled
// comes earlier, unless it is tried again after a failure; others stay as they are.
func (m *model) Hint(t *rapid.T) {
	url, host, prio := m.draw()
	if len(m.scheduled) > 0 && rapid.Bool().Draw(t, "scheduled") {
		it := rapid.SampledFrom(m.scheduled).Draw(t, "url")
		url, host, prio = it.url, it.host, ownPrio(it.url)
	}
	e := entry(url, prio)
	e.Hint = true
	switch rapid.IntRange(0, 2).Draw(t, "news") {
	case 0:
		e.NotBefore = m.now().Add(-time.Second)
	case 1:
		e.NotBefore = m.later()
	}
	n, err := m.f.Add(context.Background(), e)
	require.NoError(t, err)
	hook.Of(m.f).Sweep()
	_, err = m.f.Add(context.Background()) // waits until the answer is committed
	require.NoError(t, err)
	if !m.known[url] {
		require.Equal(t, 1, n)
		m.known[url] = true
		m.host(host)
		m.admit(&item{url: url, host: host, prio: prio, attempt: 1}, e.NotBefore)
		return
	}
	require.Zero(t, n)
	for i, it := range m.scheduled {
		if it.url != url || it.attempt > 1 || e.NotBefore.IsZero() || !e.NotBefore.Before(it.due) {
			continue
		}
		m.scheduled = append(m.scheduled[:i:i], m.scheduled[i+1:]...)
		m.admit(&item{url: url, host: host, prio: it.prio, attempt: 1}, e.NotBefore)
		return
	}
}
