// Package view owns what is collected for an operator who looks at URLs: the next waiting ones of a
// host in the order of their admission, from memory and from disk, in bounded memory.
//
// A Window has what was collected. Ranges record the sequence numbers in the parts of large hosts, so
// that the next page of a listing reads only what it needs. Nothing here reads the disk or changes a
// URL. Ranges have a lock of their own. For all else that has a Core callers hold the frontier's, and a
// Window belongs to one goroutine.
package view

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	minWindow = 1 << 10 // URLs that are collected at once, at least
	maxWindow = 1 << 14 // at most
	// rangedFrom is the number of parts from which on a host's ranges are recorded.
	rangedFrom = 32
	// maxRanges is how many ranges are remembered.
	maxRanges = 1 << 19
)

// AtOnce is how many parts and records are visited under one lock, and for how many a Window has room
// after MakeRoom.
const AtOnce = 512

// Item is a waiting record.
type Item struct {
	Seq      uint64
	Body     []byte
	Crawl    uint32
	Priority int
	Block    uint32 // 0: it was in memory
	Pos      int
}

// Part is a part on disk, with the records that are wanted.
type Part struct {
	storage.Part
	Want     uint32
	Crawl    uint32
	Priority int    // with which its URLs are served
	Level    uint8  // and as admitted
	ID       uint32 // its own number, and that of its queue
	Queue    uint32
	numbers
}

// numbers is the range of the sequence numbers of a part's records; high is 0 if it is not known.
type numbers struct{ low, high uint64 }

// Key identifies a part among all that ever existed.
func Key(p storage.Part) uint64 { return uint64(p.Block)<<16 | uint64(p.First) }

// Window holds the next URLs of a host after a sequence number: those with the lowest numbers of
// all that it is given.
type Window struct {
	Items []Item
	Parts []Part // on disk, not read yet
	More  bool   // something above the window was met
	*fifo.Walk

	core         *mercator.Core
	host         string
	after        uint64
	n            int
	bound        uint64 // nothing above is wanted: there are n below
	judged, kept int    // by DropSome
}

// begin returns a Window of the URLs after a number, for a host with the given number of waiting URLs.
func begin(after uint64, waiting int) *Window {
	return &Window{after: after, n: min(max(waiting/16, minWindow), maxWindow), bound: math.MaxUint64}
}

// Accepts reports whether a record with a number is wanted.
func (w *Window) Accepts(seq uint64) bool {
	if seq > w.bound {
		w.More = true
	}
	return seq > w.after && seq <= w.bound
}

// MakeRoom makes room for the next steps of a walk, or the records of a part.
func (w *Window) MakeRoom() {
	if len(w.Items) >= 2*w.n {
		w.Cut()
	}
	w.Items = slices.Grow(w.Items, AtOnce)
	w.Parts = slices.Grow(w.Parts, AtOnce)
}

// Cut sorts what was collected, removes duplicates, and keeps the first n.
func (w *Window) Cut() {
	slices.SortFunc(w.Items, func(a, b Item) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Block, b.Block)) })
	w.Items = slices.CompactFunc(w.Items, func(a, b Item) bool { return a.Seq == b.Seq })
	if len(w.Items) > w.n {
		w.More = true
		clear(w.Items[w.n:])
		w.Items = w.Items[:w.n]
		w.bound = w.Items[w.n-1].Seq
	}
}

// UpTo returns the highest number in the window; later URLs are not in it.
func (w *Window) UpTo() uint64 {
	if w.More {
		return w.bound
	}
	return math.MaxUint64
}

// Read adds records on disk to the window: first the parts whose range is unknown, then the others
// as far as they are needed. load reads some records of a part; it returns none if it cannot.
func (w *Window) Read(r *Ranges, load func(p *Part, want uint32) ([]fifo.Loaded, error)) error {
	remember := len(w.Parts) >= rangedFrom
	if remember {
		r.find(w.Parts)
	}
	slices.SortFunc(w.Parts, func(a, b Part) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(Key(a.Part), Key(b.Part)))
	})
	var learned []Part
	for i := range w.Parts {
		p := &w.Parts[i]
		known := p.high != 0
		if known && p.high <= w.after {
			continue
		}
		if known && p.low > w.bound {
			w.More = true
			break // they are in order
		}
		want := p.Want
		if remember && !known { // what is in memory now may be only on disk when the range is used
			want = uint32(uint64(1)<<p.Count - 1)
		}
		records, err := load(p, want)
		if err != nil {
			return err
		}
		w.take(p, records)
		if remember && !known && p.high != 0 {
			learned = append(learned, *p)
		}
	}
	w.Parts = nil
	r.add(learned)
	return nil
}

// take adds the wanted records of a part to the window.
func (w *Window) take(p *Part, records []fifo.Loaded) {
	w.MakeRoom()
	for _, r := range records {
		if p.high == 0 {
			p.low = r.Seq
		}
		p.low, p.high = min(p.low, r.Seq), max(p.high, r.Seq)
		if p.Want&(1<<r.Pos) != 0 && w.Accepts(r.Seq) {
			w.Items = append(w.Items, Item{
				Seq: r.Seq, Body: r.Body, Crawl: p.Crawl, Priority: p.Priority,
				Block: p.Block, Pos: int(p.First) + r.Pos,
			})
		}
	}
}

// Ranges are the ranges of parts of large hosts that were read for a listing. Block numbers are
// never reused, so they stay valid. The zero value is empty. Safe for concurrent use.
type Ranges struct {
	mu sync.Mutex // held for short steps
	at map[uint64]numbers
}

func (r *Ranges) find(parts []Part) {
	for chunk := range slices.Chunk(parts, AtOnce) {
		r.mu.Lock()
		for i := range chunk {
			chunk[i].numbers = r.at[Key(chunk[i].Part)]
		}
		r.mu.Unlock()
	}
}

func (r *Ranges) add(parts []Part) {
	for chunk := range slices.Chunk(parts, AtOnce) {
		r.mu.Lock()
		if r.at == nil || len(r.at) > maxRanges {
			r.at = map[uint64]numbers{}
		}
		for i := range chunk {
			r.at[Key(chunk[i].Part)] = chunk[i].numbers
		}
		r.mu.Unlock()
	}
}

// Size returns the approximate memory in bytes.
func (r *Ranges) Size() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.at)) * 48
}

// Source returns what packages inspect and transfer need of a *frontier.Frontier. The root sets it.
var Source func(f any) any
