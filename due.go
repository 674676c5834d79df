// This file says when a host may be contacted again after a contact, and which of
// its clocks says so.

package frontier

import "math/rand/v2"

// why tells which clock a host's due comes from.
type why uint8

const (
	whyNone       why = iota // none: it was not contacted
	whyDelay                 // the delay policy's
	whyCrawlDelay            // Crawl-delay
	whyRetryAfter            // Retry-After
	whyBackoff               // its back-off
	whyQuarantine            // the next probe
	whyReopened              // the store was opened after a crash
	whys
)

// clocks is when a host may be contacted again.
type clocks struct {
	lane int64 // under the lane of the contact: its end and the delay; 0: unchanged
	hold int64 // under any lane; 0: unchanged
	why  why   // hold is so late
}

// due is the later of both, and which clock says so.
func (x clocks) due() (int64, why) {
	if x.lane >= x.hold {
		return x.lane, whyDelay
	}
	return x.hold, x.why
}

// clocksLocked is when a host may be contacted again after a contact that ended
// as planned. Its Crawl-delay and what failed before hold all lanes, as what the
// host asks for does.
func (f *Frontier) clocksLocked(id uint32, p *plan) clocks {
	h := f.core.hosts.at(id)
	var x clocks
	hold := func(t int64, w why) {
		if t > x.hold {
			x.hold, x.why = t, w
		}
	}
	if p.hostHold >= 0 {
		x.lane = p.end + p.hostHold
		if h.crawlDelay > 0 {
			hold(p.end+h.crawlDelayNs(), whyCrawlDelay)
		}
	}
	if ra := p.outcome.RetryAfter; ra > 0 {
		hold(p.end+int64(min(ra, maxDelay)), whyRetryAfter)
	}
	if h.has(troubled) {
		f.core.freeFrom(id, max(x.lane, x.hold))
		if gap, w := f.core.troubleGap(id); gap > 0 && p.hostHold >= 0 {
			hold(p.end+int64(gap+f.opts.Backoff.jitter(gap, rand.Uint64())), w)
		}
	}
	return x
}
