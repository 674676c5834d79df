// This file defines the interface between a Crawler and its frontier.

package crawler

import (
	"context"

	"github.com/seed-7440039f/frontier"
)

// Frontier is what a Crawler needs from its frontier. A *frontier.Frontier in the same process and a
// *client.Client of a served one implement it. The methods do what those of *frontier.Frontier do.
//
// A frontier that also has the following methods of *frontier.Frontier serves more: Upcoming is
// needed for Options.Prefetch, Group and SetGroup for Groups.Concurrency above 1, and Crawls,
// CrawlStats, Pause and Clear for parking URLs. Without those four, a URL that would be parked is
// dropped with a warning.
type Frontier interface {
	Add(ctx context.Context, entries ...frontier.Entry) (int, error)
	Next(ctx context.Context) (frontier.Lease, error)
	Contact(ctx context.Context, host string) (frontier.Lease, error)
	Join(l *frontier.Lease, group string) error
	HandBack(l frontier.Lease) (frontier.Lease, error)
	Done(l frontier.Lease, o frontier.Outcome) error
	DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error)
	TriesAgain(l frontier.Lease, o frontier.Outcome) bool
	Host(ctx context.Context, host string) (frontier.HostInfo, error)
	Stats() frontier.Stats
}

// foreseer is a Frontier that knows which hosts are served soon.
type foreseer interface {
	Upcoming(ctx context.Context, n int, urls bool) ([]frontier.Upcoming, error)
}

// grouper is a Frontier whose groups have settings.
type grouper interface {
	Group(name string) (frontier.GroupInfo, bool)
	SetGroup(name string, s frontier.GroupSettings) error
}

// keeper is a Frontier in whose crawls URLs can be parked.
type keeper interface {
	Crawls() []uint32
	CrawlStats(id uint32) (frontier.CrawlStats, bool)
	Pause(s frontier.Scope) error
	Clear(s frontier.Scope) error
}

var _ interface {
	Frontier
	foreseer
	grouper
	keeper
} = (*frontier.Frontier)(nil)
