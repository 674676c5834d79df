// This file records, in bounded memory, which hosts shared pages since an index was opened: which
// hosts to compare next pages with, and when to check for a mirror. Losing this record costs only
// time.

package neardup

import (
	"math"
	"slices"
	"sync"
)

// mirrorCounts count pairs of hosts. The zero value counts none.
type mirrorCounts struct {
	mu       sync.Mutex
	pairs    map[[2]string]int   // guarded by mu; at most maxPairs; far below 0: reported
	partners map[string][]string // guarded by mu; at most maxPairs hosts with maxPartners each, the latest first
}

const (
	maxPairs    = 10_000
	maxPartners = 4
)

// seen counts one more page that two hosts share, and reports whether to check them now: after the
// minimum number of pages, and after each doubling.
func (m *mirrorCounts) seen(host, of string, least int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	pair := [2]string{host, of}
	if m.pairs == nil {
		m.pairs, m.partners = map[[2]string]int{}, map[string][]string{}
	}
	room(m.pairs, pair)
	m.pairs[pair]++
	m.meet(host, of)
	m.meet(of, host)
	n := m.pairs[pair]
	return n >= least && n%least == 0 && (n/least)&(n/least-1) == 0
}

// room makes room for a key by evicting any other; a host that shares many pages is soon added
// again.
func room[K comparable, V any](in map[K]V, key K) {
	if _, ok := in[key]; ok || len(in) < maxPairs {
		return
	}
	for k := range in {
		delete(in, k)
		return
	}
}

// meet makes of the first of host's partners; the lock is held.
func (m *mirrorCounts) meet(host, of string) {
	all := m.partners[host]
	if len(all) > 0 && all[0] == of {
		return
	}
	room(m.partners, host)
	if i := slices.Index(all, of); i >= 0 {
		all = slices.Delete(all, i, i+1)
	} else if len(all) == maxPartners {
		all = all[:maxPartners-1]
	}
	m.partners[host] = slices.Insert(all, 0, of)
}

// partnersOf returns the hosts that most recently shared pages with host, at most maxPartners.
func (m *mirrorCounts) partnersOf(host string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.partners[host])
}

// tell reports whether a pair has not been reported yet, and marks it as reported.
func (m *mirrorCounts) tell(host, of string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	pair := [2]string{host, of}
	if m.pairs[pair] < 0 {
		return false
	}
	m.pairs[pair] = math.MinInt
	return true
}
