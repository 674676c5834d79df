// This file has the figures of a frontier, in the forms that logs and monitoring want, and sends its events. Every field of Stats has a key there: its name in lower case with
// underscores. A field that is added later needs nothing more.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/attrs"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/notify"
)

// Stats is a snapshot of counters. Logs and JSON show them under the same keys.
// Taking one costs O(Priorities).
type Stats struct {
	Waiting   int64   // URLs that may be handed out as soon as their hosts may be contacted
	WaitingBy []int64 // the same by priority: WaitingBy[p-1] for priority p
	Immediate int64   // of Waiting: those of CrawlNow, which WaitingBy leaves out
	Held      int64   // of Waiting: those whose host or crawl was found paused, blocked or at a limit
	Scheduled int64   // URLs with a future time, and due ones that are not read yet
	Finished  int64   // URLs that are done and kept (Options.Keep)
	Leased    int64   // leases that are out, including those for contact only
	Pending   int64   // calls, and leases that expired, whose changes are on their way to the disk
	Hosts     int64   // hosts that are in memory
	Bound     int64   // hosts that have a back queue
	Groups    int64   // groups of hosts
	// Of Hosts:
	BackedOff   int64 // hosts that failures slowed down
	Quarantined int64 // hosts that are only probed
	Known       int64 // URLs remembered as admitted

	// Since Open:
	Added      int64    // URLs admitted for the first time, or by Force
	Duplicates int64    // entries refused because they were known
	Refused    int64    // entries and outlinks refused: malformed, too long, or over a limit
	HandedOut  int64    // leases, including those for contact only
	Done       [8]int64 // Done calls by Result
	Retried    int64    // failed URLs that were scheduled again
	Risen      int64    // waiting URLs that a Riser or a hint moved
	Noted      int64    // notes that a URL may deserve more
	Unnoted    int64    // notes for which there was no room
	Walks      int64    // searches of hosts for the URLs that were noted
	Walked     int64    // URLs that they read
	GivenUp    int64    // URLs whose tries were used up, or whose hosts were given up
	Deleted    int64    // URLs that Delete removed
	Expired    int64    // leases that ended by their deadline
	Unreadable int64    // URLs in blocks that are damaged; they stay on disk
	EventsLost int64    // events that OnEvent missed because it was slow

	Rates   Rates       // what happens each second
	Waits   Histogram   // how long URLs added since Open waited
	WaitsBy []Histogram // the same by priority, like WaitingBy

	Resident    int64 // bytes of URLs in memory
	MemoryBytes int64 // bytes of memory of the frontier, plus the most that its Spill takes
}

// Rates are events for each second, over the last minute or since Open if that is
// less; the first second counts as a whole one.
type Rates struct {
	Added     float64 // URLs admitted
	HandedOut float64 // leases
	Done      float64 // calls of Done that ended a lease, and leases that expired
}

// Histogram is a distribution of durations. The zero value is empty.
type Histogram struct {
	Count int64         // durations, estimated from a sample where there are many
	Sum   time.Duration // of all of them
	// Buckets counts durations by size: Buckets[0] those below 1 ms, Buckets[i]
	// those from 1 ms << (i-1) to below 1 ms << i, the last all longer ones.
	Buckets [36]int64
}

// Mean is the mean duration; 0 if there is none.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return time.Duration(float64(h.Sum) / float64(h.Count))
}

// Quantile returns a duration that the given share of all durations, 0 to 1, is below: the upper end of
// a bucket, so up to twice too long. It is 0 if there is none.
func (h *Histogram) Quantile(share float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	var sum int64
	for i, n := range h.Buckets {
		if sum += n; n > 0 && float64(sum) >= share*float64(h.Count) {
			return time.Millisecond << i
		}
	}
	return time.Millisecond << (len(h.Buckets) - 1)
}

// Stats returns the present figures.
func (f *Frontier) Stats() Stats {
	f.lock()
	defer f.mu.Unlock()
	f.core.Advance(f.nowLocked())
	f.reader.Wake()
	return f.statsLocked()
}

func (s *shard) statsLocked() Stats {
	x := &s.core.Stats
	st := Stats{
		Waiting: x.Waiting, WaitingBy: slices.Clone(x.WaitingBy), Immediate: x.Immediate, Held: s.core.WithheldURLs(),
		Scheduled: x.Scheduled, Finished: x.Finished, Leased: x.Leased, Pending: int64(s.ledger.Pending()),
		BackedOff: x.BackedOff, Quarantined: x.Quarantined,
		Added: x.Added, Duplicates: x.Duplicates, Refused: x.Refused, HandedOut: x.HandedOut, Done: x.Done, Retried: x.Retried, Risen: x.Risen,
		Noted: s.found.Rises.Noted, Unnoted: s.found.Rises.Dropped, Walks: s.found.Rises.Walks, Walked: s.found.Rises.Read,
		GivenUp: x.GivenUp, Deleted: x.Deleted, Expired: x.Expired, Unreadable: x.Unreadable,
	}
	st.Rates.Added, st.Rates.HandedOut, st.Rates.Done = s.rates.Over(x.Totals(s.last))
	w := &s.core.Waits
	st.Waits, st.WaitsBy = Histogram(w.All), make([]Histogram, len(w.By))
	for i, h := range w.By {
		st.WaitsBy[i] = Histogram(h)
	}
	st.Hosts = int64(s.core.Hosts.Len())
	st.Groups = int64(s.core.Groups.Len())
	st.Known = s.known.Total()
	st.EventsLost = s.events.queue.Lost()
	st.Bound = int64(s.core.Bound())
	st.Resident = s.core.Records.Used()
	st.MemoryBytes = s.memoryLocked() + s.ledger.Footprint()
	return st
}

// LogValue implements slog.LogValuer: a group of all fields, under keys that do
// not change between versions.
func (s Stats) LogValue() slog.Value {
	return attrs.Group(s, func(r int) string { return Result(r).String() })
}

// LogValue implements slog.LogValuer: the number of durations, their mean, and
// quantiles as of Quantile.
func (h Histogram) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("count", h.Count),
		slog.Float64("mean_s", h.Mean().Seconds()),
		slog.Float64("p50_s", h.Quantile(0.5).Seconds()),
		slog.Float64("p90_s", h.Quantile(0.9).Seconds()),
		slog.Float64("p99_s", h.Quantile(0.99).Seconds()),
	)
}

// MarshalJSON implements json.Marshaler: an object with the keys of LogValue, for
// package expvar among others:
//
//	expvar.Publish("frontier", expvar.Func(func() any { return f.Stats() }))
func (s Stats) MarshalJSON() ([]byte, error) { return attrs.AppendJSON(nil, s.LogValue()), nil }

const (
	stalledAfter = int64(2 * time.Minute) // without the end of a lease
	idleFrom     = int64(time.Minute)     // until the next URL
)

// tellWaitLocked reports once if calls of Next wait although leases are out that do not end,
// or because nothing can be handed out for long. It returns when to look again.
func (s *shard) tellWaitLocked(now int64) (again int64) {
	c := s.core
	if c.Quiet.Told || s.waiters.Empty() {
		return instant.Never
	}
	if len(c.Expiry.Items) > 0 {
		if again := c.Quiet.Since + stalledAfter; again > now {
			return again
		}
		c.Quiet.Told = true
		var l Lease
		s.newLeaseLocked(&l, c.Expiry.Items[0].ID)
		s.emitLocked(event.Event{Kind: event.Stalled, Host: l.Host, URL: l.Entry.URL, Crawl: l.Entry.Crawl, Until: l.Deadline, Count: c.Stats.Leased,
			Reason: "no lease has ended for " + time.Duration(now-c.Quiet.Since).Round(time.Second).String()})
		return instant.Never
	}
	if c.Stats.Leased > 0 {
		return instant.Never // they expire just now
	}
	next := c.NextEvent(now)
	if n := c.Stats.Waiting + c.Stats.Scheduled; n > 0 && next-now >= idleFrom && s.ledger.Pending() == 0 && !s.addsLocked() {
		c.Quiet.Told = true
		e := event.Event{Kind: event.Idle, Count: n, Reason: fmt.Sprintf("%d scheduled, %d held back", c.Stats.Scheduled, c.WithheldURLs())}
		if next != instant.Never {
			e.Until = s.clock.Wall(next)
		}
		s.emitLocked(e)
	}
	return instant.Never
}

// events is where a frontier's events go: through a bounded queue (see notify), mostly with shard.mu held. Without
// a handler and a logger none are made. It has locks of its own, taken after
// shard.mu and never held while a handler runs.
type events struct {
	handler func(event.Event)
	logger  *slog.Logger // nil: no log is kept
	queue   notify.Queue[event.Event]
	failed  notify.Repeats // of the Spill, by reason

	failedNow int64 // commits that failed since event.StoreWorks, and when the latest did: guarded by shard.mu
	failedAt  int64
}

const (
	storeQuiet = 2 * int64(ledger.MostRest) // without a failure until the next one is an event
	storeCalm  = int64(5 * time.Second)     // without a failed commit the Spill works again
)

const commitReason = "commit"

// guard calls code of the user's where no call waits for it, or another call than its own does, in a
// goroutine of its own: neither a panic nor runtime.Goexit ends the caller. After one of them the next
// call of Next has the error. guard reports whether the code returned.
func (f *Frontier) guard(who, host string, code func()) bool {
	ended := make(chan bool, 1)
	go func() {
		returned := false
		defer func() {
			if v := recover(); !returned {
				f.faulty(who, host, v)
			}
			ended <- returned
		}()
		code()
		returned = true
	}()
	return <-ended
}

// faulty gives the next call of Next the error of code that panicked with v, or called runtime.Goexit if
// v is nil.
func (f *Frontier) faulty(who, host string, v any) {
	err := fmt.Errorf("frontier: %s called runtime.Goexit (host %q)", who, host)
	if v != nil {
		err = fmt.Errorf("frontier: %s panicked (host %q): %v", who, host, v)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) == 0 {
		f.faults = append(f.faults, err)
	}
	f.dispatchLocked()
}

// gaveUp reports a URL that was given up outside its Done.
func (f *Frontier) gaveUp(e Entry, host string, o Outcome) {
	if f.opts.OnGiveUp != nil {
		f.guard("OnGiveUp", host, func() { f.opts.OnGiveUp(e, o) })
	}
}

func newEvents(o *Options) *events {
	e := &events{handler: o.OnEvent}
	if o.Logger.Handler() != slog.DiscardHandler {
		e.logger = o.Logger
	}
	return e
}

// wanted reports whether events have a reader.
func (q *events) wanted() bool { return q.handler != nil || q.logger != nil }

// emitLocked reports an event; its time is now.
func (s *shard) emitLocked(e event.Event) {
	if s.events.wanted() && (e.Kind != event.StoreError || s.events.failed.News(e.Reason, s.clock.Elapsed(), storeQuiet)) {
		e.Time = s.clock.Wall(s.last)
		s.events.queue.Put(e)
	}
}

// emit is emitLocked for callers without the lock.
func (s *shared) emit(e event.Event) {
	if s.events.wanted() && (e.Kind != event.StoreError || s.events.failed.News(e.Reason, s.clock.Elapsed(), storeQuiet)) {
		e.Time = s.opts.Clock.Now()
		s.events.queue.Put(e)
	}
}

// deliver reports an event, lost others after the one before.
func (q *events) deliver(e event.Event, lost int64) {
	e.Dropped = lost
	if q.logger != nil {
		q.logger.LogAttrs(context.Background(), e.Level(), e.Kind.String(), e.Attrs()...)
	}
	if q.handler != nil {
		q.handler(e)
	}
}

// Works reports that commits succeed again, once they have for some time.
func (f inside) Works() {
	e := f.events
	if e.failedNow == 0 || f.clock.Elapsed()-e.failedAt < storeCalm {
		return
	}
	e.failed.Over(commitReason)
	f.emitLocked(event.Event{Kind: event.StoreWorks, Count: e.failedNow})
	e.failedNow = 0
}

// Failed takes note of a commit that failed.
func (f inside) Failed(err error) {
	f.events.failedNow++
	f.events.failedAt = f.clock.Elapsed()
	f.emitLocked(event.Event{Kind: event.StoreError, Reason: commitReason, Err: err})
	f.Lost(err)
}

// Lost ends the handing out after an error of the Spill's that only opening it
// again ends: what a lease would lead to could not be stored.
func (f inside) Lost(err error) {
	if f.lost == nil && errors.Is(err, ErrReopen) {
		f.lost = fmt.Errorf("frontier: nothing is handed out: %w", err)
	}
}
