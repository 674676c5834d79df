// Package inspect describes what is in a frontier, for operators and their tools: hosts, with what waits and
// why it is not served; those that come next; URLs, crawls, groups, and what was counted for limits.
//
// An [Inspector] changes nothing. It takes the frontier's lock for short steps only, except in Scan without a
// Spill: the heaps are walked from their roots, and the front queues and ready lists from their heads, only
// as far as wanted. A host that is not in memory is described from its row, and stays where it is.
//
// Errors, options, rules and calls that are named here without a package are those of package frontier.
package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/gather"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/readahead"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// Inspector looks at a frontier. It is safe for concurrent use, as the frontier is, and need not be closed.
type Inspector struct{ f source }

// New returns an Inspector of an open frontier. It costs next to nothing.
func New(f *frontier.Frontier) *Inspector { return &Inspector{view.Source(f).(source)} }

// Frontier is a frontier with its Inspector.
type Frontier struct {
	*frontier.Frontier
	*Inspector
}

// Of returns f with its Inspector if it is a *frontier.Frontier, and otherwise f itself: the client of a served
// frontier describes hosts in its own way. T has methods of an Inspector; it is an error if f has not.
func Of[T any](f any) (x T, err error) {
	if own, ok := f.(*frontier.Frontier); ok {
		f = Frontier{own, New(own)}
	}
	x, ok := f.(T)
	if !ok {
		err = fmt.Errorf("a %T does not describe its hosts as an *inspect.Inspector does", f)
	}
	return x, err
}

// source is a frontier from inside. What Core returns mostly needs the lock.
type source interface {
	gather.Locker
	LockAdvancedOpen() error // after the clocks that have run out were dealt with, while the frontier is open
	LockAdvanced()           // also when it is closed

	Core() *mercator.Core
	Closed() bool               // with the lock
	Abandoned() context.Context // ends when no call waits for the Spill any more
	Options() *frontier.Options
	Ranges() *view.Ranges

	// How names are spelled. With one that no host can have a view finds nothing.
	HostSeen(name string) string
	Seen(s scope.Scope) row.Scope
	Spelled(s scope.Scope) (row.Scope, error)
	Subject(s scope.Scope) limit.Subject
	Named(e *frontier.Entry) (host, url string, err error)

	// What is stored, as package frontier says it.
	Described(body []byte, host string, crawl uint32) (e frontier.Entry, attempt int, h frontier.History)
	RuleOfCrawl(row.CrawlSettings) frontier.Rule
	RuleFor(host string) frontier.Rule               // with the lock
	SettingsOf(group string) frontier.GroupSettings  // with the lock
	TroubleOfRow(r *row.Host) trouble.State          // with the lock
	ForgottenUntil(host string, crawl uint32) uint64 // records with sequence numbers up to this are unknown
	Busy() bool                                      // something is on its way to the disk; with the lock

	// What may wait for the disk, without the lock. ReadCounted calls look with it.
	Known(ctx context.Context, host string, crawl uint32, url string) (bool, error)
	ReadPart(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error)
	ReadRow(ctx context.Context, a *mercator.Absentee) error
	ReadCounted(load func() error, look func()) error
	Timed() *readahead.Reader
	Gather() gather.Frontier
	Settle(ctx context.Context) error

	Report(what string, err error) // an event
	OrderHosts()                   // in domain order, if they are not
	// WalkAndUnlock walks a host to its end, gives the lock up between steps, and calls rest there.
	WalkAndUnlock(w *fifo.Walk, rest func())
}

func isCorrupt(err error) bool { return errors.As(err, new(*frontier.CorruptError)) }
