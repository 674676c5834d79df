// Package hint collects hints: news about URLs that are known and scheduled.
//
// A URL is identified by its mark. The position of a scheduled URL is unknown, so hints wait for a
// walk through everything that is scheduled, which serves any number of hints. The package owns the
// pending hints (Pending): merging several hints for one URL, their memory, which walk answers
// which, and which rows on disk may be deleted. It does not know what is scheduled, and does not
// apply hints. It has no lock: callers hold the frontier's.
package hint

import (
	"math"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// hintSize is the approximate memory of a hint, in addition to its Meta.
	hintSize = 160
	// blockPrice is the cost of a block in a walk, and of heapStep URLs in memory.
	blockPrice, heapStep = 250 * time.Microsecond, 512
	// unasked is the cost up to which a walk need not wait.
	unasked = 40 * time.Millisecond
	// share is how many times the price of a walk goes by from one to the next.
	share = 10
	// stepSize is how many hints or rows are looked at in one step.
	stepSize = 1024
)

// Hint is the news about a URL.
type Hint struct {
	Depth     int
	Weight    float64
	Meta      []byte
	NotBefore time.Time // a visit finds something new from then on; zero: not said

	walk int // number of the first walk that finds the URL if it is scheduled
}

// New returns the hint in a packed record, with a copy of its Meta.
func New(b *record.Body, notBefore time.Time) Hint {
	return Hint{Depth: b.Depth, Weight: b.Weight, Meta: slices.Clone(b.Meta), NotBefore: notBefore}
}

// Heavier returns the greater weight, and the new one if the known one is no number.
func Heavier(known, found float64) float64 {
	if math.IsNaN(known) {
		return found
	}
	return max(known, found)
}

func (h *Hint) size() int64 { return hintSize + int64(len(h.Meta)) }

// Row returns the row of a hint. It has the form of a URL's body whose last modification is the
// time from which a visit is said to find something new.
func (h *Hint) Row(m storage.Mark) storage.Row {
	b := record.Body{Depth: h.Depth, Weight: h.Weight, Meta: h.Meta}
	b.History.LastModified = instant.Millis(h.NotBefore)
	r := row.Hint{Mark: m, Body: b.Append(nil)}
	return r.Row()
}

// Parse is the inverse of Row.
func Parse(key string, value []byte) (storage.Mark, Hint, error) {
	r, err := row.ParseHint(key, value)
	if err != nil {
		return storage.Mark{}, Hint{}, err
	}
	b, err := record.Decode(r.Body)
	if err != nil {
		return storage.Mark{}, Hint{}, row.Malformed(key)
	}
	return r.Mark, New(&b, instant.FromMillis(b.History.LastModified)), nil
}

// Pending holds the hints that were not applied yet, by the marks of their URLs.
//
// The zero value is empty. Not safe for concurrent use.
type Pending struct {
	Latest bool // of two hints of a URL the later NotBefore counts, not the earlier

	at      map[storage.Mark]Hint
	bytes   int64
	since   int64 // arrival of the first one
	ended   int64 // when the last walk did
	walks   int   // begun
	walking bool
	gone    []storage.Mark // marks whose rows must be deleted
}

// Len is how many hints there are.
func (p *Pending) Len() int { return len(p.at) }

// Get returns the hint of a URL.
func (p *Pending) Get(m storage.Mark) (Hint, bool) {
	h, ok := p.at[m]
	return h, ok
}

// Add adds a hint, and returns it merged with an earlier one for its URL. It returns false if it is
// the first of the URL, and the others take more than limit bytes.
func (p *Pending) Add(m storage.Mark, h Hint, now, limit int64) (Hint, bool) {
	switch old, ok := p.at[m]; {
	case ok:
		h.Weight, h.Depth = max(h.Weight, old.Weight), min(h.Depth, old.Depth)
		h.NotBefore = p.said(old.NotBefore, h.NotBefore)
		p.bytes -= old.size()
	case p.bytes > limit:
		return h, false
	}
	if p.at == nil {
		p.at = map[storage.Mark]Hint{}
	}
	if len(p.at) == 0 {
		p.since = now
	}
	h.walk = p.walks + 1
	p.at[m] = h
	p.bytes += h.size()
	return h, true
}

// said is the NotBefore of two hints of a URL.
func (p *Pending) said(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.After(b) == p.Latest {
		return a
	}
	return b
}

// Drop forgets the hint of a URL: it is answered, or of no use.
func (p *Pending) Drop(m storage.Mark) {
	if h, ok := p.at[m]; ok {
		p.bytes -= h.size()
		delete(p.at, m)
		p.gone = append(p.gone, m)
	}
}

// Due returns when the next walk may begin, given the number of blocks and of records in memory
// that it will visit; never if none is needed. The first hint waits for others as long as the walk
// will take. Walks take at most about a tenth of the time.
func (p *Pending) Due(blocks, records int) int64 {
	if len(p.at) == 0 || p.walking {
		return instant.Never
	}
	price := blockPrice*time.Duration(blocks) + blockPrice*time.Duration(records/heapStep)
	if price <= unasked {
		return p.since
	}
	due := p.since + int64(price)
	if p.walks > 0 {
		due = max(due, p.ended+int64(price*share))
	}
	return due
}

// BeginWalk begins a walk. Call EndWalk afterwards.
func (p *Pending) BeginWalk() { p.walking, p.walks = true, p.walks+1 }

// DropMissed drops the hints that the walk must have met by now: their URLs are not scheduled. It
// calls pause between steps, which may release the lock.
func (p *Pending) DropMissed(pause func()) {
	n := 0
	for m, h := range p.at {
		if n++; n%stepSize == 0 {
			pause()
		}
		if h.walk <= p.walks {
			p.Drop(m)
		}
	}
}

// EndWalk ends a walk.
func (p *Pending) EndWalk(now int64) { p.walking, p.since, p.ended = false, now, now }

// TakeGone returns deletions of the rows of some dropped hints, and whether there are more. It
// skips URLs that have a new hint.
func (p *Pending) TakeGone() (rows []storage.Row, more bool) {
	n := min(len(p.gone), stepSize)
	for _, m := range p.gone[:n] {
		if _, again := p.at[m]; !again {
			rows = append(rows, storage.Row{Key: row.MarkKey(row.HintKey, m)})
		}
	}
	if p.gone = p.gone[n:]; len(p.gone) == 0 {
		p.gone = nil
	}
	return rows, p.gone != nil
}

// Size returns the memory in bytes.
func (p *Pending) Size() int64 { return p.bytes + int64(cap(p.gone))*12 }

// Check verifies the recorded memory of the hints, that their URLs are known, and that none waits
// for a walk that has ended. It reports violations.
func (p *Pending) Check(known func(storage.Mark) bool, bad func(format string, args ...any)) {
	bytes := int64(0)
	for m, h := range p.at {
		bytes += h.size()
		if !known(m) {
			bad("F8: there is a hint of a URL that is not known")
		}
		if last := p.walks + 1; h.walk > last || h.walk < last && !(p.walking && h.walk == p.walks) {
			bad("F8: a hint waits for walk %d after %d", h.walk, p.walks)
		}
	}
	if bytes != p.bytes {
		bad("F6: hints take %d bytes, counted %d", bytes, p.bytes)
	}
}
