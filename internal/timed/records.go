// This file orders scheduled records that are in memory.

package timed

import (
	"iter"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// Records is the heap of scheduled records in memory. For an item, At is when the record is due, ID
// its ref, and Aux its owner. The record's link holds its position. Those of an owner are a ring, if
// Ring is set.
//
// Not safe for concurrent use.
type Records struct {
	timeheap.Heap
	Ring     func(owner uint32) *arena.Ref // its first record
	records  *record.Arena
	homeless []timeheap.Item // in no block when they were added; some are gone by now
	scans    []*Scan         // in progress
}

// NewRecords returns a heap of records that lie in an arena.
func NewRecords(records *record.Arena) *Records {
	r := &Records{records: records}
	r.Moved = r.moved
	return r
}

// Find returns the position of a scheduled record, and whether it is here; the record may be gone,
// and ref reused.
func (r *Records) Find(ref arena.Ref) (int, bool) {
	i := int(r.records.At(ref).Next())
	return i, i < r.Len() && r.Items[i].ID == uint32(ref)
}

// Push adds a record.
func (r *Records) Push(it timeheap.Item) {
	if r.Ring != nil {
		r.records.Join(r.Ring(it.Aux), arena.Ref(it.ID))
	}
	r.Heap.Push(it)
}

// Remove takes out item i.
func (r *Records) Remove(i int) {
	if it := r.Items[i]; r.Ring != nil {
		r.records.Leave(r.Ring(it.Aux), arena.Ref(it.ID))
	}
	r.Heap.Remove(i)
}

// Of yields the positions of an owner's records. After a change the loop must end.
func (r *Records) Of(owner uint32) iter.Seq[int] {
	return func(yield func(int) bool) {
		first := *r.Ring(owner)
		for ref := first; ref != 0; {
			x := r.records.At(ref)
			if !yield(int(x.Next())) {
				return
			}
			if ref = x.After(); ref == first {
				return
			}
		}
	}
}

// NeedHome notes records that lie in no block.
func (r *Records) NeedHome(items ...timeheap.Item) { r.homeless = append(r.homeless, items...) }

// TakeHomeless returns the items recorded with NeedHome since the last call. Their records may be gone.
func (r *Records) TakeHomeless() []timeheap.Item {
	items := r.homeless
	r.homeless = nil
	return items
}

// Size returns the memory in bytes, without the records.
func (r *Records) Size() int64 { return r.Heap.Size() + int64(cap(r.homeless))*16 }

// Scan is a walk from the end of the heap to its beginning. Items that are moved from before it to
// behind it are kept for examination.
type Scan struct {
	cursor int // items from here on were looked at
	missed []arena.Ref
}

// NewScan returns a walk that has not begun. Call EndScan afterwards.
func NewScan() *Scan { return &Scan{cursor: -1} }

// moved notes that a record is at another place of the heap.
func (r *Records) moved(id uint32, i int) {
	x := r.records.At(arena.Ref(id))
	for _, s := range r.scans {
		if i >= s.cursor && int(x.Next()) < s.cursor {
			s.missed = append(s.missed, arena.Ref(id))
		}
	}
	x.SetNext(arena.Ref(i))
}

// Next returns the position of an item that s has not examined; a negative value if there is none
// in this step. At the end of the walk ok is false.
func (r *Records) Next(s *Scan) (i int, ok bool) {
	switch {
	case s.cursor < 0: // it begins
		s.cursor = r.Len()
		r.scans = append(r.scans, s)
	case s.cursor > r.Len():
		s.cursor = r.Len()
	case s.cursor > 0:
		s.cursor--
		return s.cursor, true
	case len(s.missed) > 0:
		ref := s.missed[len(s.missed)-1]
		s.missed = s.missed[:len(s.missed)-1]
		if i, there := r.Find(ref); there {
			return i, true
		}
	default:
		return -1, false
	}
	return -1, true
}

// Look calls fn with up to n of the items that s has not examined, until it returns false. It reports
// whether that was so, or the walk is at its end.
func (r *Records) Look(s *Scan, n int, fn func(timeheap.Item) (more bool)) (done bool) {
	for ; n > 0; n-- {
		if i, more := r.Next(s); !more || i >= 0 && !fn(r.Items[i]) {
			return true
		}
	}
	return false
}

// EndScan ends a walk, if it began.
func (r *Records) EndScan(s *Scan) {
	r.scans = slices.DeleteFunc(r.scans, func(x *Scan) bool { return x == s })
}
