// This file verifies the side indexes that views keep.

package frontier

// sizes checks that each host is in the list of its size class, and nowhere else.
func (k *checker) sizes() {
	s := &k.c.sizes
	if !s.asked() {
		return
	}
	listed := 0
	for class := range uint32(sizeClasses) {
		prev := uint32(0)
		for id := s.first[class]; id != 0; id = s.at(id).next {
			x, waiting := s.at(id), k.c.hosts.at(id).waiting
			if x.class != class || x.prev != prev || sizeClass(waiting) != class || waiting == 0 {
				k.bad("host %d with %d URLs is in size class %d, behind %d", id, waiting, class, prev)
				return
			}
			prev, listed = id, listed+1
		}
		if (s.filled[class/64]>>(class%64)&1 == 1) != (s.first[class] != 0) {
			k.bad("size class %d is filled: %v", class, s.first[class] == 0)
		}
	}
	n := 0
	for id := uint32(1); id <= min(k.c.hosts.top, s.upTo); id++ {
		n += btoi(k.c.hosts.at(id).waiting > 0)
	}
	if n != listed {
		k.bad("%d hosts are listed by size, want %d", listed, n)
	}
}
