// This file counts per host in bounded memory.

package filter

import (
	"container/list"
	"sync"
)

const (
	maxHosts    = 10_000 // counted at once; the least recently used is forgotten
	maxPerTable = 4096   // counts of one host
)

// tally counts by host and key. If there are too many keys, the smallest counts are forgotten:
// those of a trap are large, and those of a site's many different pages are 1. The zero value is
// ready for use.
type tally struct {
	mu    sync.Mutex
	hosts map[string]*list.Element // guarded by mu; of *table
	used  list.List                // guarded by mu; last used first
}

type table struct {
	host   string
	counts map[uint64]int
}

func (t *tally) get(host string, key uint64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.hosts[host]; e != nil {
		return e.Value.(*table).counts[key]
	}
	return 0
}

func (t *tally) add(host string, key uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.hosts[host]
	if e == nil {
		e = t.insert(&table{host, map[uint64]int{}})
	}
	t.used.MoveToFront(e)
	counts := e.Value.(*table).counts
	for least := 1; len(counts) >= maxPerTable; least *= 2 {
		for k, n := range counts {
			if n <= least {
				delete(counts, k)
			}
		}
	}
	counts[key]++
}

// insert puts a new host's table in front; the lock is held.
func (t *tally) insert(x *table) *list.Element {
	if t.hosts == nil {
		t.hosts = map[string]*list.Element{}
	}
	if e := t.hosts[x.host]; e != nil {
		t.used.Remove(e)
	}
	for t.used.Len() >= maxHosts {
		old := t.used.Remove(t.used.Back()).(*table)
		delete(t.hosts, old.host)
	}
	e := t.used.PushFront(x)
	t.hosts[x.host] = e
	return e
}
