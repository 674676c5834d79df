// This file is what failures do to hosts in the naive model.

package model

import (
	"context"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The model's back-off has one step that is never taken back, so that it must
// know nothing of quiet times.
var (
	modelBackoff    = frontier.Backoff{Base: 3 * time.Second, Max: 3 * time.Second, Jitter: 1e-9, ForgiveAfter: 720 * time.Hour}
	modelQuarantine = frontier.Quarantine{After: 3, Probe: 20 * time.Second, MaxProbe: 40 * time.Second}
)

// drawQuarantine is a quarantine that gives hosts up, or not. One that does begins
// early, or it would be rare.
func drawQuarantine(t *rapid.T) frontier.Quarantine {
	q := modelQuarantine
	if q.Probes = rapid.IntRange(0, 2).Draw(t, "probes"); q.Probes > 0 {
		q.After = rapid.IntRange(1, 2).Draw(t, "after")
	}
	q.Forever = q.Probes == 0
	return q
}

// drawResult is how a contact ends: often it fails if hosts are given up for that.
func (m *model) drawResult(t *rapid.T) frontier.Result {
	most := 7
	if m.opts.Quarantine.Probes > 0 {
		most = 20
	}
	if r := rapid.IntRange(0, most).Draw(t, "result"); r <= 7 {
		return frontier.Result(r)
	}
	return frontier.Failed
}

// lost reports whether a host is given up: its URLs are, until its next probe is due.
func (m *model) lost(h *modelHost) bool {
	q := m.opts.Quarantine
	return q.Probes > 0 && h.probes > q.Probes && h.due.After(m.now())
}

// bury gives the URLs up that wait of hosts that are lost, unless a rule or a limit
// keeps them, or their crawl is paused.
func (m *model) bury() {
	m.f.Stats() // lets hosts go that a rule held
	hook.Of(m.f).Sweep()
	for name, h := range m.hosts {
		if h.lease != nil || !m.lost(h) || !m.mayServe(name) {
			continue
		}
		// Those that a rule or a paused crawl kept may wait for the next probe.
		if x, _ := inspect.New(m.f).Host(context.Background(), name); x.Waiting == int64(len(m.waiting[name])) {
			continue
		}
		kept := m.waiting[name][:0]
		for _, it := range m.waiting[name] {
			if !m.runs(it) {
				kept = append(kept, it)
				continue
			}
			m.givenUp++
			m.finish(it)
		}
		m.waiting[name] = kept
	}
}

// modelFailures is what failures did to a host.
type modelFailures struct {
	slowed bool
	fails  int // in a row
	probes int // 0: not in quarantine
}

// gap is the least time between contacts.
func (x modelFailures) gap() time.Duration {
	switch {
	case x.probes > 1:
		return modelQuarantine.MaxProbe
	case x.probes == 1:
		return modelQuarantine.Probe
	case x.slowed:
		return modelBackoff.Base
	}
	return 0
}

// ended returns the effect of a contact that ended in this way, if quarantine begins after the
// given number of failures.
func (x modelFailures) ended(o frontier.Outcome, after int) modelFailures {
	switch o.Result {
	case frontier.Failed:
		x.slowed = x.slowed || x.probes == 0 && o.Failure == frontier.FailureTooMany
		x.fails++
		if x.probes > 0 || x.fails >= after {
			x.probes = min(x.probes+1, 255)
		}
	case frontier.Requeue, frontier.PutOff:
	default:
		x.fails, x.probes = 0, 0
	}
	return x
}

// recall takes over how many contacts of each host failed in a row, which a crash
// may forget. Whether it is slowed down or in quarantine survives.
func (m *model) recall(t *rapid.T, clean bool) {
	for name, h := range m.hosts {
		x, _ := inspect.New(m.f).Host(context.Background(), name)
		require.Equal(t, h.slowed, x.Backoff.Step > 0, "%s is slowed down", name)
		require.Equal(t, h.probes, x.Backoff.Probes, "quarantine of %s", name)
		if clean {
			require.Equal(t, h.fails, x.Backoff.Failures, "failures of %s", name)
		}
		h.fails = x.Backoff.Failures
	}
}

// Forget makes the frontier forget what was learned of a host.
func (m *model) Forget(t *rapid.T) {
	name := m.drawHost()
	require.NoError(t, m.f.Forget(name))
	h := m.hosts[name]
	if h == nil {
		return
	}
	if h.modelFailures != (modelFailures{}) && h.free.Before(h.due) {
		h.due = h.free
	}
	h.modelFailures, h.crawl, h.group, h.saved = modelFailures{}, 0, "", ""
}
