// This file models rules: which hosts may not be served.

package model

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ruleOf is the rule of a scope; a block that has passed is none.
func (m *model) ruleOf(s scope.Scope) frontier.Rule {
	r := m.rules[s]
	if !r.BlockedUntil.After(m.now()) {
		r.BlockedUntil = time.Time{}
	}
	return r
}

// scopes returns the scopes of a host that the model draws, the most specific first.
func scopesOf(host string) []scope.Scope {
	return []scope.Scope{scope.Host(host), scope.Domain("example"), scope.All()}
}

// held reports whether the rules of these scopes pause, or else until when they
// block; zero: they do neither.
func (m *model) held(scopes []scope.Scope) (until time.Time, paused bool) {
	for _, s := range scopes {
		r := m.ruleOf(s)
		until = later(until, r.BlockedUntil)
		if r.Paused != scope.Unset {
			return until, r.Paused == scope.On
		}
	}
	return until, false
}

// mayServe reports whether no rule holds a host.
func (m *model) mayServe(host string) bool {
	until, forGood := m.heldUntil(host)
	return until.IsZero() && !forGood
}

// heldUntil returns until when rules and limits hold a host, or that they do permanently.
func (m *model) heldUntil(host string) (until time.Time, forGood bool) {
	until, paused := m.held(scopesOf(host))
	at, spent := m.limited(host)
	return later(until, at), paused || spent
}

// blocks reports whether any rule blocks now.
func (m *model) blocks() bool {
	for s := range m.rules {
		if !m.ruleOf(s).BlockedUntil.IsZero() {
			return true
		}
		if r := m.rules[s]; r.Limits != (scope.Limits{}) || r.HostLimits != (scope.Limits{}) {
			return true // a period ends
		}
	}
	return false
}

// paused counts the URLs that wait of paused hosts and crawls, and heldURLs of blocked ones,
// too.
func (m *model) paused() (n int) {
	for host, items := range m.waiting {
		if _, paused := m.heldUntil(host); paused {
			n += len(items)
		} else {
			n += len(items) - m.running(items)
		}
	}
	return n
}

// clockRuns reports whether the clock of a host with URLs ends at that time. That it is
// paused, or its crawl is, may be found out then.
func (m *model) clockRuns(end time.Time) bool {
	for host := range m.waiting {
		if free, ok := m.free(host); ok && free.After(m.now()) && free.Equal(end) {
			return true
		}
	}
	return false
}

func (m *model) heldURLs() (n int) {
	for host, items := range m.waiting {
		if !m.mayServe(host) {
			n += len(items)
		} else {
			n += len(items) - m.running(items)
		}
	}
	return n
}

// over checks what an exhausted frontier says.
func (m *model) over(t *rapid.T, err error, waiting int) {
	require.Equal(t, m.paused(), waiting, "exhausted too early")
	if waiting > 0 {
		var held *frontier.HeldError
		require.ErrorAs(t, err, &held)
		require.EqualValues(t, waiting, held.Held)
	} else {
		require.False(t, errors.As(err, new(*frontier.HeldError)))
	}
}

// Rule pauses, resumes or blocks, a few hosts or all.
func (m *model) Rule(t *rapid.T) {
	scopes := scopesOf(m.drawHost())
	at := rapid.IntRange(0, len(scopes)-1).Draw(t, "scope")
	s := scopes[at]
	r := m.ruleOf(s)
	switch rapid.SampledFrom([]string{"pause", "block", "resume", "resume", "clear", "clear"}).Draw(t, "control") {
	case "pause":
		require.NoError(t, m.f.Pause(s))
		r.Paused = scope.On
	case "block":
		r.BlockedUntil = m.now().Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "s")) * time.Second).Truncate(time.Millisecond)
		require.NoError(t, m.f.BlockUntil(s, r.BlockedUntil))
	case "resume":
		require.NoError(t, m.f.Resume(s))
		r.Paused, r.BlockedUntil = scope.Unset, time.Time{}
		if until, paused := m.held(scopes[at+1:]); paused || !until.IsZero() {
			r.Paused = scope.Off
		}
	case "clear":
		r = frontier.Rule{HostLimits: r.HostLimits} // counts of hosts may be forgotten without
		require.NoError(t, m.f.UpdateRule(s, func(rule *frontier.Rule) { *rule = r }))
		delete(m.used, s)
	}
	m.rules[s] = r
	if got, _ := m.f.Rule(s); !got.BlockedUntil.Equal(r.BlockedUntil) || got.Paused != r.Paused {
		t.Fatalf("the rule of %v is %+v, want %+v", s, got, r)
	}
}
