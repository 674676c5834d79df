package frontier

import (
	"github.com/seed-7440039f/frontier/internal/timeheap"
)

// CountMoves counts, from now on, each time that an item of one of the
// frontier's heaps takes a position. All work that grows with the number of
// hosts does that.
func (f *Frontier) CountMoves() *int {
	n := new(int)
	c := f.sched
	counted := func(moved func(uint32, int)) func(uint32, int) {
		return func(id uint32, i int) {
			*n++
			if moved != nil {
				moved(id, i)
			}
		}
	}
	for _, h := range []*timeheap.Heap{&c.pace, &c.parks, &c.idle, &c.expiry, &c.scheduled.Heap} {
		h.Moved = counted(h.Moved)
	}
	return n
}
