// This file closes or kills the frontier of the model of lanes, and opens it again.

package model

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
)

func (m *lanesWorld) open(t *rapid.T) {
	f, err := frontier.Open(context.Background(), m.opts)
	require.NoError(t, err)
	m.f = f
}

// Reopen closes the frontier, which preserves all clocks exactly, or kills it, after which every
// host and group counts as contacted now. In either case so do those with leases, whose contacts
// may still be running.
func (m *lanesWorld) Reopen(tb testing.TB, t *rapid.T) {
	clean := rapid.Bool().Draw(t, "clean")
	machine := m.machine
	if !clean {
		machine = m.machine.Kill(tb)
		m.crashed = m.now()
	}
	require.NoError(t, m.f.Check())
	require.NoError(t, m.f.Close())
	m.machine, m.opts.Spill = machine, machine.Store
	m.open(t)
	for _, l := range m.leases {
		for _, g := range []string{l.group, l.host.group, l.old} {
			if g != "" && clean { // else all groups are left alone
				m.groups[g].leave(m.now().Add(m.groups[g].delay))
			}
		}
		l.host.waiting++
	}
	m.leases = nil
	for _, h := range m.hosts {
		if h.used > 0 || !clean {
			h.leave(m.now().Add(max(laneDelay, h.crawl)))
		}
		h.reopened()
		if got := harness.GroupOf(m.f, h.name); got != h.group { // a crash may remember what was forgotten
			kept := h.told || h.waiting > 0 && h.group != "" && (clean || h.saved == h.group)
			require.False(t, kept, "%s belongs to %q, want %q", h.name, got, h.group)
			h.group, h.saved = got, got
		}
	}
	for _, g := range m.groups {
		if !clean { // the contacts before are forgotten: what counts is the delay now, or one set later
			g.until, g.crash = nil, m.now().Add(g.delay)
		}
		vague := g.vague // as to the crash before
		g.reopened()
		g.vague = vague
	}
}

// reopened frees all lanes. There is one time for all of them that kept a distance.
func (l *lanesModel) reopened() {
	for _, t := range l.until {
		l.hold = later(l.hold, t)
	}
	l.used, l.until, l.vague = 0, nil, false
}

// A lease's contact counts for the group that its host has come to since, though it
// was granted no slot of it, when the frontier is closed meanwhile.
func TestCloseLeavesGroupsOfLeasesAlone(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{GroupDelay: frontier.FixedDelay(10 * time.Second)}, spill.Options{})
	require.NoError(t, w.F.Assign("b.example", "g"))
	w.Add("http://b.example/1")
	w.Fetched(w.Next(), time.Second, frontier.Outcome{}) // g is left alone until 11 s
	w.Add("http://a.example/1")
	w.Next()
	w.Until(5 * time.Second)
	require.NoError(t, w.F.Assign("a.example", "g"))
	w.Add("http://b.example/2")
	w.Reopen()
	w.Next()
	require.Equal(t, 15*time.Second, w.At())
}
