// This file finds out which marks are known.
//
// It searches the runs in order, the largest first, since it contains most of the known marks. For
// each run it checks all undecided marks against the filter, then reads the pages of those that
// pass, each page once.

package marks

import (
	"cmp"
	"slices"
	"sync"

	"github.com/seed-7440039f/frontier/storage"
)

// question is a mark that was not found so far.
type question struct {
	hi uint64
	lo uint32
	i  int32 // of the caller's marks
}

// inquiry is the memory of one call.
type inquiry struct {
	open  []question
	hits  []question // that a filter lets through
	pages [2][PageSize]byte
}

// shareFrom is how many hits are worth a second goroutine.
const shareFrom = 256

var inquiries = sync.Pool{New: func() any { return new(inquiry) }}

// Ask sets known[i] for each ms[i] in a run. Elements that are already set are not looked up.
func (m *Set) Ask(ms []storage.Mark, known []bool) error {
	runs := m.acquire()
	defer m.release(runs)
	q := inquiries.Get().(*inquiry)
	defer inquiries.Put(q)
	return q.ask(runs, ms, known)
}

func (q *inquiry) ask(runs []*Run, ms []storage.Mark, known []bool) error {
	q.open = q.open[:0]
	for i := range ms {
		if !known[i] {
			hi, lo := splitMark(ms[i][:])
			q.open = append(q.open, question{hi, lo, int32(i)})
		}
	}
	for _, r := range runs {
		q.hits = q.hits[:0]
		for _, x := range q.open {
			if r.Filter.has(x.hi, x.lo) {
				q.hits = append(q.hits, x)
			}
		}
		if len(q.hits) == 0 {
			continue
		}
		if err := q.read(r, known); err != nil {
			return err
		}
		q.open = slices.DeleteFunc(q.open, func(x question) bool { return known[x.i] })
		if len(q.open) == 0 {
			return nil
		}
	}
	return nil
}

// read looks the hits up in the pages of r; many hits are divided between two goroutines.
func (q *inquiry) read(r *Run, known []bool) error {
	slices.SortFunc(q.hits, func(a, b question) int { return cmp.Compare(a.hi, b.hi) })
	n := len(q.hits)
	if n < shareFrom {
		return r.find(q.hits, q.pages[0][:], known)
	}
	var other error
	var wait sync.WaitGroup
	wait.Go(func() { other = r.find(q.hits[n/2:], q.pages[1][:], known) })
	err := r.find(q.hits[:n/2], q.pages[0][:], known)
	wait.Wait()
	return cmp.Or(err, other)
}

// find looks up marks in ascending order. buf is for pages.
func (r *File) find(hits []question, buf []byte, known []bool) error {
	at := int64(-1) // the page in buf
	var marks []byte
	var err error
	for _, x := range hits {
		p, ok := r.pageOf(x.hi)
		for ; ok; p-- {
			if at != int64(p) {
				if marks, err = r.page(p, buf); err != nil {
					return err
				}
				at = int64(p)
			}
			if inPage(marks, x.hi, x.lo) {
				known[x.i] = true
				break
			}
			// Marks with the same first 8 bytes may begin on the page before.
			ok = r.index[p] == x.hi && p > 0
		}
	}
	return nil
}

// Recall calls fn with the marks of all runs, the smallest runs first, until fn returns false. fn
// must not keep its argument.
func (m *Set) Recall(fn func(ms []storage.Mark) bool) error {
	runs := m.acquire()
	defer m.release(runs)
	var ms []storage.Mark
	for i := len(runs) - 1; i >= 0; i-- {
		c := newCursor(runs[i].File)
		for {
			page, err := c.fill()
			if err != nil {
				return err
			}
			if page == nil {
				break
			}
			ms = appendMarks(ms[:0], page)
			if !fn(ms) {
				return nil
			}
		}
	}
	return nil
}
