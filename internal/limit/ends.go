package limit

import "github.com/seed-7440039f/frontier/internal/timeheap"

// Ends holds the ends of periods for which hosts, or crawls, wait.
type Ends struct {
	timeheap.Heap                // by number; the caller changes it through Set and Remove
	at            map[uint32]int // positions in the heap
}

func newEnds() *Ends {
	e := &Ends{at: map[uint32]int{}}
	e.Moved = func(id uint32, i int) { e.at[id] = i }
	return e
}

// Set notes until when a host or crawl waits.
func (e *Ends) Set(id uint32, until int64) {
	if i, ok := e.at[id]; ok {
		e.Fix(i, until)
		return
	}
	e.Push(timeheap.Item{At: until, ID: id})
}

// Remove records that a host or crawl no longer waits.
func (e *Ends) Remove(id uint32) {
	if i, ok := e.at[id]; ok {
		e.Heap.Remove(i)
		delete(e.at, id)
	}
}

// Has reports whether a host or crawl waits.
func (e *Ends) Has(id uint32) bool {
	_, ok := e.at[id]
	return ok
}

// Over returns a host or crawl whose period has ended.
func (e *Ends) Over(now int64) (id uint32, ok bool) {
	if e.Len() == 0 || e.Items[0].At > now {
		return 0, false
	}
	return e.Items[0].ID, true
}

// Size returns the approximate memory in bytes.
func (e *Ends) Size() int64 { return e.Heap.Size() + int64(len(e.at))*24 }

// shift moves all ends; their order stays.
func (e *Ends) shift(step int64) {
	for i := range e.Items {
		e.Items[i].At += step
	}
}

// check calls bad if the ends are out of order, or not at their recorded positions (F3).
func (e *Ends) check(bad func(string, ...any)) {
	if err := e.Heap.Check(); err != nil {
		bad("F3: ends of periods: %v", err)
	}
	for i, it := range e.Items {
		if at, ok := e.at[it.ID]; !ok || at != i {
			bad("F3: %d is at %d among the ends of periods, not at %d", it.ID, i, at)
		}
	}
	if len(e.at) != e.Len() {
		bad("F3: %d wait for the end of a period, %d are found", e.Len(), len(e.at))
	}
}
