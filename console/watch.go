// This file records events, failures by kind and host, and how well hosts' gaps were kept.

package console

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/event"
)

const (
	maxEvents  = 200
	maxFailing = 1024 // hosts with counted failures
	maxGaps    = 4096 // hosts with a remembered last contact
)

// Watch records events and contacts, and keeps a bounded number of them. It is safe for concurrent use.
type Watch struct {
	mu       sync.Mutex
	now      func() time.Time // the frontier's clock, once a Console uses the Watch
	events   []event.Event    // newest last
	lost     int64
	failures map[string]int64 // by kind
	ailing   map[string]*ailing
	ended    map[string]time.Time // end of the last contact, by host
	gaps     [len(gapBounds) + 1]int64

	fetches                 []Fetch // newest last
	answers                 map[int]int64
	requests, failed, bytes int64
	streak                  int // consecutive failed requests up to now

	fault   string    // the store's last; empty: it works
	faultAt time.Time // when it was reported
	// faultLasts marks a fault that holds until event.StoreWorks; others are reported again while they
	// last.
	faultLasts bool
}

// gapBounds are bounds of the ratio of a gap kept to the gap owed.
var gapBounds = [...]float64{1, 1.1, 1.25, 1.5, 2, 4, 8, 16, 64}

// NewWatch returns an empty Watch.
func NewWatch() *Watch {
	return &Watch{now: time.Now, failures: map[string]int64{}, ailing: map[string]*ailing{}, ended: map[string]time.Time{}, answers: map[int]int64{}}
}

// Event records an event. Use it as frontier.Options.OnEvent.
func (w *Watch) Event(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost += e.Dropped
	switch e.Kind {
	case event.StoreError:
		w.fault, w.faultAt, w.faultLasts = e.Reason, e.Time, e.Reason == "commit"
		if e.Err != nil {
			w.fault += ": " + cut(e.Err.Error(), longError)
		}
	case event.StoreWorks:
		w.fault = ""
	}
	if len(w.events) == maxEvents {
		w.events = slices.Delete(w.events, 0, 1)
	}
	w.events = append(w.events, e)
}

// storeFault returns the store's current fault, or "".
func (w *Watch) storeFault(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.faultAt) > 2*time.Minute && !w.faultLasts {
		return ""
	}
	return w.fault
}

// Outcome records a contact and its failure. Call it after the frontier has recorded the outcome, as
// crawler.Options.OnDone does.
func (w *Watch) Outcome(l frontier.Lease, o frontier.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := w.endedLocked(o.Ended)
	switch o.Result {
	case frontier.Failed:
	case frontier.Denied, frontier.Requeue, frontier.PutOff: // without a contact
		return
	default:
		w.answeredLocked(l.Host, ended)
		return
	}
	kind := o.Failure.String()
	w.failures[kind]++
	a := w.ailingLocked(l.Host)
	a.by[kind]++
	if a.since.IsZero() {
		a.since = ended
	}
	if a.last.Kind == "" {
		a.last = Fetch{At: ended, Host: l.Host, URL: fetch.Redact(l.Entry.URL), Kind: kind}
	}
}

// forgetLeastLocked makes room: it drops the half with the fewest failures.
func (w *Watch) forgetLeastLocked() {
	hosts := slices.Collect(maps.Keys(w.ailing))
	slices.SortFunc(hosts, func(a, b string) int { return cmp.Compare(w.ailing[a].total(), w.ailing[b].total()) })
	for _, h := range hosts[:len(hosts)/2] {
		delete(w.ailing, h)
	}
}

// follow sets the clock.
func (w *Watch) follow(now func() time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// endedLocked returns when a contact ended; the zero time means now.
func (w *Watch) endedLocked(at time.Time) time.Time {
	if at.IsZero() {
		return w.now()
	}
	return at
}

// Contact records a finished contact with a host: when it began, when the host was due (zero: at any
// time), and when it ended (zero: now). It measures how gaps were kept. It skips contacts that overlap or
// arrive out of order, unless one came too early.
func (w *Watch) Contact(host string, began, due, ended time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended = w.endedLocked(ended)
	last, ok := w.ended[host]
	switch kept, owed := began.Sub(last), due.Sub(last); {
	case began.Before(due):
		w.gaps[0]++
	case ok && owed > 0:
		i, exact := slices.BinarySearch(gapBounds[:], float64(kept)/float64(owed))
		if exact {
			i++
		}
		w.gaps[i]++
	}
	if !ok && len(w.ended) == maxGaps {
		for h := range w.ended {
			delete(w.ended, h)
			break
		}
	}
	if ended.After(last) {
		w.ended[host] = ended
	}
}

// HostFailures counts a host's failures by kind.
type HostFailures struct {
	Host  string           `json:"host"`
	Total int64            `json:"total"`
	By    map[string]int64 `json:"by"`
}

// Gaps counts gaps between contacts with a host by their ratio to the gap owed. Under counts gaps that
// were too short: it must be 0.
type Gaps struct {
	Bounds []float64 `json:"bounds"` // upper, for all Counts but the last
	Counts []int64   `json:"counts"`
}

// Notice is an event as text.
type Notice struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Host string    `json:"host,omitempty"` // or scope
	URL  string    `json:"url,omitempty"`
	Text string    `json:"text,omitempty"`
}

func (w *Watch) snapshot(hosts, events int) (failures map[string]int64, failing []HostFailures, gaps Gaps, notices []Notice, lost int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h, a := range w.ailing {
		if n := a.total(); n > 0 {
			failing = append(failing, HostFailures{h, n, maps.Clone(a.by)})
		}
	}
	slices.SortFunc(failing, func(a, b HostFailures) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Host, b.Host))
	})
	failing = failing[:min(hosts, len(failing))]
	for _, e := range slices.Backward(w.events[max(0, len(w.events)-events):]) {
		notices = append(notices, notice(e))
	}
	return maps.Clone(w.failures), failing, Gaps{gapBounds[:], slices.Clone(w.gaps[:])}, notices, w.lost
}
