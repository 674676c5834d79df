// This file decides what failures mean for a host: how far apart its contacts must
// be, when that is forgiven, and when a host that only fails is merely probed.
//
// It knows nothing of queues, rows and locks; trouble.go calls it when a contact
// has ended.
//
// A server that wants a gap of g between two contacts refuses each that comes
// sooner. The step of a host goes up with each refusal, until the gap suffices,
// and comes down again after a quiet time. The quiet time is hundreds of gaps, so
// that refusals stay below one in a hundred, and doubles with each relapse.
// A host that failed several times in a row was perhaps only down: it is given
// back steps soon, until the first failure.

package frontier

import (
	"fmt"
	"math"
	"time"
)

// Backoff says how a host is slowed down that refuses contacts: with 429, 503, no
// connection, or no answer in time. Zero fields mean the defaults.
//
// Each such failure raises the host's step by one. While a host's step is k, its
// next contact comes no sooner than Base x 2^(k-1) after the end of each, good or
// bad; the delay, Crawl-delay and Retry-After hold besides, and the latest wins.
// A 503 without Retry-After, a failed connection and a timeout need not be about the
// pace: a server that fails now and then does so at any. The first raises the step
// as well. But one that comes after 10 good contacts or more at the slower pace
// takes a step back instead. From then on such failures raise no step as long as
// they are not much more frequent than at the slower pace, nor two in a row have
// fewer than 4 good contacts before them.
//
// Of failures whose contacts began before the last raise all count with it: any
// number that were under way together raise one step. A host that may have
// several leases has one at a time while its step is not 0, then half as many as
// it had, and one more each time that a step would be taken back.
type Backoff struct {
	// Disabled keeps failures from slowing hosts down.
	Disabled bool
	// Base is the gap of step 1. Zero means 2 s.
	Base time.Duration
	// Max bounds the gap. Zero means 10 minutes, or Base if that is longer.
	Max time.Duration
	// Jitter is how much longer than that a gap may be at random, as a share of
	// it, up to 1; whole milliseconds. Zero means 0.1.
	Jitter float64
	// ForgiveAfter is how long nothing must fail until one step is taken back:
	// so long and at least 200 times as long as a contact with its gap takes,
	// and twice that for each time (up to 6) that a step taken back was needed
	// after all. Zero means 10 minutes.
	//
	// Two exceptions look soon whether a host was only down. After two or more
	// steps in a row without a good contact between, and at the end of a
	// quarantine, one step is taken back after every second good contact, down
	// to the step before (at least 1, and above one that did not suffice), until
	// something fails.
	ForgiveAfter time.Duration
}

// Quarantine says when a host that only fails is left alone but for probes. Zero
// fields mean the defaults.
//
// After so many failed contacts in a row, of any kind, it is contacted once in
// an interval that doubles each time. Its URLs are kept: a failed probe does not
// use up a try, and its URL waits again, behind the host's others. With the first
// good contact everything continues. Leases that ended by their deadline do not
// count, and of failures that were under way together only the first.
type Quarantine struct {
	// Disabled keeps all hosts out of quarantine.
	Disabled bool
	// After is the number of failed contacts. Zero means 8.
	After int
	// Probe is the first interval. Zero means 10 minutes.
	Probe time.Duration
	// MaxProbe bounds the interval. Zero means a day, or Probe if that is longer.
	MaxProbe time.Duration
	// Probes is how many probes may fail in a row, 1 to 250, until the host is
	// given up: its URLs leave, reported like those whose tries are used up, and
	// EventHostGivenUp tells how many. Until its next probe would be due those that
	// come are given up as well; the first that comes later is that probe. Paused
	// and blocked hosts, and paused crawls, keep their URLs.
	//
	// Zero means 10: with the default intervals a host is given up about four days
	// after it came into quarantine, so that it survives a weekend: 90.5 hours, and up
	// to a tenth more by Backoff.Jitter. With 3 it is 70 minutes and as much more. With
	// a Scheduler, whose URLs come again for ever, zero means Forever.
	Probes int
	// Forever lets the URLs of a host wait until it returns, however many probes
	// fail, and Next waits with them. Probes must be zero then.
	Forever bool
}

func (b Backoff) withDefaults() Backoff {
	if b.Base == 0 {
		b.Base = 2 * time.Second
	}
	if b.Max == 0 {
		b.Max = max(10*time.Minute, b.Base)
	}
	if b.Jitter == 0 {
		b.Jitter = 0.1
	}
	if b.ForgiveAfter == 0 {
		b.ForgiveAfter = 10 * time.Minute
	}
	return b
}

func (q Quarantine) withDefaults(visitsAgain bool) Quarantine {
	if q.After == 0 {
		q.After = 8
	}
	if q.Probe == 0 {
		q.Probe = 10 * time.Minute
	}
	if q.MaxProbe == 0 {
		q.MaxProbe = max(24*time.Hour, q.Probe)
	}
	switch {
	case q.Probes != 0 || q.Forever:
	case visitsAgain:
		q.Forever = true
	default:
		q.Probes = defaultProbes
	}
	return q
}

func (b Backoff) check() (errs []error) {
	if b.Base < time.Millisecond || b.Max < b.Base || b.Max > maxDelay {
		errs = append(errs, fmt.Errorf("Backoff has Base %v and Max %v; want 1ms <= Base <= Max <= %v", b.Base, b.Max, maxDelay))
	}
	if !(b.Jitter >= 0 && b.Jitter <= 1) {
		errs = append(errs, fmt.Errorf("Backoff.Jitter is %v; want 0 to 1", b.Jitter))
	}
	if b.ForgiveAfter < 0 || b.ForgiveAfter > maxDelay {
		errs = append(errs, fmt.Errorf("Backoff.ForgiveAfter is %v; want 0 to %v", b.ForgiveAfter, maxDelay))
	}
	return errs
}

func (q Quarantine) check() (errs []error) {
	if q.After < 1 || q.After > maxAfter {
		errs = append(errs, fmt.Errorf("Quarantine.After is %d; want 1 to %d", q.After, maxAfter))
	}
	if q.Probe < time.Millisecond || q.MaxProbe < q.Probe || q.MaxProbe > maxDelay {
		errs = append(errs, fmt.Errorf("Quarantine has Probe %v and MaxProbe %v; want 1ms <= Probe <= MaxProbe <= %v", q.Probe, q.MaxProbe, maxDelay))
	}
	switch {
	case q.Forever && q.Probes != 0:
		errs = append(errs, fmt.Errorf("Quarantine has Probes %d and Forever; want one of them", q.Probes))
	case !q.Forever && (q.Probes < 1 || q.Probes > maxProbes):
		errs = append(errs, fmt.Errorf("Quarantine.Probes is %d; want 1 to %d, or Forever", q.Probes, maxProbes))
	}
	return errs
}

const (
	maxProbes     = 250    // that Quarantine.Probes may allow
	defaultProbes = 10     // over 90.5 hours at least: more than a weekend
	maxAfter      = 10_000 // failed contacts until a quarantine

	quietGaps   = 200 // without a failure until a step is taken back
	searchAfter = 2   // good contacts until a step is taken back soon
	maxRelapses = 6   // that count
	rareAfter   = 4   // good contacts between failures that may be sporadic
	rareFirst   = 10  // the same as long as nobody knows how many are usual
	likeness    = 4   // times as long is a run that tells that failures became rarer

	// troubleKept is how long a host without URLs is known to be slowed down or
	// in quarantine after its last failure, and failuresKept that it failed.
	troubleKept  = 7 * 24 * time.Hour
	failuresKept = 24 * time.Hour
)

// trouble is what is known of the failures of one host. The zero value is a host
// that never failed.
//
// Failures whose leases are not younger than raised (counted) count with the one
// that raised the step (the number of failures) last.
type trouble struct {
	raised   uint64  // number of the youngest lease when step was raised
	counted  uint64  // the same for fails
	quiet    int64   // when a contact failed last, or a step was taken back since; ns since Open
	free     int64   // when the host may be contacted, as far as its other clocks say; ns since Open
	fails    uint16  // failed contacts in a row
	lanes    uint16  // leases that it may have at once at step 0; 0: as many as are set
	step     uint8   // 0: the host is not slowed down
	from     uint8   // step before fails began, or the one after if that did not suffice
	search   uint8   // steps above it are taken back soon; 0: none
	good     uint8   // good contacts since quiet began, at most searchAfter
	relapses uint8   // how often a step that was taken back was needed
	eased    bool    // a step was taken back since one was raised
	probes   uint8   // number of the quarantine's interval; 0: the host is in none
	run      uint8   // good contacts since a failure that could raise the step
	usual    uint8   // such runs while it was slowed down, about; 0: not known
	short    bool    // the last run was shorter than rareAfter, and forgiven
	kind     Failure // of the last failure
	listed   bool    // in core.lost
	kept     bool    // since the last failure: its URLs cannot be given up
}

// failure is a contact that failed.
type failure struct {
	kind   Failure
	asked  bool // for time, with Retry-After
	lease  uint64
	last   uint64 // number of the youngest lease
	end    int64
	lanes  int32 // leases that the host might have at once
	slowed bool  // its step made the host slower than its other clocks do
}

// failed takes in that a contact failed.
func (t *trouble) failed(x failure, b *Backoff, q *Quarantine) {
	lease, last, lanes := x.lease, x.last, x.lanes
	t.quiet, t.good = max(t.quiet, x.end), 0
	t.kind, t.kept = x.kind, false
	inQuarantine := t.probes > 0
	if lease > t.counted {
		t.counted = last
		if t.fails == 0 {
			t.from = t.step
		}
		t.fails = uint16(min(int(t.fails)+1, maxAfter))
		if inQuarantine {
			t.probes = min(t.probes, math.MaxUint8-1) + 1
		}
		if !inQuarantine && !q.Disabled && int(t.fails) >= q.After {
			t.probes = 1
		}
	}
	if inQuarantine || lease <= t.raised || b.Disabled || !slowing(x.kind) {
		return
	}
	t.raised, t.search = last, 0
	if t.sporadic(x) {
		return
	}
	switch {
	case lanes <= 1:
	case t.lanes == 0:
		t.lanes = uint16(lanes / 2)
	default:
		t.lanes = uint16(lanes - 1) // one was given back too early
	}
	if t.step == 0 || b.gap(t.step) < b.Max {
		t.step++
	}
	if t.eased {
		t.eased, t.relapses = false, min(t.relapses+1, maxRelapses)
		t.from = t.step // the step before does not suffice
		t.usual /= likeness
	}
}

// sporadic reports whether a failure tells nothing about the pace of contacts, so
// that the step need not be raised, and takes back what slowed the host in vain.
//
// A 429 and a Retry-After are about the pace. Of other failures only their
// frequency tells: those that are rare are tried at a slower pace first, and if
// they are as frequent there, no pace will do.
func (t *trouble) sporadic(x failure) bool {
	run := t.run
	t.run = 0
	if x.kind == FailureTooMany || x.asked {
		t.usual, t.short = 0, false
		return false
	}
	if run < rareAfter {
		forgiven := t.usual > 0 && t.step == 0 && !t.short
		t.short = forgiven
		return forgiven
	}
	t.short = false
	switch {
	case t.step == 0:
		if int(run) < int(t.usual)/likeness || t.usual == 0 {
			return false // they are rarer at a slower pace, or nobody knows
		}
	case !x.slowed || t.usual == 0 && run < rareFirst:
		return false
	case t.relapses > 0 && (t.usual == 0 || int(run) > likeness*int(t.usual)):
		t.usual = run
		return false // slowing down has helped, and not enough
	case t.usual == 0:
		t.usual = run
	default:
		t.usual = uint8((int(t.usual) + int(run)) / 2)
	}
	t.relapses = 0
	if t.step > 0 {
		t.step--
		t.eased = true
	} else if t.lanes > 0 {
		t.lanes++
		t.eased = true
	}
	return true
}

// slowing reports whether such a failure slows its host down. That a name is
// not resolved says nothing about the host's server, and a 5xx may be the page's.
func slowing(k Failure) bool {
	return k == FailureConnect || k == FailureTimeout || k == FailureUnavailable || k == FailureTooMany
}

// succeeded takes in that a contact went well that ended at end. pace is the time
// from its begin to the earliest next one. The host might have so many leases at
// once if it never failed.
func (t *trouble) succeeded(lease uint64, end, pace int64, lanes int32, b *Backoff) {
	if t.fails > 0 && int(t.step) >= int(t.from)+2 {
		t.search = max(t.from, 1)
	}
	t.fails, t.probes = 0, 0
	if lease <= t.raised {
		return // it began before the step was raised
	}
	t.good, t.run = min(t.good+1, searchAfter), max(t.run, t.run+1)
	soon := t.search > 0 && t.step > t.search && t.good == searchAfter
	if !soon && end-t.quiet < t.quietFor(pace, b) {
		return
	}
	switch {
	case t.step > 0:
		t.step--
	case t.lanes > 0:
		if t.lanes++; int32(t.lanes) >= lanes {
			t.lanes = 0
		}
	default:
		t.eased, t.relapses, t.usual, t.short = false, 0, 0, false // it is over
		return
	}
	t.quiet, t.good, t.eased = end, 0, true
}

// allowed is how many of n leases the host may have at once.
func (t *trouble) allowed(n int32) int32 {
	switch {
	case t.step > 0 || t.probes > 0:
		return 1
	case t.lanes > 0:
		return min(n, int32(t.lanes))
	}
	return n
}

// quietFor is how long nothing may fail until a step is taken back.
func (t *trouble) quietFor(pace int64, b *Backoff) int64 {
	return min(max(int64(b.ForgiveAfter), quietGaps*min(pace, int64(maxDelay)/quietGaps))<<t.relapses, int64(maxDelay))
}

// over reports whether nothing need be known any more.
func (t *trouble) over() bool {
	return t.step == 0 && t.lanes == 0 && t.fails == 0 && t.probes == 0 && !t.eased && t.relapses == 0 && t.usual == 0
}

// until is when a host without URLs is forgotten to have failed.
func (t *trouble) until() int64 {
	if t.step > 0 || t.lanes > 0 || t.probes > 0 || t.eased || t.relapses > 0 || t.usual > 0 {
		return t.quiet + int64(troubleKept)
	}
	return t.quiet + int64(failuresKept)
}

// gap is the least time between contacts at a step.
func (b *Backoff) gap(step uint8) time.Duration {
	return doubled(b.Base, step-1, b.Max)
}

// interval is the time between probes.
func (q *Quarantine) interval(probes uint8) time.Duration {
	return doubled(q.Probe, probes-1, q.MaxProbe)
}

// doubled is d times 2^n, at most most.
func doubled(d time.Duration, n uint8, most time.Duration) time.Duration {
	if n >= 62 || d > most>>n {
		return most
	}
	return d << n
}

// jittered is the longest that d may become by jitter.
func (b *Backoff) jittered(d time.Duration) time.Duration {
	return d + time.Duration(float64(d)*b.Jitter).Truncate(time.Millisecond)
}

// jitter is what is added to d at random; x is a random number.
func (b *Backoff) jitter(d time.Duration, x uint64) time.Duration {
	return time.Duration(float64(d) * b.Jitter * (float64(x) / math.MaxUint64)).Truncate(time.Millisecond)
}
