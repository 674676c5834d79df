// This file turns what is known of a URL into the number of a front queue.

package frontier

import (
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/found"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/rise"
)

// Prioritizer gives a URL its priority, 1 to Options.Priorities; the highest is the most urgent. It is
// called by Add, by a Done that keeps the URL in the frontier, and for a hint about a scheduled URL
// (Entry.Hint); outside the frontier's lock, from any goroutine.
type Prioritizer interface {
	Priority(e Entry, h History) int
}

// PrioritizerFunc makes a function a Prioritizer.
type PrioritizerFunc func(e Entry, h History) int

// Priority calls the function.
func (f PrioritizerFunc) Priority(e Entry, h History) int { return f(e, h) }

// Riser is a Prioritizer that learns of links to known URLs, and raises those that wait. Its methods are
// called outside the frontier's lock, from any goroutine, and must not call the Frontier.
//
// There is no index of waiting URLs. What Found says is noted, in 8 bytes, and a host's queues are
// searched when it has enough notes: when they are a quarter of its waiting URLs, or a 40th is above the
// URL that comes next, less what was not found before. That takes about a tenth of the time. A URL that was found
// moves to the end of its new priority in one commit; it keeps its Attempt, History and Meta. Notes take
// a 64th of the MemoryBudget, and do not survive a restart; what was moved has.
type Riser interface {
	Prioritizer
	// Found gets each entry of an Add or Done whose URL is known. It returns the priority that the
	// URL deserves if it waits, or 0.
	Found(e Entry) int
	// Rise gets a waiting URL that was noted, and returns its new weight. Then Priority is asked; if
	// that is not above the URL's priority it stays where it is. If one of them panics the URL stays,
	// and the next call of Next returns an error.
	Rise(waiting Entry) (weight float64)
}

// SetStanding moves all URLs of a host up by levels, or down if that is negative: each is served with
// the priority that far from its own, 1 to Options.Priorities. Zero moves them back. An operator's Rule
// about priorities wins, and Immediate URLs stay above all. It is durable with the host when it returns;
// nothing is rewritten.
func (f *Frontier) SetStanding(host string, levels int) error {
	if most := f.opts.Priorities - 1; levels < -most || levels > most {
		return fmt.Errorf("frontier: standing: %d levels; want %d to %d", levels, -most, most)
	}
	return f.changeHost("standing", host, levels != 0, func(id uint32) {
		f.core.Hosts.At(id).Standing = int8(levels)
		f.core.Relevel(id, f.last)
	})
}

// ByDepth gives seeds the priority levels, their links one less, and so on down
// to 1: breadth first. The default is ByDepth(Options.Priorities).
func ByDepth(levels int) Prioritizer {
	return withLevels{"ByDepth", levels, func(e Entry, _ History) int {
		return max(1, levels-max(0, e.Depth))
	}}
}

// ByWeight cuts the weights from 0 to top into equal steps, one for each of the
// levels; weights outside count as the nearest. NaN counts as 0.
func ByWeight(levels int, top float64) Prioritizer {
	return withLevels{"ByWeight", levels, func(e Entry, _ History) int {
		x := e.Weight / top * float64(levels)
		switch {
		case !(x > 0):
			return 1
		case x >= float64(levels):
			return levels
		}
		return 1 + int(x)
	}}
}

// Constant gives every URL the same priority: one front queue, FIFO.
func Constant(priority int) Prioritizer {
	return withLevels{"Constant", priority, func(Entry, History) int { return priority }}
}

// withLevels is a Prioritizer whose highest priority is known.
type withLevels struct {
	name   string
	levels int
	PrioritizerFunc
}

// Scheduler chooses when a URL is visited again. It is called when a URL was visited, gone or denied,
// and when the tries of a failed one are used up, unless Outcome.Next is set; outside the lock, from
// any goroutine. A time that has passed means now. If it panics that is as with a DelayPolicy.
type Scheduler interface {
	// Next returns the time of the next visit, zero for never (the URL leaves, and was
	// given up if it failed), and the State to be stored with it.
	Next(v Visit) (due time.Time, keep State)
}

// Visit describes the end of a lease to a Scheduler.
type Visit struct {
	Entry   Entry   // with the new Meta
	Host    string  // host key
	Before  History // without this visit
	History History // with it, and with the State of before
	Outcome Outcome // Ended and Duration are set
}

// Rechecker is a Scheduler that is called once more when the time of a URL has come,
// before it is handed out: prices may have changed since its last visit. URLs with a zero
// State, retries after a failure, and URLs of CrawlNow are handed out without that.
type Rechecker interface {
	Scheduler
	// Recheck returns when to visit the URL and the State to be stored with it. If that
	// time is later than now the URL is PutOff: no caller of Next sees it, and its host
	// is not contacted. After a crash it may be called again. If it panics, so does the
	// call of Next, and the URL waits as before.
	Recheck(e Entry, host string, h History, now time.Time) (due time.Time, keep State)
}

// Hinter is a Scheduler that handles hints: scheduled URLs that were added again with Entry.Hint. It is
// called outside the lock, from any goroutine, and must not call the Frontier. Without a Hinter, a URL
// comes at the hint's NotBefore if that is not zero and earlier than its scheduled time.
//
// In any case the URL gets the greater Weight and the lesser Depth of both, and a new priority from the
// Prioritizer. A URL that waits for another try keeps its time, and the Hinter is not
// called. When its time has come a Rechecker is called as usual.
type Hinter interface {
	Scheduler
	// Hint gets the URL as known, with the greater Weight, the lesser Depth and its time
	// in NotBefore, and as found. NotBefore of found is the time from which a visit is
	// expected to find something new, usually in the past, or zero. If it panics the URL
	// stays as it was, the hint is gone, and the next call of Next returns an error.
	Hint(known, found Entry, host string, h History, now time.Time) Hinted
}

// Hinted is a Hinter's decision about a URL.
type Hinted struct {
	Due  time.Time // when to visit it; zero leaves its time
	Keep State     // to be stored with it
	Meta []byte    // replaces its Meta; nil, or more than MaxMeta, keeps it
}

// SchedulerFunc makes a function a Scheduler that keeps nothing.
type SchedulerFunc func(v Visit) (due time.Time)

// Next calls the function.
func (f SchedulerFunc) Next(v Visit) (time.Time, State) { return f(v), v.Before.State }

// putOff asks whether a lease that is about to go out should, and ends it if it should not: as
// uncontacted, without waiting for the commit. It reports whether the caller must look for another one.
func (f *Frontier) putOff(l *Lease) bool {
	if l.Attempt > 1 || l.Priority == Immediate || l.History.State == (State{}) {
		return false
	}
	moment := f.moment()
	now := f.clock.Wall(moment)
	asked := false
	defer func() {
		if !asked { // it panics: the lease is not handed out
			f.giveBack(&grant{lease: *l}, nil)
		}
	}()
	due, keep := f.rechecker.Recheck(l.Entry, l.Host, l.History, now)
	asked = true
	l.History.State = keep
	if !due.After(now) {
		return false
	}
	p := plan{outcome: Outcome{Result: PutOff, Uncontacted: true, Ended: now, Next: due}}
	_ = f.plan(&p, l, moment) // asks no policy
	f.lock()
	defer f.mu.Unlock()
	if _, err := f.leaseOutLocked(l); err != nil {
		return true // it expired, or the frontier was closed
	}
	job := newOp()
	_ = f.finishLocked(job, l.record, &p) // it has no outlinks
	f.submitAsyncLocked(job, nil)
	f.dispatchLocked()
	return true
}

// The priorities that an operator sets for the URLs of hosts and domains, in place of the
// Prioritizer's.
//
// They are a rule like any other. Nothing is rewritten on disk: URLs keep their own
// priority, and return to it when the rule is removed; what changes is the level of their
// queues, which determines the front queue in which they wait.

// PriorityMap maps priorities: URLs of priority p are served with priority m[p]. Zero
// leaves p as it is, and m[0] is always zero. Immediate URLs are not mapped.
type PriorityMap [maxPriorities + 1]uint8

// tell notes which known URLs that were found again may deserve more: the Riser says so, or a hint with a
// Weight.
func (f *Frontier) tell(o *op) {
	if o.Left {
		return
	}
	var better []found.Again
	for i := range o.found {
		e := &o.found[i]
		b, p := record.Must(e.Body), 0
		if f.riser != nil {
			x := entryAt(e.URL, &b, e.Host)
			x.Crawl = e.Crawl
			p = min(f.riser.Found(x), f.opts.Priorities)
		}
		said := rise.Hint{}
		if e.Hint && b.Weight > 0 && !f.opts.DeferHints {
			said = rise.Hint{Level: e.Priority, Weight: b.Weight, Depth: b.Depth}
		}
		if p = max(p, int(said.Level)); p > 0 {
			better = append(better, found.Again{Entry: e, Deserves: uint8(p), Said: said})
		}
	}
	if len(better) > 0 {
		f.found.Note(better)
	}
}

// Answer applies a hint to a scheduled URL, and returns what it becomes, if that is another. The policies are asked.
func (f inside) Answer(x *found.Scheduled) (next ledger.Entry, other bool) {
	now := f.opts.Clock.Now()
	b, err := record.Decode(x.Body)
	if err != nil {
		return next, false // it was checked
	}
	was := b
	b.Weight = hint.Heavier(b.Weight, x.Hint.Weight)
	b.Depth = min(b.Depth, x.Hint.Depth)
	at := f.clock.Day(x.At)
	known := Entry{URL: string(b.URL), Depth: b.Depth, Weight: b.Weight, NotBefore: at, Meta: b.Meta, Crawl: x.Crawl}
	if b.Named {
		known.Host = x.Host
	}
	due := at
	if b.Fails == 0 { // else it is the retry policy's
		if hinter, ok := f.opts.Scheduler.(Hinter); ok {
			found := Entry{URL: known.URL, Host: known.Host, Crawl: x.Crawl, Depth: x.Hint.Depth, Weight: x.Hint.Weight, Meta: x.Hint.Meta, NotBefore: x.Hint.NotBefore}
			h := hinter.Hint(known, found, x.Host, historyOf(&b.History), now)
			if !h.Due.IsZero() {
				due = h.Due
			}
			b.History.State = h.Keep
			if h.Meta != nil && len(h.Meta) <= MaxMeta {
				b.Meta = h.Meta
			}
		} else if t := x.Hint.NotBefore; !t.IsZero() && t.Before(at) {
			due = t
		}
	}
	known.Meta = b.Meta
	p := x.Priority
	if p != Immediate {
		if asked, err := f.priority(known, historyOf(&b.History)); err == nil { // else it keeps its priority
			p = asked
		}
	}
	next = ledger.Entry{Index: -1, Hash: f.core.HashOf(x.Host), Host: x.Host, Crawl: x.Crawl, Priority: p, Due: x.At, ForcedAt: x.Seq}
	if !due.Equal(at) {
		next.Due = f.clock.Due(due)
	}
	if next.Due <= f.clock.Date(now) {
		next.Due = 0
	}
	other = next.Due != x.At || p != x.Priority || b.Weight != was.Weight || b.Depth != was.Depth ||
		b.History.State != was.History.State || string(b.Meta) != string(was.Meta)
	next.Body = b.Append(nil)
	return next, other
}

// Rise returns what becomes of a URL that waits, and reports whether it rises. The policies are asked.
func (f inside) Rise(x *rise.Found, host string) (next ledger.Entry, ok bool) {
	b := record.Must(x.Body)
	least := uint8(0)
	if x.Hint.Level > 0 {
		b.Weight, b.Depth = hint.Heavier(b.Weight, x.Hint.Weight), min(b.Depth, x.Hint.Depth)
		if b.History.Visits == 0 { // else the Prioritizer did not know of the visits
			least = x.Hint.Level
		}
	}
	e := entryOf(&b, host)
	e.Crawl = x.Crawl
	if f.riser != nil {
		b.Weight = f.riser.Rise(e)
		e.Weight = b.Weight
	}
	p, err := f.priority(e, historyOf(&b.History))
	if p = max(p, least); err != nil || p <= x.Priority {
		return next, false
	}
	return ledger.Entry{Index: -1, Hash: f.core.HashOf(host), Host: host, Crawl: x.Crawl, Mark: x.Mark, Priority: p, ForcedAt: x.Seq, Body: b.Append(nil)}, true
}
