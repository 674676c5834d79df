// This file collects the next waiting URLs of a host behind a sequence number,
// wherever they are, in bounded memory.

package frontier

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sync"
)

const (
	minWindow = 1 << 10 // URLs that are collected at once, at least
	maxWindow = 1 << 14 // at most
	// rangedFrom is how many parts a host has whose ranges are remembered.
	rangedFrom = 32
	// maxRanges is how many ranges are remembered.
	maxRanges = 1 << 19
)

// urlWindow is the next URLs of a host behind a number: of all that wait, those with
// the lowest numbers.
type urlWindow struct {
	listing *urlListing
	host    string
	after   uint64

	n     int
	items []listed
	bound uint64 // nothing above is wanted: there are n below
	more  bool   // something above was met
	upTo  uint64 // if there is more, what the window covers
	parts []listedPart
}

// listedPart is a part on disk, and its range of numbers if that is known.
type listedPart struct {
	Part
	want     uint32
	crawl    uint32
	priority int
	urlRange
}

// fill collects the window.
func (w *urlWindow) fill() error {
	f := w.listing.f
	if err := w.listing.ctx.Err(); err != nil {
		return err
	}
	f.lookLocked()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	id := f.core.lookup(f.hostHash(w.host), w.host)
	if id == 0 {
		f.mu.Unlock()
		return nil
	}
	w.bound, w.n = math.MaxUint64, min(max(int(f.core.hosts.at(id).waiting)/16, minWindow), maxWindow)
	walk := f.core.beginWalk(id, nil)
	walk.part, walk.record, walk.rest = w.visitPart, w.visit, w.makeRoom
	f.walkHost(walk) // unlocks
	if err := w.read(); err != nil {
		return err
	}
	w.cut()
	if w.upTo = w.bound; !w.more {
		w.upTo = math.MaxUint64
	}
	return w.drop()
}

func (w *urlWindow) accepts(seq uint64) bool {
	if seq > w.bound {
		w.more = true
	}
	return seq > w.after && seq <= w.bound
}

func (w *urlWindow) add(x listed) {
	w.items = append(w.items, x)
}

// makeRoom makes room for the next steps of a walk, or as many URLs of a part.
func (w *urlWindow) makeRoom() {
	if len(w.items) >= 2*w.n {
		w.cut()
	}
	w.items = slices.Grow(w.items, walkAtOnce)
	w.parts = slices.Grow(w.parts, walkAtOnce)
}

// cut orders what was collected, each URL once, and keeps the first n.
func (w *urlWindow) cut() {
	slices.SortFunc(w.items, func(a, b listed) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.block, b.block)) })
	w.items = slices.CompactFunc(w.items, func(a, b listed) bool { return a.seq == b.seq })
	if len(w.items) > w.n {
		w.more = true
		clear(w.items[w.n:])
		w.items = w.items[:w.n]
		w.bound = w.items[w.n-1].seq
	}
}

// read takes what is on disk into the window: first the parts of which nobody knows
// the range, then the others as far as they are wanted.
func (w *urlWindow) read() error {
	f := w.listing.f
	remember := len(w.parts) >= rangedFrom
	if remember {
		f.urlRanges.find(w.parts)
	}
	slices.SortFunc(w.parts, func(a, b listedPart) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.Part.key(), b.Part.key()))
	})
	var learned []listedPart
	for i := range w.parts {
		p := &w.parts[i]
		known := p.high != 0
		if known && p.high <= w.after || w.listing.bad[p.Part.key()] {
			continue
		}
		if known && p.low > w.bound {
			w.more = true
			break // they are in order
		}
		if err := w.readPart(p, remember && !known); err != nil {
			return err
		}
		if remember && !known && p.high != 0 {
			learned = append(learned, *p)
		}
	}
	w.parts = nil
	f.urlRanges.add(learned)
	return nil
}

// readPart takes a part into the window. To learn its range all of it is read: what
// is in memory now may be on disk only when the range is used.
func (w *urlWindow) readPart(p *listedPart, learn bool) error {
	f := w.listing.f
	if err := w.listing.ctx.Err(); err != nil {
		return err
	}
	read := p.want
	if learn {
		read = uint32(uint64(1)<<p.Count - 1)
	}
	records, err := f.readFor(w.listing.ctx, p.Part, read)
	if err != nil {
		return w.unreadable(p, err)
	}
	w.makeRoom()
	for _, r := range records {
		if p.high == 0 {
			p.low = r.seq
		}
		p.low, p.high = min(p.low, r.seq), max(p.high, r.seq)
		if p.want&(1<<r.pos) != 0 && w.accepts(r.seq) {
			w.add(listed{
				seq: r.seq, body: r.body, crawl: p.crawl, priority: p.priority,
				block: p.Block, pos: int(p.First) + r.pos,
			})
		}
	}
	return nil
}

// unreadable judges an error: if the part's last record is finished there is
// nothing to read.
func (w *urlWindow) unreadable(p *listedPart, err error) error {
	f := w.listing.f
	f.mu.Lock()
	closed, gone := f.closed, f.core.blocks.at(p.Block) == nil
	f.mu.Unlock()
	var corrupt *CorruptError
	switch {
	case closed:
		return ErrClosed
	case gone:
		return nil
	case !errors.As(err, &corrupt):
		return err
	case !w.listing.damaged(p.Part, err):
		return errStop
	}
	return nil
}

// drop removes what is leased, finished or deleted by now.
func (w *urlWindow) drop() error {
	f := w.listing.f
	kept := w.items[:0]
	for chunk := range slices.Chunk(w.items, walkAtOnce) {
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			return ErrClosed
		}
		c := f.core
		var out []uint64
		if id := c.lookup(f.hostHash(w.host), w.host); id != 0 {
			for l := range c.leasesOf(id) {
				if ref := c.leases.at(l).record; ref != 0 {
					out = append(out, c.record(ref).seq())
				}
			}
		}
		for _, x := range chunk {
			b := c.blocks.at(x.block)
			gone := x.block != 0 && (b == nil || c.isDead(b, x.pos)) || c.deleted(w.host, x.crawl, x.seq)
			if !gone && !slices.Contains(out, x.seq) {
				kept = append(kept, x)
			}
		}
		f.mu.Unlock()
	}
	w.items = kept
	return nil
}

// urlRange is the range of the numbers of a part's records; high is 0 if it is not
// known.
type urlRange struct{ low, high uint64 }

// urlRanges remembers the ranges of parts that were read for a listing, of hosts
// that have many. Blocks are never used twice, so what was true stays true.
type urlRanges struct {
	mu sync.Mutex // taken after Frontier.mu, held for short steps
	at map[uint64]urlRange
}

func (r *urlRanges) find(parts []listedPart) {
	for chunk := range slices.Chunk(parts, walkAtOnce) {
		r.mu.Lock()
		for i := range chunk {
			chunk[i].urlRange = r.at[chunk[i].Part.key()]
		}
		r.mu.Unlock()
	}
}

func (r *urlRanges) add(parts []listedPart) {
	for chunk := range slices.Chunk(parts, walkAtOnce) {
		r.mu.Lock()
		if r.at == nil || len(r.at) > maxRanges {
			r.at = map[uint64]urlRange{}
		}
		for i := range chunk {
			r.at[chunk[i].Part.key()] = chunk[i].urlRange
		}
		r.mu.Unlock()
	}
}

// size is how many bytes they take, about.
func (r *urlRanges) size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.at)) * 48
}
