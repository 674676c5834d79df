// This file keeps what is known of hosts that fail, and lets it act: on the host's
// clock and on the URLs of failed probes.
//
// Hosts in trouble are few: what backoff.go knows of them lies in a table beside
// the hosts, and goes to disk with the host's row.

package frontier

import (
	"fmt"
	"time"
)

// troubleBytes is what an entry of core.troubles takes, about.
const troubleBytes = 96

// setTrouble makes t what is known of a host's failures.
func (c *core) setTrouble(id uint32, t trouble) {
	h := c.hosts.at(id)
	old := c.troubles[id]
	c.stats.BackedOff += int64(btoi(t.step > 0) - btoi(old.step > 0))
	c.stats.Quarantined += int64(btoi(t.probes > 0) - btoi(old.probes > 0))
	if t.over() {
		h.clear(troubled)
		delete(c.troubles, id)
		return
	}
	h.set(troubled)
	c.troubles[id] = t
}

// outlived forgets the failures of a host without URLs after a time.
func (c *core) outlived(id uint32, now int64) {
	if h := c.hosts.at(id); h.has(troubled) {
		if t := c.troubles[id]; t.until() <= now {
			c.setTrouble(id, trouble{})
			h.set(behind)
		}
	}
}

// idlesUntil is when something may be forgotten of a host without URLs.
func (c *core) idlesUntil(id uint32) int64 {
	until, h := c.restsUntil(id), c.hosts.at(id)
	if h.has(troubled) && h.crawlDelay == 0 && !c.cfg.spill {
		t := c.troubles[id]
		until = max(until, t.until())
	}
	if h.has(counted) && !c.cfg.spill {
		until = max(until, c.limits.hosts[id].rests)
	}
	return until
}

// contactLocked takes in how a contact ended that took a lease of this token.
func (f *Frontier) contactLocked(id uint32, token uint64, p *plan) {
	c := f.core
	h := c.hosts.at(id)
	failed := p.outcome.Result == Failed
	if p.hostHold < 0 || p.expired || p.outcome.Result == Requeue || !failed && !h.has(troubled) {
		return
	}
	b, q := &f.opts.Backoff, &f.opts.Quarantine
	old := c.troubles[id]
	t, lease := old, f.leaseNumber(token)
	if !h.has(troubled) {
		t.free = h.due
	}
	if failed {
		slowed := t.step > 0 && int64(b.gap(t.step)) > max(p.hostHold, h.crawlDelayNs())
		t.failed(failure{p.outcome.Failure, p.outcome.RetryAfter > 0, lease, f.token, p.end, c.allowed(id), slowed}, b, q)
		if int32(t.lanes) >= c.concurrencyOf(id) {
			t.lanes = 0
		}
	} else {
		gap := int64(0)
		if t.step > 0 {
			gap = int64(b.gap(t.step))
		}
		t.succeeded(lease, p.end, int64(p.outcome.Duration)+max(p.hostHold, h.crawlDelayNs(), gap), c.concurrencyOf(id), b)
	}
	c.setTrouble(id, t)
	if t.step != old.step || t.probes != old.probes || t.lanes != old.lanes {
		h.set(unsaved)
	} else if t.over() != old.over() || t.fails != old.fails || t.quiet != old.quiet || t.usual != old.usual {
		h.set(behind)
	}
	f.tellTroubleLocked(h, &old, &t, p.spared)
}

// tellTroubleLocked tells of a change for the worse, or its end. own says that a URL
// waits again that is not in a queue yet.
func (f *Frontier) tellTroubleLocked(h *host, old, t *trouble, own bool) {
	e := Event{Host: string(f.core.name(h))}
	switch {
	case t.lost(&f.opts.Quarantine) && !old.lost(&f.opts.Quarantine):
		e.Kind, e.Count = EventHostGivenUp, int64(h.waiting)+int64(btoi(own))
		e.Reason = fmt.Sprintf("%d probes failed", t.probes-1)
		e.Until = f.wall(f.last + int64(f.opts.Quarantine.interval(t.probes)))
	case t.probes > 0 && old.probes == 0:
		e.Kind, e.Count = EventHostQuarantined, int64(t.fails)
		e.Until = f.wall(f.last + int64(f.opts.Quarantine.interval(t.probes)))
	case t.step > old.step:
		e.Kind, e.Count = EventHostBackedOff, int64(t.step)
	case t.probes == 0 && old.probes > 0, t.step == 0 && old.step > 0:
		e.Kind = EventHostReturned
	default:
		return
	}
	f.emitLocked(e)
}

// leaseNumber is the number of the lease with this token: later ones have higher
// numbers.
func (f *Frontier) leaseNumber(token uint64) uint64 { return f.core.leaseNumber(token) }

func (c *core) leaseNumber(token uint64) uint64 { return token ^ c.hash(bytesOf("token")) }

// BackoffState is what its failures did to a host. The zero value is nothing.
type BackoffState struct {
	Step     int           // of its back-off; 0: it is not slowed down
	Gap      time.Duration // least time between its contacts, for its failures alone
	Lanes    int           // leases it may have at once; 0: as many as are set
	Failures int           // failed contacts in a row
	Relapses int           // how often a step that was taken back was needed after all
	Probes   int           // number of the quarantine's interval, from 1; 0: it is in none
}

func (t *trouble) state(cfg *coreConfig) BackoffState {
	gap, _ := t.gap(cfg)
	return BackoffState{int(t.step), gap, int(t.lanes), int(t.fails), int(t.relapses), int(t.probes)}
}

// gap is how long a host is left alone after a contact because of what failed
// before, without jitter, and which clock says so.
func (t *trouble) gap(cfg *coreConfig) (time.Duration, why) {
	switch {
	case t.probes > 0:
		return cfg.quarantine.interval(t.probes), whyQuarantine
	case t.step > 0:
		return cfg.backoff.gap(t.step), whyBackoff
	}
	return 0, whyNone
}

// troubleGap is the gap of a host.
func (c *core) troubleGap(id uint32) (time.Duration, why) {
	if !c.hosts.at(id).has(troubled) {
		return 0, whyNone
	}
	t := c.troubles[id]
	return t.gap(&c.cfg)
}

// learnedGap is how long a host is left alone after a contact, as far as that was
// learned of it, at most.
func (c *core) learnedGap(id uint32) int64 {
	gap, _ := c.troubleGap(id)
	return max(c.hosts.at(id).crawlDelayNs(), int64(c.cfg.backoff.jittered(gap)))
}

// spareLocked keeps the URL of a failed probe, and its tries.
func (f *Frontier) spareLocked(lease uint32, p *plan) {
	c := f.core
	id := c.leases.at(lease).host
	if p.outcome.Result != Failed || !c.hosts.at(id).has(troubled) || c.troubles[id].probes == 0 {
		return
	}
	p.due = p.next
	if p.expired {
		p.due = 0
	}
	p.stays, p.retry, p.spared, p.givenUp = true, true, true, false
}

// troubleKept reports whether a row says of a host's failures what must be known.
func (f *Frontier) troubleKept(s *hostState) bool {
	t := f.stateTrouble(s)
	return !t.over() && t.until() > 0
}
