// This file distinguishes a failure of the crawler's own network from failures of hosts: if no host
// answers, it assumes that the network is down. The crawler then makes few contacts, over all
// hosts, and their failures count against no host and no URL.
//
// The evidence, since a host last answered:
//   - hosts that answered earlier in this run and do not now: three are enough
//   - as long as no host has answered in this run: three without a connection, without a route, or
//     without an answer of a name server; or five, including those that refuse the connection,
//     because a device in between can send a refusal
//
// A host that answered and whose name now leads to an address that may not be contacted has not
// moved there: a portal or a filter answers for its name server. It counts as one without an answer.
//
// Failures before there is enough evidence must not slow hosts down either: if robots.txt is
// unreachable, the first failure since the host answered does not count, and the request is
// repeated after the usual delay.
//
// A contact that began well before that answer is no evidence: for most of its time the network worked, and the
// host was silent. Many hosts that fall silent together so hold up no others.
//
// Hosts that never answered are no evidence once others have answered: at the end of a crawl only
// such hosts are left. A name that does not exist is no evidence either. Any answer of any host
// ends an outage.
//
// If no host has answered in this run, the first hosts may be dead, and others not: each host gets a
// contact without a wait, and only those that have failed take turns.
//
// An outage excuses failures for a day, or for an hour if no host has answered in this run: the
// cause may be the hosts, and a crawl must end.

package crawler

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

const (
	outageHosts   = 3 // without an answer
	outageRefused = 5 // the same including those that refuse
	outageMost    = 24 * time.Hour
	outageUnknown = time.Hour // if no host has answered in this run

	mostExcused = 1 << 14 // hosts remembered; the failures of others count at once

	probeFirst = 250 * time.Millisecond // between contacts in an outage; twice as long after each
	probeMost  = 10 * time.Second

	leaseMost = 30 * time.Second // the longest wait with a lease
)

// outage detects whether the network is down. Use newOutage.
//
// It has three states: hosts answer (since is zero); the network is down (back is open); the outage
// has lasted too long to excuse failures (spent), until a host answers.
type outage struct {
	log *slog.Logger

	mu       sync.Mutex
	answered bool            // guarded by mu; a host has answered in this run
	last     time.Time       // guarded by mu; when it did
	silent   map[string]bool // guarded by mu; hosts without an answer since one; true: it did not refuse
	excused  map[string]bool // guarded by mu; hosts whose first failure since their last answer was excused
	since    time.Time       // guarded by mu
	spent    bool            // guarded by mu
	back     chan struct{}   // guarded by mu; closed when an outage ends
	next     time.Time       // guarded by mu; when the next contact may be made
	gap      time.Duration   // guarded by mu
}

func newOutage(log *slog.Logger) *outage {
	return &outage{log: log, silent: map[string]bool{}, excused: map[string]bool{}}
}

// answerKind is what a fetch shows about the network.
type answerKind uint8

const (
	nothing  answerKind = iota
	answered            // by the host
	refused             // by the host, or by something on the way
	silence
	lie // of a name server: the address may not be contacted; evidence if the host has answered before
)

// misled reports whether a fetch failed because the name of a host that has answered leads to an
// address that may not be contacted.
func (c *Crawler) misled(site string, res *fetch.Result, err error) bool {
	return kindOf(res, err) == lie && c.gate.answered(site)
}

// kindOf judges a fetch by its result and error.
func kindOf(res *fetch.Result, err error) answerKind {
	if err == nil {
		return answered
	}
	switch fetch.ClassOf(err) {
	case fetch.TLS, fetch.Protocol, fetch.Decode, fetch.Unwanted:
		return answered
	case fetch.Cut:
		if res.Status != 0 || !res.Timing.Reused {
			return answered
		}
	case fetch.DNS:
		if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound {
			return silence
		}
	case fetch.Connect:
		if errors.Is(err, syscall.ECONNREFUSED) {
			return refused
		}
		return silence
	case fetch.Blocked:
		if e, ok := errors.AsType[*fetch.Error](err); ok {
			if _, err := netip.ParseAddr(strings.Trim(hostOf(siteOf(e.URL)), "[]")); err != nil {
				return lie
			}
		}
	case fetch.Timeout: // once connected, the cause is the host, or an outage that began after that
		if res.Status == 0 && (res.Timing.Reused || !res.Remote.IsValid()) {
			return silence
		}
	}
	return nothing
}

// take records what a fetch from a host shows that lasted from began to now. known means that the host has
// answered in this run.
func (o *outage) take(host string, known bool, kind answerKind, began, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case kind == answered:
		o.answered, o.last = true, now
		delete(o.excused, host)
		clear(o.silent)
		if o.since.IsZero() {
			return
		}
		o.log.Warn("hosts answer: the network is back", "away", now.Sub(o.since).Round(time.Millisecond))
		if !o.spent {
			close(o.back)
		}
		o.since, o.spent = time.Time{}, false
		return
	case kind == nothing, kind == lie && !known:
		return
	case !o.since.IsZero():
		if len(o.silent) < mostExcused {
			o.silent[host] = true
		}
		o.expireLocked(now)
		return
	case o.answered && (!known || o.last.Sub(began) > now.Sub(o.last)):
		return
	}
	o.silent[host] = o.silent[host] || known || kind == silence
	n := 0
	for _, strong := range o.silent {
		if strong {
			n++
		}
	}
	if n >= outageHosts || len(o.silent) >= outageRefused {
		o.since, o.next, o.gap, o.back = now, now, probeFirst, make(chan struct{})
		o.log.Warn("no host answers: the network seems to be away", "hosts", len(o.silent))
	}
}

// expireLocked stops excusing failures when an outage has lasted too long.
func (o *outage) expireLocked(now time.Time) {
	most := outageMost
	if !o.answered {
		most = outageUnknown
	}
	if o.spent || now.Sub(o.since) < most {
		return
	}
	o.spent = true
	close(o.back)
	o.log.Warn("still no host answers: from now on failures count against the hosts", "away", now.Sub(o.since).Round(time.Second))
}

func (o *outage) awayLocked() bool { return !o.since.IsZero() && !o.spent }

// turnLocked returns the wait until the next turn, and takes it.
func (o *outage) turnLocked(now time.Time) time.Duration {
	if o.next.Before(now) {
		o.next = now
	}
	wait := o.next.Sub(now)
	o.next = o.next.Add(o.gap)
	o.gap = min(2*o.gap, probeMost)
	return wait
}

// away reports whether the network seems to be away, so that failures are excused.
func (o *outage) away() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.awayLocked()
}

// began returns when the present outage began; zero if hosts answer.
func (o *outage) began() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since
}

// excuses reports whether a failed fetch is held against no one.
func (o *outage) excuses(res *fetch.Result, err error) bool {
	kind := kindOf(res, err)
	return kind >= refused && o.away()
}

// excusesFirst reports whether a failed fetch is the first from a host since its last answer. It is
// excused, because an outage may be starting.
func (o *outage) excusesFirst(host string, res *fetch.Result, err error) bool {
	if kindOf(res, err) < refused {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.spent || o.excused[host] || len(o.excused) >= mostExcused {
		return false
	}
	o.excused[host] = true
	return true
}

// acquire waits during an outage, if a host has answered in this run, until a contact may be made;
// probe means that it is one. It returns false when ctx has ended.
func (o *outage) acquire(ctx context.Context) (probe, ok bool) {
	o.mu.Lock()
	if !o.answered || !o.awayLocked() {
		o.mu.Unlock()
		return false, true
	}
	wait, back := o.turnLocked(time.Now()), o.back
	o.mu.Unlock()
	ok = await(ctx, wait, back)
	return ok, ok
}

// admit judges a lease that was taken without a probe: in an outage its host may be contacted if
// none has answered in this run, as a probe if it has failed before. It waits for that; false means
// that the lease must be handed back.
func (o *outage) admit(ctx context.Context, host string) (probe, ok bool) {
	o.mu.Lock()
	_, failed := o.silent[host]
	switch {
	case !o.awayLocked():
		o.mu.Unlock()
		return false, true
	case o.answered || !failed:
		ok = !o.answered
		o.mu.Unlock()
		return false, ok
	}
	now, back := time.Now(), o.back
	if ok = o.next.Sub(now) <= leaseMost; !ok {
		o.mu.Unlock()
		await(ctx, leaseMost, back)
		return false, false
	}
	wait := o.turnLocked(now)
	o.mu.Unlock()
	ok = await(ctx, wait, back)
	return ok, ok
}

// await waits for some time, or until back is closed. It returns false when ctx has ended.
func await(ctx context.Context, wait time.Duration, back <-chan struct{}) bool {
	select {
	case <-time.After(wait):
	case <-back:
	case <-ctx.Done():
		return false
	}
	return true
}

// release returns a probe that contacted no host.
func (o *outage) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Now()
}
