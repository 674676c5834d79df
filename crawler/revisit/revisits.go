// This file is Revisits: what it answers a crawler. What is a change is decided in
// judge.go, what is kept in note.go and state.go.

package revisit

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dchest/siphash"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/near"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Revisits is a crawler.Revisits. It is safe for concurrent use.
type Revisits struct {
	opts     Options // read-only after Open
	schedule *recrawl.Scheduler
	hasher   *near.Hasher
	keyPrint uint16
	hostKey  [2]uint64
	counts   counts
	newShare atomic.Uint64 // float64: the share of hand-outs that URLs never crawled have

	frontier   *frontier.Frontier // set by Attach
	hosts      hosts
	saved      atomic.Int64  // Unix nanoseconds
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
		return nil, fmt.Errorf("revisit: options: %w", err)
	}
	s, err := recrawl.New(o.Schedule)
	if err != nil {
		return nil, fmt.Errorf("revisit: options: Schedule: %w", err)
	}
	r := &Revisits{opts: o, schedule: s}
	key, err := r.readKey()
	if err != nil {
		return nil, fmt.Errorf("revisit: open: %w", err)
	}
	r.hasher = near.NewHasher([16]byte(key[:16]), near.Options{})
	r.hostKey = [2]uint64{binary.LittleEndian.Uint64(key[16:]), binary.LittleEndian.Uint64(key[24:])}
	r.keyPrint = uint16(siphash.Hash(r.hostKey[0], r.hostKey[1], key))
	if err := r.readState(); err != nil {
		return nil, fmt.Errorf("revisit: open: %w", err)
	}
	r.mix()
	r.saved.Store(o.Now().UnixNano())
	return r, nil
}

// Before implements crawler.Revisits: it asks whether a fetch is still worth it.
func (r *Revisits) Before(l frontier.Lease, raw []byte) crawler.Before {
	n, ok := parseNote(raw)
	if !ok {
		return crawler.Before{} // never crawled
	}
	b := crawler.Before{Whole: n.whole()}
	if l.Priority == frontier.Immediate {
		return b
	}
	n.page.Host = r.host(l.Host)
	now := r.opts.Now()
	page, when := r.schedule.Recheck(n.page, now)
	if when.After(now) || page != n.page { // what it is now must be kept
		n.page = page
		b.At, b.Note = wholeSecond(when), n.bytes()
		r.counts.putOff.Add(1)
	}
	return b
}

// wholeSecond is the second that a record keeps of a due time: before it, the page
// would be put off.
func wholeSecond(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}

// Ended implements crawler.Revisits: the scheduler learns, and says when the URL
// comes again.
func (r *Revisits) Ended(l frontier.Lease, p *crawler.Page, o *frontier.Outcome, raw []byte) []byte {
	n, known := parseNote(raw)
	n.page.Host = r.host(l.Host)
	known = known && n.page.State != (recrawl.State{})
	ended := o.Ended
	if ended.IsZero() {
		ended = r.opts.Now()
	}
	if o.Result == frontier.Failed && !n.page.State.Crawled() && !o.Uncontacted {
		return r.unread(n, known) // the frontier's Retry decides
	}
	weight := r.opts.Weight(l.Entry, l.History)
	if !known {
		n.page, _ = r.schedule.Admit(weight, n.page.Host, ended)
	} else if w := n.page.State.Weight(); math.Abs(weight-w) > 0.08*w {
		n.page = r.schedule.Reweigh(n.page, weight, ended)
	}
	before := n.page
	visit := recrawl.Visit{At: ended, Outcome: outcomeOf(o.Result, p), Modified: modified(p, o, ended)}
	var verdict recrawl.Verdict
	n.page, verdict = r.schedule.Done(n.page, visit)
	o.Next = wholeSecond(n.page.Due)
	r.counts.add(&before, visit.Outcome, p)
	if verdict.Drop {
		n.copied = copied{}
		if r.opts.OnGone != nil {
			r.opts.OnGone(l)
		}
	}
	if !o.Uncontacted {
		r.observe(&l, o, &before)
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

// unread is the note of a URL that was never read, and whose try failed.
func (r *Revisits) unread(n note, known bool) []byte {
	if !known {
		return nil
	}
	r.schedule.Forget(n.page) // it is admitted again when it is read
	return []byte{}
}

// Dropped implements crawler.Revisits.
func (r *Revisits) Dropped(l frontier.Lease, raw []byte) {
	if n, ok := parseNote(raw); ok {
		n.page.Host = r.host(l.Host)
		r.schedule.Forget(n.page)
	}
}

// outcomeOf is a result in the scheduler's terms.
func outcomeOf(result frontier.Result, p *crawler.Page) recrawl.Outcome {
	switch {
	case result == frontier.Changed:
		return recrawl.Changed
	case result == frontier.Unchanged:
		return recrawl.Unchanged
	case result == frontier.Gone:
		return recrawl.Gone
	case result == frontier.Failed:
		return recrawl.Failed
	case result == frontier.Denied || p != nil && p.Status >= firstBad:
		return recrawl.Denied
	}
	return recrawl.Visited
}

// modified is when the page changed last, as its server says, by our clock.
func modified(p *crawler.Page, o *frontier.Outcome, ended time.Time) time.Time {
	if p == nil || o.Modified.IsZero() {
		return time.Time{}
	}
	sent := p.SentAt()
	if sent.IsZero() {
		return o.Modified
	}
	return ended.Add(o.Modified.Sub(sent))
}

// host is the number of a host.
func (r *Revisits) host(name string) uint32 {
	return uint32(siphash.Hash(r.hostKey[0], r.hostKey[1], []byte(name)))
}
