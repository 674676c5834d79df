// This file defines the interface between a Crawler and its frontier.

package crawler

import (
	"context"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// Frontier is what a Crawler needs from its frontier. The methods do what those of *frontier.Frontier do.
//
// It must describe its hosts, too, with a method Host like that of an *inspect.Inspector: New makes an
// Inspector for a *frontier.Frontier, and a *client.Client of a served one has the method. A type that wraps a
// *frontier.Frontier embeds an inspect.Frontier in its place. With more methods it serves more: Upcoming is needed for
// Options.Prefetch, Group and SetGroup for Groups.Concurrency above 1, and Crawls, Crawl, Pause and Clear
// for parking URLs. Without those four, a URL that would be parked is dropped with a warning.
type Frontier interface {
	Add(ctx context.Context, entries ...frontier.Entry) (int, error)
	Next(ctx context.Context) (frontier.Lease, error)
	Contact(ctx context.Context, host string) (frontier.Lease, error)
	Join(l *frontier.Lease, group string) error
	HandBack(l frontier.Lease) (frontier.Lease, error)
	Done(l frontier.Lease, o frontier.Outcome) error
	DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error)
	TriesAgain(l frontier.Lease, o frontier.Outcome) bool
	Stats() frontier.Stats
}

// described is a Frontier that describes its hosts.
type described interface {
	Frontier
	Host(ctx context.Context, host string) (inspect.Host, error)
}

// foreseer is a Frontier that knows which hosts are served soon.
type foreseer interface {
	Upcoming(ctx context.Context, n int, urls bool) ([]inspect.Upcoming, error)
}

// grouper is a Frontier whose groups have settings.
type grouper interface {
	Group(name string) (inspect.Group, bool)
	SetGroup(name string, s frontier.GroupSettings) error
}

// keeper is a Frontier in whose crawls URLs can be parked.
type keeper interface {
	Crawls() []uint32
	Crawl(id uint32) (inspect.Crawl, bool)
	Pause(s scope.Scope) error
	Clear(s scope.Scope) error
}

var _ interface {
	described
	foreseer
	grouper
	keeper
} = inspect.Frontier{}
