// This file is Revisits: what it answers a crawler. When pages come again is decided in
// scheduler.go, what is a change in judge.go; what is kept is in note.go and state.go.

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
	newShare atomic.Uint64 // float64: the share of hand-outs that URLs never crawled have

	frontier   *frontier.Frontier // set by Attach
	hosts      hosts
	soft       softGone
	saved      atomic.Pointer[time.Time]
	savedPrice atomic.Uint64 // float64: as it was then
	saving     sync.Mutex    // held while the state is written
	closed     bool          // guarded by saving
	unclean    bool          // the last process did not close: the books are to be made anew
}

// Open reads what is kept in Options.Dir, or begins anew. The error names every
// option out of range, or tells why the folder cannot be used. State that is damaged
// is put aside, and a warning logged: it is made anew as far as the URLs have it.
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

// Attach tells r of its frontier, before the crawl begins. After a crash, or without
// a saved state, it reads all URLs (frontier.Scan) to make the books anew: some
// seconds for each million. The error is the frontier's, ctx's, or of the folder.
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

// Ended implements crawler.Revisits: it notes what the scheduler is to know of the visit,
// and counts it.
func (r *Revisits) Ended(l frontier.Lease, p *crawler.Page, o frontier.Outcome, raw []byte) []byte {
	n, _ := parseNote(raw)
	before := r.plans.PageOf(l.Host, l.History)
	n.read = n.read || before.State.Crawled() // a note may be lost
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

// earlyVisits is how many visits are few: until then the price is found more often than
// the scheduler finds it by itself, which is every 256 visits.
const earlyVisits = 2048

// tend does what is due now and then.
func (r *Revisits) tend() {
	n := r.counts.visits.Load()
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
