// Package event has the events of a frontier: what happens outside its calls. They go to Options.OnEvent and to its
// log. Names without a package are those of package frontier.
package event

import (
	"errors"
	"log/slog"
	"time"

	"github.com/seed-7440039f/frontier/internal/attrs"
	"github.com/seed-7440039f/frontier/storage"
)

// Kind is the kind of an Event.
type Kind uint8

const (
	_ Kind = iota

	// HostBlocked: no URL of Host, or of the hosts in Scope, is handed out before
	// Until, because the host asked for a long pause or an operator set one.
	HostBlocked
	// HostBackedOff: failures slowed Host down, to step Count of its back-off.
	HostBackedOff
	// HostQuarantined: Host only fails, Count times in a row; it is probed next at Until.
	HostQuarantined
	// HostReturned: Host answers again after quarantine or back-off.
	HostReturned
	// LimitReached: a limit of Scope, or of Crawl, is used up; Reason names it.
	LimitReached
	// LimitLifted: there is room again under such a limit.
	LimitLifted
	// URLGivenUp: URL left because its tries are used up, or its host is given
	// up (Reason), durably. Each is counted in Stats.GivenUp.
	URLGivenUp
	// LeaseExpired: the lease of URL, or a slot of Host, ended by its deadline.
	LeaseExpired
	// StoreError: the Spill failed with Err; Reason names the operation, and Count
	// is the number of URLs concerned, if any. Repeated failures are not reported again
	// before two minutes without such a failure, or StoreWorks.
	StoreError
	// HostGivenUp: as many probes of Host failed as Quarantine.Probes allows (Reason), and its
	// Count URLs that wait are given up. For each there is a URLGivenUp, also for those that come
	// before Until; a URL that comes later is its next probe.
	HostGivenUp
	// ClockStepped: the wall clock was set, or the machine was suspended: it
	// differs from the steady clock by more than before (Reason).
	ClockStepped
	// StoreWorks: the Spill commits again; the last of Count commits that failed was
	// some seconds ago.
	StoreWorks
	// LinksRefused: Done refused outlinks, Count since the last such event, which is
	// at least a minute ago. Err is the first of the page URL. Those that limits refuse
	// are not among them. All are counted in Stats.Refused.
	LinksRefused
	// Stalled: calls of Next wait, and none of the Count leases that are out has ended
	// for two minutes: workers may hang, or do not call Done. URL of Host has the lease
	// that ends first, at Until.
	Stalled
	// Idle: calls of Next wait, no lease is out, and none of the Count URLs may be
	// handed out for a minute or more, but at Until at the earliest, if that is known.
	// Reason says how many are scheduled, and how many rules hold back.
	Idle
)

var names = [...]string{
	"no event", "host blocked", "host backed off", "host quarantined", "host returned",
	"limit reached", "limit lifted", "url given up", "lease expired", "store error", "host given up", "clock stepped",
	"store works again", "links refused", "stalled", "idle",
}

// String returns the kind's name in lower case. It does not change between versions.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return "invalid event kind"
}

// Level is how loud an event is in a log. What an operator did is no warning, and a store that has moved has
// not failed.
func (e Event) Level() slog.Level {
	if e.Kind == HostBlocked && e.Scope != "" {
		return slog.LevelInfo
	}
	switch e.Kind {
	case StoreError:
		if errors.Is(e.Err, storage.ErrMoved) {
			return slog.LevelWarn
		}
		return slog.LevelError
	case HostBlocked, HostQuarantined, HostGivenUp, LimitReached, ClockStepped, StoreWorks, LinksRefused, Stalled:
		return slog.LevelWarn
	case HostBackedOff:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// Event is something that happened in a frontier. Fields that do not apply to its kind are zero.
type Event struct {
	Kind    Kind
	Time    time.Time // of the frontier's clock
	Host    string    // host key
	Scope   string    // of the control or limit, as its String has it; empty: the event is of none
	Crawl   uint32
	URL     string
	Attempt int    // the try of URL that failed, from 1
	Failure string // how it failed, as the String of its frontier.Failure has it
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
	return slog.GroupValue(append([]slog.Attr{slog.String("kind", e.Kind.String())}, e.Attrs()...)...)
}

// Attrs are the fields that say something, the kind excepted.
func (e Event) Attrs() []slog.Attr {
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
	text("scope", e.Scope)
	number("crawl", int64(e.Crawl))
	text("url", attrs.URL(e.URL))
	number("attempt", int64(e.Attempt))
	text("failure", e.Failure)
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
