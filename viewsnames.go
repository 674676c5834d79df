// This file lists the names of hosts without describing them: who looks for a few among
// many by their names need not pay for what the others are about.

package frontier

import "iter"

// namesAtOnce is how many names are read under one lock.
const namesAtOnce = 256

// HostNames yields the keys of the hosts that Hosts yields, in the same order and on the
// same terms. It costs about a tenth: a name is all that is looked up. Host describes one.
func (f *Frontier) HostNames(s Scope, after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		f.orderHosts()
		var ids []uint32
		names := make([]string, 0, namesAtOnce)
		for key, more := reversed(after), true; more; {
			f.lookLocked()
			if f.closed {
				f.mu.Unlock()
				return
			}
			ids = f.core.hostsIn(ids[:0], s, key, namesAtOnce)
			more = len(ids) == namesAtOnce
			names = names[:0]
			for _, id := range ids {
				names = append(names, string(f.core.name(f.core.hosts.at(id))))
			}
			f.mu.Unlock()
			for _, name := range names {
				if !yield(name) {
					return
				}
			}
			if more {
				key = reversed(names[len(names)-1])
			}
		}
	}
}
