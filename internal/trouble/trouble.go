// Package trouble decides what failures mean for a host: the gap between its contacts, when it
// shrinks again, and when a host that only fails is only probed. It is arithmetic on the State
// that the caller stores for each host that failed; it does not depend on queues, rows or locks.
//
// A server that requires a gap of g between two contacts refuses contacts that come sooner. The
// step of a host rises with each refusal, until the gap suffices, and falls again after a quiet
// period. The quiet period is hundreds of gaps, so that refusals stay below one in a hundred, and
// doubles with each relapse. A host that failed several times in a row may only have been down: its
// steps are reduced quickly, until the next failure.
package trouble

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier/internal/row"
)

const (
	quietGaps   = 200             // without a failure until a step is taken back
	searchAfter = 2               // good contacts until a step is taken back soon
	maxRelapses = row.MaxRelapses // that count
	rareAfter   = 4               // good contacts between failures that may be sporadic
	rareFirst   = 10              // the same as long as it is not known how many are usual
	likeness    = 4               // times as long is a run that shows that failures became rarer

	// maxQuiet bounds the quiet time, as policies are bounded.
	maxQuiet = 30 * 24 * time.Hour

	// troubleKept is how long a host without URLs is known to be slowed down or
	// in quarantine after its last failure, and failuresKept that it failed.
	troubleKept  = 7 * 24 * time.Hour
	failuresKept = 24 * time.Hour
)

// Backoff defines how a host that refuses contacts is slowed down: see frontier.Backoff, which has
// the same fields.
type Backoff struct {
	Disabled     bool
	Base         time.Duration
	Max          time.Duration
	Jitter       float64
	ForgiveAfter time.Duration
}

// Quarantine defines when a host that only fails is only probed: see frontier.Quarantine, which
// has the same fields.
type Quarantine struct {
	Disabled bool
	After    int
	Probe    time.Duration
	MaxProbe time.Duration
	Probes   int
	Forever  bool

	CountTries bool
}

// State is the history of failures of one host. The zero value is a host that never failed.
//
// Failures of leases that are not younger than raised (counted) count together with the failure
// that last raised the step (the number of failures).
type State struct {
	Raised   uint64 // number of the youngest lease when step was raised
	Counted  uint64 // the same for fails
	Quiet    int64  // last failed contact, or last reduction of the step since; ns since Open
	Free     int64  // when the host may be contacted according to its other clocks; ns since Open
	Fails    uint16 // failed contacts in a row
	Lanes    uint16 // maximum number of concurrent leases at step 0; 0: as configured
	Step     uint8  // 0: the host is not slowed down
	From     uint8  // step before fails began, or the one after it if that was not enough
	Search   uint8  // steps above it are taken back soon; 0: none
	good     uint8  // good contacts since quiet began, at most searchAfter
	Relapses uint8  // how often a step that was taken back was needed
	Eased    bool   // a step was taken back since one was raised
	Probes   uint8  // number of the quarantine's interval; 0: the host is in none
	run      uint8  // good contacts since a failure that could raise the step
	Usual    uint8  // number of such runs while it was slowed down, approximately; 0: unknown
	short    bool   // the last run was shorter than rareAfter, and forgiven
	Kind     uint8  // of the last failure
	Listed   bool   // the caller gives up its URLs
	Kept     bool   // since the last failure: its URLs cannot be given up
}

// Failure is a contact that failed.
type Failure struct {
	Kind   uint8 // the caller's
	Slows  bool  // it may be caused by the pace of contacts
	Paced  bool  // it is: the host asked for time
	Lease  uint64
	Last   uint64 // number of the youngest lease
	End    int64
	Lanes  int32 // leases that the host might have at once
	Slowed bool  // its step made the host slower than its other clocks do
}

// Failed records a failed contact.
func (t *State) Failed(x Failure, b *Backoff, q *Quarantine) {
	lease, last, lanes := x.Lease, x.Last, x.Lanes
	t.Quiet, t.good = max(t.Quiet, x.End), 0
	t.Kind, t.Kept = x.Kind, false
	inQuarantine := t.Probes > 0
	if lease > t.Counted {
		t.Counted = last
		if t.Fails == 0 {
			t.From = t.Step
		}
		t.Fails = uint16(min(int(t.Fails)+1, row.MaxFails))
		if inQuarantine {
			t.Probes = min(t.Probes, math.MaxUint8-1) + 1
		}
		if !inQuarantine && !q.Disabled && int(t.Fails) >= q.After {
			t.Probes = 1
		}
	}
	if inQuarantine || lease <= t.Raised || b.Disabled || !x.Slows {
		return
	}
	t.Raised, t.Search = last, 0
	if t.sporadic(x) {
		return
	}
	switch {
	case lanes <= 1:
	case t.Lanes == 0:
		t.Lanes = uint16(lanes / 2)
	default:
		t.Lanes = uint16(lanes - 1) // one was returned too early
	}
	if t.Step == 0 || b.Gap(t.Step) < b.Max {
		t.Step++
	}
	if t.Eased {
		t.Eased, t.Relapses = false, min(t.Relapses+1, maxRelapses)
		t.From = t.Step // the step before does not suffice
		t.Usual /= likeness
	}
}

// sporadic reports whether a failure is independent of the pace of contacts, so that the step need
// not be raised, and reverts a slowdown that was in vain.
//
// A refusal that asks for time depends on the pace. For other failures only their frequency shows: rare
// failures first cause a slower pace, and if they are as frequent there, no pace will prevent them.
func (t *State) sporadic(x Failure) bool {
	run := t.run
	t.run = 0
	if x.Paced {
		t.Usual, t.short = 0, false
		return false
	}
	if run < rareAfter {
		forgiven := t.Usual > 0 && t.Step == 0 && !t.short
		t.short = forgiven
		return forgiven
	}
	t.short = false
	switch {
	case t.Step == 0:
		if int(run) < int(t.Usual)/likeness || t.Usual == 0 {
			return false // they are rarer at a slower pace, or it is not known how rare
		}
	case !x.Slowed || t.Usual == 0 && run < rareFirst:
		return false
	case t.Relapses > 0 && (t.Usual == 0 || int(run) > likeness*int(t.Usual)):
		t.Usual = run
		return false // slowing down has helped, but not enough
	case t.Usual == 0:
		t.Usual = run
	default:
		t.Usual = uint8((int(t.Usual) + int(run)) / 2)
	}
	t.Relapses = 0
	if t.Step > 0 {
		t.Step--
		t.Eased = true
	} else if t.Lanes > 0 {
		t.Lanes++
		t.Eased = true
	}
	return true
}

// Succeeded records a successful contact that ended at end. pace is the time from its beginning to the
// earliest next one. lanes is how many leases the host might have at once if it had never failed.
func (t *State) Succeeded(lease uint64, end, pace int64, lanes int32, b *Backoff) {
	if t.Fails > 0 && int(t.Step) >= int(t.From)+2 {
		t.Search = max(t.From, 1)
	}
	t.Fails, t.Probes = 0, 0
	if lease <= t.Raised {
		return // it began before the step was raised
	}
	t.good, t.run = min(t.good+1, searchAfter), max(t.run, t.run+1)
	soon := t.Search > 0 && t.Step > t.Search && t.good == searchAfter
	if !soon && end-t.Quiet < t.quietFor(pace, b) {
		return
	}
	switch {
	case t.Step > 0:
		t.Step--
	case t.Lanes > 0:
		if t.Lanes++; int32(t.Lanes) >= lanes {
			t.Lanes = 0
		}
	default:
		t.Eased, t.Relapses, t.Usual, t.short = false, 0, 0, false // it is over
		return
	}
	t.Quiet, t.good, t.Eased = end, 0, true
}

// Allowed returns how many of n leases the host may have at once.
func (t *State) Allowed(n int32) int32 {
	switch {
	case t.Step > 0 || t.Probes > 0:
		return 1
	case t.Lanes > 0:
		return min(n, int32(t.Lanes))
	}
	return n
}

// quietFor returns how long nothing may fail before the step is reduced.
func (t *State) quietFor(pace int64, b *Backoff) int64 {
	return min(max(int64(b.ForgiveAfter), quietGaps*min(pace, int64(maxQuiet)/quietGaps))<<t.Relapses, int64(maxQuiet))
}

// Lost reports whether the maximum number of probes failed in a row, and the host is given up.
func (t *State) Lost(q *Quarantine) bool { return !q.Forever && int(t.Probes) > q.Probes }

// Over reports whether nothing need be known any more.
func (t *State) Over() bool {
	return t.Step == 0 && t.Lanes == 0 && t.Fails == 0 && t.Probes == 0 && !t.Eased && t.Relapses == 0 && t.Usual == 0
}

// Until returns when the failures of a host without URLs are forgotten.
func (t *State) Until() int64 {
	if t.Step > 0 || t.Lanes > 0 || t.Probes > 0 || t.Eased || t.Relapses > 0 || t.Usual > 0 {
		return t.Quiet + int64(troubleKept)
	}
	return t.Quiet + int64(failuresKept)
}

// Gap is the least time between contacts at a step.
func (b *Backoff) Gap(step uint8) time.Duration {
	return doubled(b.Base, step-1, b.Max)
}

// Interval is the time between probes.
func (q *Quarantine) Interval(probes uint8) time.Duration {
	return doubled(q.Probe, probes-1, q.MaxProbe)
}

// doubled is d times 2^n, at most most.
func doubled(d time.Duration, n uint8, most time.Duration) time.Duration {
	if n >= 62 || d > most>>n {
		return most
	}
	return d << n
}

// Longest returns the maximum of d with jitter.
func (b *Backoff) Longest(d time.Duration) time.Duration {
	return d + time.Duration(float64(d)*b.Jitter).Truncate(time.Millisecond)
}

// AtRandom returns the jitter added to d; x is a random number.
func (b *Backoff) AtRandom(d time.Duration, x uint64) time.Duration {
	return time.Duration(float64(d) * b.Jitter * (float64(x) / math.MaxUint64)).Truncate(time.Millisecond)
}
