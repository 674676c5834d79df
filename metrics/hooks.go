// This file counts what callbacks report.

package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
)

var (
	storeFailing = Metric{Name: "frontier_store_failing", OTel: "frontier.store.failing", Kind: State, Unit: "1", Help: "1 while the store does not commit; otherwise 0."}
	events       = Metric{Name: "frontier_events_total", OTel: "frontier.event.count", Kind: Counter, Unit: "{event}", Label: "kind", Help: "Events, by kind."}
	failures     = Metric{Name: "frontier_failures_total", OTel: "frontier.lease.failed", Kind: Counter, Unit: "{lease}", Label: "failure", Help: "Outcomes with the result failed, by kind of failure."}
	early        = Metric{Name: "frontier_contacts_early_total", OTel: "frontier.contact.early", Kind: Counter, Unit: "{contact}", Help: "Contacts that began before the host's clock allowed them. There must be none."}
	lateness     = Metric{Name: "frontier_contact_lateness_seconds", OTel: "frontier.contact.lateness", Kind: Histogram, Unit: "s", Help: "How long after the host's clock allowed it a contact began.", Bounds: secondsBounds}
	fetches      = Metric{Name: "frontier_fetches_total", OTel: "frontier.fetch.count", Kind: Counter, Unit: "{fetch}", Label: "status_class", Help: "Requests that ended, by class of the answer's status; none: no answer."}
	fetchTime    = Metric{Name: "frontier_fetch_duration_seconds", OTel: "frontier.fetch.duration", Kind: Histogram, Unit: "s", Help: "How long requests took, from connecting to the end of the answer.", Bounds: secondsBounds}
	fetchedBytes = Metric{Name: "frontier_fetched_bytes_total", OTel: "frontier.fetch.io", Kind: Counter, Unit: "By", Help: "Size of the bodies of answers, as sent."}
)

// secondsBounds begin with those that OpenTelemetry advises for HTTP.
var secondsBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 3600}

// Recorder takes the durations that a histogram of its library counts.
type Recorder interface {
	Record(m *Metric, seconds float64)
}

// Hooks count what a frontier and a fetcher report to callbacks:
//
//	frontier.Options{OnEvent: hooks.Event}
//	crawler.Options{OnDone: hooks.Done, OnFetch: figures.OnFetch(hooks)}
//
// It is a Source of the counts. Durations go to the Recorders. Safe for concurrent use.
type Hooks struct {
	recorders []Recorder
	failing   atomic.Bool
	early     atomic.Int64
	bytes     atomic.Int64
	events    []atomic.Int64 // by kind, from 1
	failures  []atomic.Int64 // by Failure, from 0
	classes   [6]atomic.Int64
}

// NewHooks returns Hooks without counts.
func NewHooks(recorders ...Recorder) *Hooks {
	h := &Hooks{recorders: recorders}
	for k := event.Kind(1); k.String() != event.Kind(255).String(); k++ {
		h.events = append(h.events, atomic.Int64{})
	}
	for x := frontier.Failure(0); x.String() != frontier.Failure(255).String(); x++ {
		h.failures = append(h.failures, atomic.Int64{})
	}
	return h
}

// Recorded are the histograms of Hooks: a Recorder must know them.
func Recorded() []*Metric { return []*Metric{&lateness, &fetchTime} }

func (h *Hooks) record(m *Metric, d time.Duration) {
	for _, r := range h.recorders {
		r.Record(m, d.Seconds())
	}
}

// Event counts an event: frontier.Options.OnEvent.
func (h *Hooks) Event(e event.Event) {
	if i := int(e.Kind) - 1; i >= 0 && i < len(h.events) {
		h.events[i].Add(1)
	}
	switch {
	case e.Kind == event.StoreError && e.Reason == "commit":
		h.failing.Store(true)
	case e.Kind == event.StoreWorks:
		h.failing.Store(false)
	}
}

// Done counts the outcome of a lease. Call it when the frontier has recorded it, as
// crawler.Options.OnDone does.
func (h *Hooks) Done(l frontier.Lease, o frontier.Outcome) {
	if i := int(o.Failure); o.Result == frontier.Failed && i < len(h.failures) {
		h.failures[i].Add(1)
	}
	switch o.Result {
	case frontier.Denied, frontier.Requeue, frontier.PutOff: // no contact
		return
	}
	switch late := l.LeasedAt.Sub(l.Due); {
	case l.Due.IsZero():
	case late < 0:
		h.early.Add(1)
	default:
		h.record(&lateness, late)
	}
}

// Fetch counts a request that has ended. A status of 0 is no answer; bytes are those of the
// body as sent.
func (h *Hooks) Fetch(status int, took time.Duration, bytes int64) {
	class := status / 100
	if class < 1 || class > 5 {
		class = 0
	}
	h.classes[class].Add(1)
	h.bytes.Add(bytes)
	h.record(&fetchTime, took)
}

// Metrics implements Source. The histograms are Recorded's.
func (h *Hooks) Metrics() []*Metric {
	return []*Metric{&storeFailing, &events, &failures, &early, &fetches, &fetchedBytes}
}

// Read implements Source.
func (h *Hooks) Read(to Sink) {
	failing := 0.0
	if h.failing.Load() {
		failing = 1
	}
	to.Number(&storeFailing, "", failing)
	for i := range h.events {
		to.Number(&events, word(event.Kind(i+1).String()), float64(h.events[i].Load()))
	}
	for i := range h.failures {
		to.Number(&failures, word(frontier.Failure(i).String()), float64(h.failures[i].Load()))
	}
	to.Number(&early, "", float64(h.early.Load()))
	for i := range h.classes {
		class := "none"
		if i > 0 {
			class = strconv.Itoa(i) + "xx"
		}
		to.Number(&fetches, class, float64(h.classes[i].Load()))
	}
	to.Number(&fetchedBytes, "", float64(h.bytes.Load()))
}
