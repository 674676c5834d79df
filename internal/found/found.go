// Package found changes URLs that are known when they are found again: a Force re-admits one, a hint changes one
// that is scheduled, and a word of a Riser's, or a hint, raises one that waits. It owns the hints and notes that
// wait for a walk, and which URLs are being forced.
//
// It works with the frontier's lock, which its methods need, and hold throughout, unless they say otherwise; those
// whose names end with Yielding give it up in between.
package found

import (
	"context"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/internal/rise"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is what is asked of the frontier.
type Frontier interface {
	ledger.Present
	Ended() bool    // nothing is handed out any more
	Go(walk func()) // in a goroutine that Close waits for

	// The others are called without the lock. These take it:
	LockOpen() error                                     // unless the frontier is closed
	LockPresent()                                        // also then
	LockWithHost(ctx context.Context, host string) error // with what is stored of a host in memory
	LockWithHosts(of []ledger.Entry) error

	Load(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error)
	ReadTimed(block uint32) (more bool) // calls ApplyTimed, and reports whether the walk may go on
	ListTimed() *timed.List
	SweepInSteps(step func(steps int) (done, wait bool)) (complete bool)
	WalkAndUnlock(w *fifo.Walk, rest func()) // is called with the lock

	Guard(who, host string, code func()) bool // calls code of the user's
	Answer(x *Scheduled) (next ledger.Entry, other bool)
	Rise(x *rise.Found, host string) (next ledger.Entry, ok bool)
}

// Config is what a Found works with.
type Config struct {
	*ledger.Ledger
	Forgotten *tombstone.Forgotten
	Life      context.Context // ends when no call waits any more
	Deferred  bool            // hints are only kept
}

// Found is what is known of URLs that were found again.
type Found struct {
	Config
	up Frontier

	Hints   hint.Pending
	Rises   rise.Notes
	forcing map[storage.Mark]chan struct{} // URLs being forced; closed when that has ended

	better []rising // of the round of walks under way
	held   []storage.Mark
	moved  int64
}

// New returns a Found without hints.
func New(c Config, up Frontier) *Found {
	return &Found{Config: c, up: up, forcing: map[storage.Mark]chan struct{}{}}
}

// Size is the memory of hints and notes.
func (f *Found) Size() int64 { return f.Hints.Size() + f.Rises.Size() }

// Mark is the fingerprint of a host's URL within a crawl. It needs no lock.
func (f *Found) Mark(host string, crawl uint32, url string) storage.Mark {
	return known.MarkOf(f.Core.Key, f.Forgotten.Of(host, crawl), crawl, url)
}

// Wake begins the walks that it is time for.
func (f *Found) Wake() {
	if f.Hints.Len() > 0 {
		f.startHints()
	}
	if f.up.Last() >= f.Rises.NextRound() {
		f.Rises.Begin()
		f.up.Go(f.round)
	}
}
