// This file lists the names of hosts without describing them: who looks for a few among
// many by their names need not pay for what the others are about.

package frontier

import "iter"

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and on the
// same terms. It costs about a tenth: a name is all that is looked up. Host describes one.
func (f *Frontier) HostNames(s Scope, after string) iter.Seq[string] {
	look := func(id uint32) string { return string(f.core.name(f.core.hosts.at(id))) }
	return eachHost(f, s, after, namesAtOnce, look, func(name string) string { return name })
}

// eachHost yields what look, which is called with the lock, says of the hosts of s in
// domain order, so many under one lock. name is the key of the host that is looked at.
func eachHost[T any](f *Frontier, s Scope, after string, atOnce int, look func(id uint32) T, name func(T) string) iter.Seq[T] {
	s = f.scopeSeen(s)
	return func(yield func(T) bool) {
		f.orderHosts()
		var ids []uint32
		seen := make([]T, 0, atOnce)
		for key, more := reversed(after), true; more; {
			f.lookLocked()
			if f.closed {
				f.mu.Unlock()
				return
			}
			ids = f.core.hostsIn(ids[:0], s, key, atOnce)
			more = len(ids) == atOnce
			seen = seen[:0]
			for _, id := range ids {
				seen = append(seen, look(id))
			}
			f.mu.Unlock()
			for _, x := range seen {
				if !yield(x) {
					return
				}
			}
			if more {
				key = reversed(name(seen[len(seen)-1]))
			}
		}
	}
}
