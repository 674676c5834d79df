// This file tells whoever runs a frontier what happens in it that is not the
// answer to a call.
//
// Events are put into a bounded queue, mostly with Frontier.mu held, and
// delivered by one goroutine that lives while there are any: in order, outside
// the lock, and without ever making the frontier wait. Without a handler and a
// logger none are made.

package frontier

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	_ EventKind = iota

	// EventHostBlocked: nothing of Host, or of the hosts in Scope, is handed out
	// before Until, because the host asked for a long pause or a control says so.
	EventHostBlocked
	// EventHostBackedOff: failures slowed Host down, to step Count of its back-off.
	EventHostBackedOff
	// EventHostQuarantined: Host only fails, Count times in a row; it is probed
	// next at Until.
	EventHostQuarantined
	// EventHostReturned: Host answers again after quarantine or back-off.
	EventHostReturned
	// EventLimitReached: a limit of Scope, or of Crawl, is used up; Reason names it.
	EventLimitReached
	// EventLimitLifted: there is room again under such a limit.
	EventLimitLifted
	// EventURLGivenUp: URL left because its tries are used up, or its host is given
	// up (Reason), durably. Each is counted in Stats.GivenUp.
	EventURLGivenUp
	// EventLeaseExpired: the lease of URL, or a slot of Host, ended by its deadline.
	EventLeaseExpired
	// EventStoreError: the Spill failed with Err; Reason tells what was tried, and
	// Count how many URLs it concerns, if any. While it goes on failing so it is not
	// told again: not before two minutes without such a failure, or EventStoreWorks.
	EventStoreError
	// EventHostGivenUp: as many probes of Host failed as Quarantine.Probes allows
	// (Reason), and its Count URLs that wait are given up. For each there is an
	// EventURLGivenUp, also for those that come before Until; a URL that comes later
	// is its next probe.
	EventHostGivenUp
	// EventClockStepped: the wall clock was set, or the machine was suspended: it
	// differs from the steady clock by more than before (Reason).
	EventClockStepped
	// EventStoreWorks: the Spill commits again; the last of Count commits that failed was
	// some seconds ago.
	EventStoreWorks
)

var eventNames = [...]string{
	"no event", "host blocked", "host backed off", "host quarantined", "host returned",
	"limit reached", "limit lifted", "url given up", "lease expired", "store error", "host given up", "clock stepped",
	"store works again",
}

// String returns the kind's name in lower case. It does not change between
// versions.
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "invalid event kind"
}

// level is how loud a kind is in the log.
func (k EventKind) level() slog.Level {
	switch k {
	case EventStoreError:
		return slog.LevelError
	case EventHostBlocked, EventHostQuarantined, EventHostGivenUp, EventLimitReached, EventClockStepped, EventStoreWorks:
		return slog.LevelWarn
	case EventHostBackedOff:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Event is something that happened in a frontier. Fields that say nothing about
// the kind of event are zero.
type Event struct {
	Kind    EventKind
	Time    time.Time // of the frontier's clock
	Host    string    // host key
	Scope   Scope     // of the control or limit
	Crawl   uint32
	URL     string
	Attempt int     // the try of URL that failed, from 1
	Failure Failure // how it failed
	Until   time.Time
	Count   int64
	Reason  string // why, in a few words
	Err     error

	// Dropped is how many events were lost just before this one, because those
	// before were not taken in time.
	Dropped int64
}

// LogValue implements slog.LogValuer: the fields that say something, under keys
// that do not change between versions.
func (e Event) LogValue() slog.Value {
	return slog.GroupValue(append([]slog.Attr{slog.String("kind", e.Kind.String())}, e.attrs()...)...)
}

// attrs are the fields that say something, the kind excepted.
func (e Event) attrs() []slog.Attr {
	a := make([]slog.Attr, 0, 8)
	text := func(key, s string) {
		if s != "" {
			a = append(a, slog.String(key, s))
		}
	}
	number := func(key string, n int64) {
		if n != 0 {
			a = append(a, slog.Int64(key, n))
		}
	}
	text("host", e.Host)
	if e.Scope != All() || e.Kind == EventHostBlocked && e.Host == "" {
		text("scope", e.Scope.String())
	}
	number("crawl", int64(e.Crawl))
	text("url", shown(e.URL))
	number("attempt", int64(e.Attempt))
	if e.Failure != 0 || e.Kind == EventURLGivenUp {
		text("failure", e.Failure.String())
	}
	if !e.Until.IsZero() {
		a = append(a, slog.Time("until", e.Until))
	}
	number("count", e.Count)
	text("reason", e.Reason)
	if e.Err != nil {
		text("error", e.Err.Error())
	}
	number("dropped", e.Dropped)
	return a
}

// shown is a URL as a log may have it: without its user and password.
func shown(url string) string {
	head, rest, ok := strings.Cut(url, "//")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	return head + "//" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

// maxEvents is how many events wait for their delivery at most.
const maxEvents = 4096

// events is the queue of a frontier's events.
//
// Invariant: a goroutine in deliver exists exactly if delivering is set, which it
// is while any are pending, of which there are never more than maxEvents.
type events struct {
	handler func(Event)
	logger  *slog.Logger // nil: nobody reads it

	mu         sync.Mutex // taken after Frontier.mu; never held while anybody is called
	queue      []Event
	pending    int // in queue, or taken from it and not yet told
	delivering bool
	ended      bool
	lost       int64 // since the last event that was queued
	dropped    int64
	idle       chan struct{} // made by end; closed when the last event is delivered

	failed map[string]int64 // by reason, the moment of the latest EventStoreError, told or not
}

const (
	storeQuiet = 2 * int64(mostRest)    // without a failure until the next one is told
	storeCalm  = int64(5 * time.Second) // without a failed commit the Spill works again
)

// news reports whether a failure of the Spill is to be told.
func (q *events) news(reason string, now int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, told := q.failed[reason]
	if q.failed == nil {
		q.failed = map[string]int64{}
	}
	q.failed[reason] = now
	return !told || now-last >= storeQuiet
}

// storeWorksLocked tells that commits go well again, when they do so for some time.
func (f *Frontier) storeWorksLocked() {
	c := &f.committer
	if c.failedNow == 0 || f.elapsed()-c.failedAt < storeCalm {
		return
	}
	f.events.mu.Lock()
	delete(f.events.failed, commitReason)
	f.events.mu.Unlock()
	f.emitLocked(Event{Kind: EventStoreWorks, Count: c.failedNow})
	c.failedNow = 0
}

const commitReason = "commit"

// commitFailedLocked takes note of a commit that failed.
func (f *Frontier) commitFailedLocked(err error) {
	c := &f.committer
	c.failures++
	c.failedNow++
	c.failedAt = f.elapsed()
	f.emitLocked(Event{Kind: EventStoreError, Reason: commitReason, Err: err})
}

func newEvents(o *Options) *events {
	e := &events{handler: o.OnEvent}
	if o.Logger.Handler() != slog.DiscardHandler {
		e.logger = o.Logger
	}
	return e
}

// wanted reports whether anybody is told of events.
func (q *events) wanted() bool { return q.handler != nil || q.logger != nil }

// emitLocked tells of an event; its time is now.
func (f *Frontier) emitLocked(e Event) {
	if f.events.wanted() && (e.Kind != EventStoreError || f.events.news(e.Reason, f.elapsed())) {
		e.Time = f.wall(f.last)
		f.events.put(e)
	}
}

// emit is emitLocked for those who do not hold the lock.
func (f *Frontier) emit(e Event) {
	if f.events.wanted() && (e.Kind != EventStoreError || f.events.news(e.Reason, f.elapsed())) {
		e.Time = f.opts.Clock.Now()
		f.events.put(e)
	}
}

// put queues an event, or counts it if too many wait.
func (q *events) put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.pending == maxEvents {
		q.lost++
		q.dropped++
		return
	}
	e.Dropped, q.lost = q.lost, 0
	q.queue = append(q.queue, e)
	q.pending++
	if !q.delivering {
		q.delivering = true
		go q.deliver()
	}
}

// deliver tells of events until there are none.
func (q *events) deliver() {
	q.mu.Lock()
	for q.pending > 0 {
		batch := q.queue
		q.queue = nil
		for _, e := range batch {
			q.pending--
			q.mu.Unlock()
			q.tell(e)
			q.mu.Lock()
		}
	}
	q.delivering = false
	if q.idle != nil {
		close(q.idle)
	}
	q.mu.Unlock()
}

func (q *events) tell(e Event) {
	if q.logger != nil {
		q.logger.LogAttrs(context.Background(), e.Kind.level(), e.Kind.String(), e.attrs()...)
	}
	if q.handler != nil {
		q.handler(e)
	}
}

// end waits until all events are delivered. Later ones are lost.
func (q *events) end() {
	q.mu.Lock()
	q.ended = true
	if q.delivering {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

func (q *events) lostSoFar() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
