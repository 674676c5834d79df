// This file is what the model knows of priorities that an operator sets.

package model

import (
	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// served is the priority with which a URL is served: the narrowest scope that says
// something of its own priority decides.
func (m *model) served(it *item) int {
	if it.prio == frontier.Immediate {
		return it.prio
	}
	for _, s := range scopesOf(it.host) {
		r := m.rules[s]
		if p := r.Priorities[it.prio]; p != 0 {
			return int(p)
		}
		if r.Priority != 0 {
			return r.Priority
		}
	}
	return it.prio
}

// Priority sets the priority of a scope's URLs, of all or of those with one given priority, or
// reverts that.
func (m *model) Priority(t *rapid.T) {
	scopes := scopesOf(m.drawHost())
	s := scopes[rapid.IntRange(0, len(scopes)-1).Draw(t, "scope")]
	r, to := m.rules[s], rapid.IntRange(0, modelLevels).Draw(t, "to")
	if rapid.Bool().Draw(t, "of one priority") {
		from := rapid.IntRange(1, modelLevels).Draw(t, "from")
		require.NoError(t, m.f.UpdateRule(s, func(r *frontier.Rule) { r.Priorities[from] = uint8(to) }))
		r.Priorities[from] = uint8(to)
	} else {
		require.NoError(t, m.f.UpdateRule(s, func(r *frontier.Rule) { r.Priority, r.Priorities = to, frontier.PriorityMap{} }))
		r.Priority, r.Priorities = to, frontier.PriorityMap{}
	}
	m.rules[s] = r
	got, _ := m.f.Rule(s)
	require.Equal(t, r.Priority, got.Priority)
	require.Equal(t, r.Priorities, got.Priorities)
}

// take removes the URL of a lease from those that wait. It must be the first of the
// URLs of its host that have its crawl and its own priority.
func (m *model) take(t *rapid.T, l frontier.Lease) *item {
	wait := m.waiting[l.Host]
	for i, it := range wait {
		if it.url != l.Entry.URL {
			continue
		}
		require.Equal(t, m.served(it), l.Priority, "priority of %s", it.url)
		for _, x := range wait[:i] {
			require.False(t, x.prio == it.prio && crawlOf(x.url) == crawlOf(it.url), "%s comes before %s: first in, first out", it.url, x.url)
		}
		m.waiting[l.Host] = append(wait[:i:i], wait[i+1:]...)
		return it
	}
	t.Fatalf("%s does not wait", l.Entry.URL)
	return nil
}

// countPriorities counts the URLs that wait by the priority with which they are served.
func (m *model) countPriorities() (n [modelLevels]int64, immediate int64) {
	for _, l := range m.waiting {
		for _, it := range l {
			if p := m.served(it); p == frontier.Immediate {
				immediate++
			} else {
				n[p-1]++
			}
		}
	}
	return n, immediate
}
