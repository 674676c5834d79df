// This file finds hosts whose pages want more fetches than politeness allows: they get a separate
// price.

package incremental

import (
	"math"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
)

const (
	watchedHosts = 1 << 16 // remembered hosts; few of them are in trouble
	boundHosts   = 1 << 12 // hosts with a rate, of 3 KB each
	lateVisits   = 8       // most of this many visits must be late before a host gets a rate
)

// hosts watches how late the pages of hosts are. The zero value is ready to use.
type hosts struct {
	mu    sync.Mutex
	seen  map[uint32]hostPace // guarded by mu
	bound int                 // guarded by mu; number of hosts with a rate
}

// hostPace is how a host's visits go.
type hostPace struct {
	end    int64   // Unix nanoseconds; of the last visit
	late   float32 // share of visits that waited for politeness alone, of the last 16 or so
	visits uint8   // up to lateVisits
	period float32 // seconds from one visit to the next that politeness requires
	told   float32 // the value that was passed to the scheduler; 0: none
}

// observe counts a visit, and passes the host's rate to the scheduler if its pages are late.
func (r *Revisits) observe(l *frontier.Lease, o *frontier.Outcome, before *recrawl.Page) {
	if r.frontier == nil {
		return
	}
	pause := r.frontier.DelayOf(l.Host).Delay(l.Host, *o)
	period := (max(pause, o.CrawlDelay) + o.Duration).Seconds()
	if !(period > 0) {
		return
	}
	wanted := before.Due
	if !before.State.Crawled() {
		wanted = time.Time{} // whenever there is time
	}
	if perSecond := r.hosts.watch(before.Host, float32(period), wanted, l.LeasedAt, o.Ended); perSecond > 0 {
		if err := r.schedule.SetHostRate(before.Host, perSecond); err != nil {
			r.opts.Logger.Warn("a host has no rate", "host", l.Host, "error", err)
		}
	}
}

// watch counts a visit of a page that was due at one time, and began and ended at others. It
// returns the host's rate if the scheduler needs it. A page is late because of its host if it was
// due long before, and the host was busy until then: a slow crawl leaves the host alone for longer.
func (h *hosts) watch(id uint32, period float32, wanted, began, ended time.Time) (perSecond float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[uint32]hostPace{}
	}
	x, ok := h.seen[id]
	if !ok {
		x.period = period
		for other, y := range h.seen { // any, if there are too many
			if len(h.seen) < watchedHosts {
				break
			}
			if y.told > 0 {
				h.bound--
			}
			delete(h.seen, other)
		}
	}
	idle := float64(began.UnixNano()-x.end) / 1e9
	late := !wanted.IsZero() && began.Sub(wanted).Seconds() > 1+4*float64(period) && idle < 1.5*float64(period)+0.05
	x.end = ended.UnixNano()
	x.visits = min(x.visits+1, lateVisits)
	x.period += (period - x.period) / 16
	was := float32(0)
	if late {
		was = 1
	}
	x.late += (was - x.late) / 16
	if x.visits == lateVisits && x.told == 0 && x.late > 0.3 && h.bound < boundHosts {
		h.bound++
		x.told = x.period
		perSecond = 1 / float64(x.period)
	} else if x.told > 0 && math.Abs(float64(x.period/x.told-1)) > 0.25 {
		x.told = x.period
		perSecond = 1 / float64(x.period)
	}
	h.seen[id] = x
	return perSecond
}
