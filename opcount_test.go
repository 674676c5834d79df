package frontier

// CountMoves counts, from now on, each time that an item of one of the
// frontier's heaps takes a position. All work that grows with the number of
// hosts does that.
func (f *Frontier) CountMoves() *int {
	n := new(int)
	c := f.core
	counted := func(moved func(uint32, int)) func(uint32, int) {
		return func(id uint32, i int) {
			*n++
			if moved != nil {
				moved(id, i)
			}
		}
	}
	for _, h := range []*timeHeap{&c.pace, &c.parks, &c.idle, &c.expiry, &c.scheduled} {
		h.moved = counted(h.moved)
	}
	return n
}
