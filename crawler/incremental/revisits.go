// This file holds Revisits and its calls from a crawler. scheduler.go decides when pages are
// fetched again, judge.go what is a change; note.go and state.go store the data.

package incremental

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
)

// Revisits is a crawler.Revisits. It is safe for concurrent use.
type Revisits struct {
	opts     Options // read-only after Open
	schedule *recrawl.Scheduler
	plans    *adapter.Scheduler
	hasher   *neardup.Hasher
	keyPrint uint16
	counts   counts
	newShare atomic.Uint64 // float64: the share of hand-outs for never-crawled URLs

	frontier   *frontier.Frontier // set by Attach
	hosts      hosts
	soft       softGone
	saved      atomic.Pointer[time.Time]
	savedPrice atomic.Uint64 // float64: as it was then
	saving     sync.Mutex    // held while the state is written
	closed     bool          // guarded by saving
	unclean    bool          // the last process did not close: the accounts must be rebuilt
}

// Open reads the state in Options.Dir, or starts a new one. The error names every option out of
// range, or says why the folder cannot be used. Damaged state is moved aside, with a warning in the
// log, and rebuilt from the URLs as far as possible.
func Open(o Options) (*Revisits, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("incremental: options: %w", err)
	}
	s, err := recrawl.New(o.Schedule)
	if err != nil {
		return nil, fmt.Errorf("incremental: options: Schedule: %w", err)
	}
	r := &Revisits{opts: o, schedule: s}
	key, err := r.readKey()
	if err != nil {
		return nil, fmt.Errorf("incremental: open: %w", err)
	}
	r.hasher = neardup.NewHasher([16]byte(key[:16]), neardup.Options{})
	k := [2]uint64{binary.LittleEndian.Uint64(key[16:]), binary.LittleEndian.Uint64(key[24:])}
	r.plans = adapter.New(s, adapter.Options{OnDrop: o.OnGone, Weight: o.Weight, Key: k})
	r.keyPrint = uint16(siphash.Hash(k[0], k[1], key))
	if err := r.readState(); err != nil {
		return nil, fmt.Errorf("incremental: open: %w", err)
	}
	r.mix()
	now := o.Now()
	r.saved.Store(&now)
	return r, nil
}

// Attach sets r's frontier; call it before the crawl starts. After a crash, or without a saved
// state, it reads all URLs (frontier.Scan) to rebuild the accounts, which takes some seconds per
// million. The error comes from the frontier, ctx, or the folder.
func (r *Revisits) Attach(ctx context.Context, f *frontier.Frontier) error {
	r.frontier = f
	if r.unclean {
		n, err := r.plans.Recount(ctx, f)
		if err != nil {
			return fmt.Errorf("incremental: attach: %w", err)
		}
		r.unclean = false
		if n > 0 {
			r.opts.Logger.Info("the books of revisits are made anew", "pages", n)
		}
	}
	r.saving.Lock()
	defer r.saving.Unlock()
	if err := r.saveLocked(false); err != nil {
		return fmt.Errorf("incremental: attach: %w", err)
	}
	return nil
}

// Whole implements crawler.Revisits.
func (r *Revisits) Whole(_ frontier.Lease, raw []byte) bool {
	n, _ := parseNote(raw)
	return n.whole()
}

// Ended implements crawler.Revisits: it records what the scheduler needs to know about the visit,
// and counts it.
func (r *Revisits) Ended(l frontier.Lease, p *crawler.Page, o frontier.Outcome, raw []byte) []byte {
	n, _ := parseNote(raw)
	before := r.plans.PageOf(l.Host, l.History)
	n.read = n.read || before.State.Crawled() // the note may be lost
	if o.Result == frontier.Failed && !n.read && !o.Uncontacted {
		return nil // the frontier's Retry decides
	}
	r.counts.add(n.read, o.Result, p)
	n.take(p, o)
	if !o.Uncontacted {
		r.observe(&l, &o, &before)
	}
	r.tend()
	return n.bytes()
}

// earlyVisits is the number of visits until which the price is computed more often than every 256
// visits, as the scheduler does.
const earlyVisits = 2048

// tend does periodic work that is due.
func (r *Revisits) tend() {
	n := r.counts.read().Visits
	moved := false
	if n%16 == 0 && n < earlyVisits {
		_ = r.schedule.SetBudget(r.opts.Schedule.Budget) // Open took it
		moved = r.moved()
	}
	if n%16 == 0 {
		r.mix()
	}
	r.saveNowAndThen(moved)
}
