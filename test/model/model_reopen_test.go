// This file moves the model's records to disk, and closes, kills and opens its frontier.

package model

import (
	"context"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/test/harness"
)

func (m *model) Move(t *rapid.T) {
	if m.machine == nil {
		t.Skip("nothing to move to")
	}
	require.NoError(t, hook.Of(m.f).MoveNow(rapid.Bool().Draw(t, "evict")))
	for _, l := range m.waiting {
		for _, it := range l {
			m.moved(it, false)
		}
	}
	for _, it := range m.scheduled {
		m.moved(it, true)
	}
	for _, h := range m.hosts {
		if h.lease != nil && h.lease.item != nil {
			m.moved(h.lease.item, false)
		}
	}
}

func (m *model) moved(it *item, scheduled bool) {
	if it.homed {
		return
	}
	it.homed, it.inSched = true, scheduled
	if !scheduled {
		it.promoted = false
	}
}

// Reopen closes the frontier, or kills it, and opens it again.
func (m *model) Reopen(t *rapid.T) {
	if m.machine == nil {
		t.Skip("nothing would be left")
	}
	clean := rapid.Bool().Draw(t, "clean")
	machine := m.machine
	if !clean {
		machine = m.machine.Kill(m.tb)
	}
	require.NoError(t, m.f.Check())
	require.NoError(t, m.f.Close())
	if clean {
		machine = m.machine
	}
	m.machine = machine
	m.opts.Spill = machine.Store
	m.givenUp = 0
	opened := m.now()
	f := m.open(t)
	m.recall(t, clean)
	m.recount(t, clean)
	if !clean {
		m.hold = later(m.hold, opened.Add(modelDelay))
	}
	m.forget()
	for name, h := range m.hosts {
		leased := h.lease != nil
		if leased {
			if h.lease.item != nil && !h.lease.dead {
				h.lease.item.again = h.lease.again
				m.insert(h.lease.item)
			}
			for _, g := range []string{h.lease.group, h.group, h.lease.old} {
				if g != "" && clean {
					m.groups[g] = later(m.groups[g], opened.Add(modelDelay))
				}
			}
			h.lease = nil
		}
		if !clean || leased {
			gap := h.gap()
			if h.probes > 0 && h.due.After(opened) { // no probe was under way
				if !clean && !leased { // but perhaps no row says so
					due := harness.DueOf(f, name)
					require.False(t, due.Before(h.due) || due.After(later(h.due, opened.Add(gap))), "%s is due at %v", name, due)
					h.due = due
				}
				gap = 0
			}
			h.due = later(h.due, opened.Add(max(modelDelay, h.crawl, gap)))
			h.free = later(h.free, opened.Add(max(modelDelay, h.crawl)))
		}
		m.hosts[name] = h
	}
	for g, at := range m.groups {
		if !clean {
			m.groups[g] = later(at, opened.Add(modelDelay))
		}
	}
	// What was read from disk and became waiting at its time does so again.
	for name, l := range m.waiting {
		var kept []*item
		for _, it := range l {
			if it.promoted && it.inSched {
				it.promoted = false
				m.scheduled = append(m.scheduled, it)
				continue
			}
			kept = append(kept, it)
		}
		m.waiting[name] = kept
	}
	// A membership lasts through a crash once a lease of the host has ended. It
	// may last longer than needed.
	m.forget()
	for name, h := range m.hosts {
		if got := harness.GroupOf(f, name); got != h.group {
			require.False(t, (clean || h.fixed) && !h.loose && h.group != "", "%s belongs to %q, want %q", name, got, h.group)
			require.False(t, !h.loose && h.group != "" && h.saved == h.group, "%s belongs to %q, want %q", name, got, h.group)
			h.group, h.saved = got, got
		}
	}
	hook.Of(m.f).Sweep()
	m.f.Stats()
	_, err := m.f.Add(context.Background()) // waits until what the opening began is committed
	require.NoError(t, err)
	hook.Of(m.f).ReadTimed()
	m.pass()
}

func (m *model) open(t *rapid.T) *frontier.Frontier {
	o := m.opts
	if m.watch != nil {
		m.watch.f.Store(nil)
		o = m.watch.watched(o)
	}
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	if m.f = f; m.watch != nil {
		m.watch.f.Store(f)
	}
	return f
}
