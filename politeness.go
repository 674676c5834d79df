// This file has what users choose about politeness: how long a host is left alone after a
// contact, how one is slowed down that fails, when it is only probed, and when a URL
// whose try failed is tried again.
//
// Package trouble has what failures mean for a host.

package frontier

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// DelayPolicy determines how long a host is left alone after a contact. Crawl-delay and Retry-After
// apply too: the longest wins. Its methods are called outside the frontier's lock, from any goroutine.
// If one panics in a call of Done, so does that call, and the lease remains out; where a lease has
// expired, the next call of Next returns an error. The same holds for runtime.Goexit.
type DelayPolicy interface {
	// Delay is the time from the end of the contact described by o to the next
	// one. o.Duration and o.Ended are filled in. Negative is a mistake, and counts as Max.
	Delay(host string, o Outcome) time.Duration
	// Max is the longest that Delay answers. After a crash every host is left
	// alone for that long from the moment of reopening.
	Max() time.Duration
}

// ownDelay is a policy of this package, as it is stored.
type ownDelay struct{ p row.Delay }

// FactorDelay is Mercator's policy: k times the duration of the last fetch, at least min and at most
// max. The default is FactorDelay(10, time.Second, 30*time.Second). Open refuses a negative or infinite
// k, a negative min, max below min, and bounds above 0 and below 1 ms.
func FactorDelay(k float64, min, max time.Duration) DelayPolicy {
	return ownDelay{row.Delay{Kind: row.Factor, Factor: k, Min: min, Max: max}}
}

// FixedDelay leaves every host alone for d. Open refuses a d that is negative, or above 0
// and below 1 ms.
func FixedDelay(d time.Duration) DelayPolicy { return ownDelay{row.Delay{Kind: row.Fixed, Max: d}} }

func (d ownDelay) Delay(_ string, o Outcome) time.Duration {
	x := d.p.Factor * float64(o.Duration)
	if d.p.Kind == row.Fixed || x >= float64(d.p.Max) {
		return d.p.Max
	}
	return max(time.Duration(x), d.p.Min)
}

func (d ownDelay) Max() time.Duration { return d.p.Max }

func (d ownDelay) String() string {
	if d.p.Kind == row.Fixed {
		return d.p.Max.String()
	}
	return fmt.Sprintf("%g times the fetch, %s to %s", d.p.Factor, d.p.Min, d.p.Max)
}

// DelayParts returns the arguments of the FactorDelay that made p. For a FixedDelay, k is 0 and min
// and max are the delay. ok is false for any other policy.
func DelayParts(p DelayPolicy) (k float64, min, max time.Duration, ok bool) {
	d, ok := p.(ownDelay)
	if d.p.Kind == row.Fixed {
		return 0, d.p.Max, d.p.Max, true
	}
	return d.p.Factor, d.p.Min, d.p.Max, ok
}

// storedDelay is the stored form of a shipped policy. Other policies are not stored.
func storedDelay(d DelayPolicy) row.Delay {
	own, _ := d.(ownDelay)
	return own.p
}

// policyOf is the inverse of storedDelay.
func policyOf(d row.Delay) DelayPolicy {
	if d.Kind == row.NoDelay {
		return nil
	}
	return ownDelay{d}
}

// Backoff slows down a host that refuses contacts: with 429, 503, no connection, or no
// answer in time. Zero fields mean the defaults.
//
// Each such failure raises the host's step by one. While a host's step is k, its next
// contact comes no sooner than Base x 2^(k-1) after the end of the last, good or bad; the
// delay, Crawl-delay and Retry-After apply too, and the latest wins.
//
// Some failures may have nothing to do with the pace: a 503 without Retry-After, a failed connection, a
// timeout. The first of them raises the step too, and the step is then tested: if the next one comes
// after 10 good contacts or more at the slower pace, slowing down did not help, and a step is taken
// back. From then on such failures raise no step, unless they become much more frequent than at the
// slower pace, or two in a row have fewer than 4 good contacts before them. For example, a host that
// answers every 50th contact with 503 is slowed down once, and returns to its pace at the second 503.
//
// Concurrent failures count as one: those whose contacts began before the last raise do not raise the
// step again. A host that may have several leases has one at a time while its step is not 0, then half
// as many as it had, and one more each time that a step would be taken back.
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
	// ForgiveAfter is the quiet period before one step is undone: at least ForgiveAfter,
	// and at least 200 contacts at the current gap. It doubles (up to 6 times) whenever a
	// step was undone too early. Zero means 10 minutes.
	//
	// Two exceptions look soon whether a host was only down. After two or more steps in a row without a
	// good contact between, and at the end of a quarantine, one step is taken back after every second
	// good contact, down to the step before (at least 1, and above one that did not suffice), until
	// something fails.
	ForgiveAfter time.Duration
}

// Quarantine determines when a host that only fails is left alone except for probes. Zero
// fields mean the defaults.
//
// After the given number of failed contacts in a row, of any kind, the host is contacted once per
// interval, which doubles each time. Its URLs are kept: a failed probe uses up no try (but see
// CountTries), and its URL waits again, behind the host's others. The first good contact ends the
// quarantine. Expired leases do not count, and of concurrent failures only the first does.
type Quarantine struct {
	// Disabled keeps all hosts out of quarantine.
	Disabled bool
	// After is the number of failed contacts. Zero means 8.
	After int
	// Probe is the first interval. Zero means 10 minutes.
	Probe time.Duration
	// MaxProbe bounds the interval. Zero means a day, or Probe if that is longer.
	MaxProbe time.Duration
	// Probes is the number of probes that may fail in a row, 1 to 250, before the host is given up: its
	// URLs leave, reported like those whose tries are used up, and event.HostGivenUp has their number.
	// URLs that come before the next probe would be due are given up as well; the first that comes
	// later is that probe. Paused and blocked hosts, and paused crawls, keep their URLs.
	//
	// Zero means 10: with the default intervals a host is given up about four days
	// after it came into quarantine, so that it survives a weekend: 90.5 hours, and up
	// to a tenth more by Backoff.Jitter. With 3 it is 70 minutes and as much more. With
	// a Scheduler, whose URLs come again for ever, zero means Forever.
	Probes int
	// Forever keeps the URLs of a host until it returns, however many probes fail, and
	// Next waits with them. Probes must then be zero.
	Forever bool
	// CountTries makes a failed probe a try of its URL like any other: Lease.Attempt counts
	// it, and Retry may give the URL up.
	CountTries bool
}

func (b Backoff) withDefaults() Backoff {
	b.Base = cmp.Or(b.Base, 2*time.Second)
	b.Max = cmp.Or(b.Max, max(10*time.Minute, b.Base))
	b.Jitter = cmp.Or(b.Jitter, 0.1)
	b.ForgiveAfter = cmp.Or(b.ForgiveAfter, 10*time.Minute)
	return b
}

func (q Quarantine) withDefaults(visitsAgain bool) Quarantine {
	q.After = cmp.Or(q.After, 8)
	q.Probe = cmp.Or(q.Probe, 10*time.Minute)
	q.MaxProbe = cmp.Or(q.MaxProbe, max(24*time.Hour, q.Probe))
	switch {
	case q.Probes != 0 || q.Forever:
	case visitsAgain:
		q.Forever = true
	default:
		q.Probes = defaultProbes
	}
	return q
}

func (b Backoff) check() faults.List {
	wrong := faults.List(unit.CheckAll("Backoff.", b))
	wrong.If(b.Max < b.Base || b.Max > maxDelay, "Backoff has Base %v and Max %v; want Base <= Max <= %v", b.Base, b.Max, maxDelay)
	wrong.If(!(b.Jitter >= 0 && b.Jitter <= 1), "Backoff.Jitter is %v; want 0 to 1", b.Jitter)
	wrong.If(b.ForgiveAfter > maxDelay, "Backoff.ForgiveAfter is %v; want at most %v", b.ForgiveAfter, maxDelay)
	return wrong
}

func (q Quarantine) check() faults.List {
	wrong := faults.List(unit.CheckAll("Quarantine.", q))
	wrong.If(q.After < 1 || q.After > maxAfter, "Quarantine.After is %d; want 1 to %d", q.After, maxAfter)
	wrong.If(q.MaxProbe < q.Probe || q.MaxProbe > maxDelay, "Quarantine has Probe %v and MaxProbe %v; want Probe <= MaxProbe <= %v", q.Probe, q.MaxProbe, maxDelay)
	wrong.If(q.Forever && q.Probes != 0, "Quarantine has Probes %d and Forever; want one of them", q.Probes)
	wrong.If(!q.Forever && (q.Probes < 1 || q.Probes > maxProbes), "Quarantine.Probes is %d; want 1 to %d, or Forever", q.Probes, maxProbes)
	return wrong
}

const (
	maxProbes     = 250          // that Quarantine.Probes may allow
	defaultProbes = 10           // over 90.5 hours at least: more than a weekend
	maxAfter      = row.MaxFails // failed contacts until a quarantine
)

// Failure is the kind of a failed contact. The zero value is FailureOther.
type Failure uint8

const (
	FailureOther       Failure = iota // none of the others, or not known
	FailureDNS                        // the host's name could not be resolved
	FailureConnect                    // no connection, or it broke before an answer
	FailureTimeout                    // no answer in time
	FailureServer                     // 5xx except the next
	FailureUnavailable                // 503, or 509 or 529
	FailureTooMany                    // 429, or another status that asks for fewer requests
)

const failures = int(FailureTooMany) + 1

// String returns the kind's name in lower case.
func (k Failure) String() string {
	names := [failures]string{"other", "dns", "connect", "timeout", "server", "unavailable", "too many requests"}
	if int(k) < failures {
		return names[k]
	}
	return "invalid failure"
}

// RetryPolicy decides whether and when a URL is tried again after a failure. It is called
// outside the lock, from any goroutine. If it panics that is as with a DelayPolicy.
type RetryPolicy interface {
	// Retry is called after the given try, counted from 1. It returns how long to wait from the end of
	// the try, and whether to try again at all. o.Failure is the kind of failure. The URL comes later
	// if its host may not be contacted then. While its host is in quarantine the result is ignored. A
	// lease that expires is a failed try too: o.Failure is then FailureOther, and a URL that is tried
	// again waits at once. A wait that is negative counts as 0: the host's delay applies in any case.
	Retry(e Entry, attempt int, o Outcome) (wait time.Duration, again bool)
}

type retries struct {
	tries int
	first time.Duration
}

// Retries allows the given number of tries of a URL in all. The first retry comes after
// the wait first, each further one after four times the previous wait, up to 30 days.
func Retries(tries int, first time.Duration) RetryPolicy { return retries{tries, first} }

func (r retries) Retry(_ Entry, attempt int, _ Outcome) (time.Duration, bool) {
	if attempt >= r.tries {
		return 0, false
	}
	wait := r.first
	for range min(attempt-1, 20) {
		wait = min(4*wait, maxDelay)
	}
	return wait, true
}

type retriesByKind [failures]RetryPolicy

// RetriesByKind asks the policy of the kind of failure, or other for kinds that
// have none. A URL's tries are counted over all kinds.
func RetriesByKind(other RetryPolicy, kinds map[Failure]RetryPolicy) RetryPolicy {
	var r retriesByKind
	for k := range r {
		r[k] = other
	}
	for k, p := range kinds {
		if int(k) < failures {
			r[k] = p
		}
	}
	return r
}

func (r retriesByKind) Retry(e Entry, attempt int, o Outcome) (time.Duration, bool) {
	return r[o.Failure].Retry(e, attempt, o)
}

// DefaultRetries is the policy that Options.Retry has by default: 3 tries, half a minute after the
// first. Trouble of the host takes longer: 4 tries after 10 minutes if its name could not be resolved,
// 5 after a minute without a connection or with a 503, 3 after a minute if it did not answer in time or
// with another 5xx. A 429 is not the URL's fault: 8 tries after half a minute.
func DefaultRetries() RetryPolicy {
	return RetriesByKind(Retries(3, 30*time.Second), map[Failure]RetryPolicy{
		FailureDNS:         Retries(4, 10*time.Minute),
		FailureConnect:     Retries(5, time.Minute),
		FailureTimeout:     Retries(3, time.Minute),
		FailureServer:      Retries(3, time.Minute),
		FailureUnavailable: Retries(5, time.Minute),
		FailureTooMany:     Retries(8, 30*time.Second),
	})
}

// TriesAgain reports whether Options.Retry lets the URL of a lease come again if the
// lease ends with o as Failed.
func (f *Frontier) TriesAgain(l Lease, o Outcome) bool {
	_, again := f.opts.Retry.Retry(l.Entry, l.Attempt, o)
	return again
}

func checkRetry(name string, p RetryPolicy) (wrong faults.List) {
	switch r := p.(type) {
	case nil:
		wrong.Add(fmt.Errorf("%s is nil; want a policy", name))
	case retries:
		wrong.Add(unit.Check(name+": the first wait of Retries", r.first, unit.Least))
		wrong.If(r.tries < 1 || r.first > maxDelay, "%s is Retries(%d, %v); want tries >= 1 and a wait of at most %v", name, r.tries, r.first, maxDelay)
	case retriesByKind:
		for k, p := range r {
			wrong.Add(checkRetry(fmt.Sprintf("%s for %q", name, Failure(k)), p)...)
		}
	}
	return wrong
}

// delayOf is DelayOf for a host key, such as that of a lease.
func (s *shared) delayOf(key string) DelayPolicy {
	if d, ok := s.controls.Delay(key).(DelayPolicy); ok {
		return d
	}
	return s.opts.Delay
}
