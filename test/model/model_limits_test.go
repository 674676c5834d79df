// This file models limits: what was used, and which hosts may not be served because of it.

package model

import (
	"context"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// modelUsage is what was used of limits since a period began.
type modelUsage struct {
	served, errors int
	since          time.Time // zero: it has not begun
	round          int
}

// modelCount is a hand-out that was counted.
type modelCount struct {
	u     *modelUsage
	round int
}

// pass begins a new period if the old one is over.
func (u *modelUsage) pass(l scope.Limits, now time.Time) {
	if l.Period > 0 && !u.since.IsZero() && !now.Before(u.since.Add(l.Period)) {
		*u = modelUsage{round: u.round + 1}
	}
}

// spent returns until when limits hold, or that they hold permanently.
func (u *modelUsage) spent(l scope.Limits, now time.Time) (until time.Time, forGood bool) {
	u.pass(l, now)
	if (l.Served == 0 || u.served < int(l.Served)) && (l.Errors == 0 || u.errors < int(l.Errors)) {
		return time.Time{}, false
	}
	if l.Period == 0 {
		return time.Time{}, true
	}
	return u.since.Add(l.Period), false
}

// usages calls fn with everything that is counted for a host.
func (m *model) usages(host string, fn func(scope.Limits, *modelUsage)) {
	own := scope.Limits{}
	for _, s := range scopesOf(host) {
		r := m.rules[s]
		if r.Limits != (scope.Limits{}) {
			fn(r.Limits, m.used[s])
		}
		if own == (scope.Limits{}) {
			own = r.HostLimits
		}
	}
	if own != (scope.Limits{}) {
		if m.hostUsed[host] == nil {
			m.hostUsed[host] = &modelUsage{}
		}
		fn(own, m.hostUsed[host])
	}
}

// limited returns until when limits hold a host, or that they do permanently.
func (m *model) limited(host string) (until time.Time, forGood bool) {
	m.usages(host, func(l scope.Limits, u *modelUsage) {
		at, good := u.spent(l, m.now())
		until, forGood = later(until, at), forGood || good
	})
	return until, forGood
}

// count counts a hand-out or a failure, and returns where.
func (m *model) count(host string, served, errors int) (at []modelCount) {
	m.usages(host, func(l scope.Limits, u *modelUsage) {
		u.pass(l, m.now())
		if u.since.IsZero() {
			u.since = m.now()
		}
		u.served += served
		u.errors += errors
		at = append(at, modelCount{u, u.round})
	})
	return at
}

// giveBack takes a hand-out back that came back uncontacted.
func (l *modelLeaseState) giveBack(m *model, host string) {
	m.limited(host) // periods that have passed are over
	for _, c := range l.counted {
		if c.u.round != c.round {
			continue
		}
		if c.u.served--; c.u.served+c.u.errors == 0 {
			c.u.since = time.Time{}
		}
	}
	l.counted = nil
}

// Limit limits a scope, or each of its hosts.
func (m *model) Limit(t *rapid.T) {
	scopes := scopesOf(m.drawHost())
	s := scopes[rapid.IntRange(0, len(scopes)-1).Draw(t, "scope")]
	l := scope.Limits{
		Served: int64(rapid.IntRange(1, 6).Draw(t, "served")), Errors: int64(rapid.IntRange(0, 2).Draw(t, "errors")),
		Period: time.Duration(rapid.SampledFrom([]int{0, 15, 300}).Draw(t, "period")) * time.Second,
	}
	for name := range m.hosts { // what has ended under the limits so far has
		m.limited(name)
	}
	r := m.rules[s]
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		r.HostLimits = l
		require.NoError(t, m.f.UpdateRule(s, func(r *frontier.Rule) { r.HostLimits = l }))
	case 1:
		r.Limits = scope.Limits{}
		delete(m.used, s)
		require.NoError(t, m.f.UpdateRule(s, func(r *frontier.Rule) { r.Limits = scope.Limits{} }))
	default:
		r.Limits = l
		if m.used[s] == nil {
			m.used[s] = &modelUsage{}
		}
		require.NoError(t, m.f.UpdateRule(s, func(r *frontier.Rule) { r.Limits = l }))
	}
	m.rules[s] = r
}

// recount takes over what a crash may forget: hand-outs of leases that were out, and
// what came back uncontacted.
func (m *model) recount(t *rapid.T, clean bool) {
	took := func(what string, u *modelUsage, l scope.Limits, got inspect.Used, out int) {
		u.pass(l, m.now())
		if clean {
			require.EqualValues(t, u.served, got.Served, what)
		}
		require.GreaterOrEqual(t, int(got.Served), u.served-out, what)
		require.GreaterOrEqual(t, int(got.Errors), u.errors, what)
		u.served, u.errors, u.since, u.round = int(got.Served), int(got.Errors), got.Since, u.round+1
		if u.served+u.errors == 0 && got.Since.IsZero() {
			*u = modelUsage{round: u.round}
		}
	}
	for s, u := range m.used {
		got, ok := inspect.New(m.f).Used(s)
		require.True(t, ok)
		out := 0
		for name, h := range m.hosts {
			for _, x := range scopesOf(name) {
				if x == s && h.lease != nil && h.lease.item != nil {
					out++
				}
			}
		}
		took(s.String(), u, m.rules[s].Limits, got, out)
	}
	for name := range m.hostUsed {
		own, x := scope.Limits{}, inspect.Host{}
		for _, s := range scopesOf(name) {
			if own == (scope.Limits{}) {
				own = m.rules[s].HostLimits
			}
		}
		out := 0
		if h := m.hosts[name]; h != nil && h.lease != nil && h.lease.item != nil {
			out = 1
		}
		x, _ = inspect.New(m.f).Host(context.Background(), name)
		took(name, m.hostUsed[name], own, x.Used, out)
	}
}
