// This file models groups: hosts that join one, or are assigned to one, before they are
// leased or meanwhile.

package model

import (
	"fmt"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// meet makes a group known.
func (m *model) meet(group string) {
	if _, ok := m.groups[group]; !ok {
		m.groups[group] = m.hold
	}
}

func (m *model) Join(t *rapid.T) {
	name, l := m.pickLease(t)
	h := m.host(name)
	g := fmt.Sprintf("g%d", rapid.IntRange(0, 1).Draw(t, "group"))
	m.meet(g)
	kept := l.group == g || l.both && l.old == g
	granted := kept || !m.busy(g) && !m.groups[g].After(m.now())
	// A slot may be kept for a host of the group that is ready: then Join is
	// refused although no lease is out.
	err := m.f.Join(&l.lease, g)
	if !granted {
		require.ErrorIs(t, err, frontier.ErrGroupBusy)
	}
	require.False(t, kept && err != nil, "its slot is its own")
	if l.group != g || h.group != g {
		h.group, h.loose, h.fixed = g, false, false
	}
	if err == nil {
		l.leaves(m, g)
		return
	}
	require.ErrorIs(t, err, frontier.ErrGroupBusy)
	if l.old == "" {
		l.old = l.group
	}
	l.group, l.both = "", false
	require.NoError(t, m.f.Done(l.lease, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	l.giveBack(m, name)
	switch {
	case l.again != nil:
		m.admit(l.again, l.again.due)
	case l.item != nil && !l.dead:
		m.insert(l.item)
	}
	h.lease, h.saved = nil, h.group
}

// leaves takes a lease to a group whose slot it has now, and to no other. There may have been
// a contact of each group that it leaves.
func (l *modelLeaseState) leaves(m *model, to string) {
	if l.group == to {
		return
	}
	m.stamp(l.group, m.now())
	if l.both && l.old != to {
		m.stamp(l.old, m.now())
	}
	switch {
	case l.old == to && l.both:
		l.old = ""
	case l.old == "":
		l.old = l.group
	}
	l.group, l.both = to, false
}

// Assign moves a host to a group, or out of its own. If it is leased, the contact counts for
// the group that it was leased from, and for the new one if that has a slot.
func (m *model) Assign(t *rapid.T) {
	name := m.drawHost()
	g := rapid.SampledFrom([]string{"", "g0", "g1"}).Draw(t, "group")
	h := m.host(name)
	require.NoError(t, m.f.Assign(name, g))
	h.group, h.saved, h.fixed, h.loose = g, g, g != "", false
	l := h.lease
	if g == "" {
		return
	}
	m.meet(g)
	if l == nil || l.group == g {
		return
	}
	found, err := m.f.LeaseByID(l.lease.ID())
	require.NoError(t, err)
	switch {
	case l.both && l.old == g:
		require.Equal(t, g, found.Group)
		m.stamp(l.group, m.now())
		l.old, l.both = "", false
	case found.Group != g: // the slot is taken, or offered to another host
		return
	case l.both:
		require.False(t, m.busy(g) || m.groups[g].After(m.now()))
		m.stamp(l.group, m.now())
	default:
		require.False(t, m.busy(g) || m.groups[g].After(m.now()))
		if l.group != "" {
			m.stamp(l.old, m.now())
			l.old, l.both = l.group, true
		}
	}
	l.group = g
}
