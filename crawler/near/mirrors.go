// This file notices hosts that have the same pages: mirrors. It counts rows that
// index.go writes; all that is in memory is a guess when to count.

package near

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// Mirror is a host whose pages are those of another.
type Mirror struct {
	// Host is the mirror, Of what it mirrors: the one with the shorter name, or of two
	// as long the first in order. Which had its pages first is luck when both are
	// crawled at once, and tells nothing of which is the original; names stay.
	Host, Of string
	// Same is how many pages both have at the same paths, with the same or nearly the
	// same content. Pages is how many pages of that host of the two are in the index
	// that has fewer.
	Same, Pages int
}

// mirrorCounts count pairs of hosts since the Index was opened.
type mirrorCounts struct {
	mu    sync.Mutex
	pairs map[[2]string]int // guarded by mu; at most maxPairs; far below 0: told
}

const maxPairs = 10_000

// seen counts one more page that two hosts have, and reports whether that is a time
// to look closer: after the least number of pages, and after each doubling.
func (m *mirrorCounts) seen(host, of string, least int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	pair := [2]string{host, of}
	if m.pairs == nil {
		m.pairs = map[[2]string]int{}
	}
	if _, ok := m.pairs[pair]; !ok && len(m.pairs) == maxPairs {
		for p := range m.pairs { // any will do: who has many comes again
			delete(m.pairs, p)
			break
		}
	}
	m.pairs[pair]++
	n := m.pairs[pair]
	return n >= least && n%least == 0 && (n/least)&(n/least-1) == 0
}

// tell reports whether a pair is to be told of now: it was not yet.
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

// noticeMirror counts a pair of hosts, and reports it if they are mirrors.
func (x *Index) noticeMirror(host, of string) {
	host, of = min(host, of), max(host, of)
	if x.opts.OnMirror == nil || !x.mirrors.seen(host, of, x.opts.MirrorPages) {
		return
	}
	var found []Mirror
	err := x.db.View(func(txn *badger.Txn) error {
		found = x.mirrorsUnder(txn, mirrorPrefix(host, of))
		return nil
	})
	if err == nil && len(found) > 0 && x.mirrors.tell(host, of) {
		for _, m := range found {
			x.opts.OnMirror(m)
		}
	}
}

// Mirrors returns the hosts that are mirrors of others, as far as their pages were
// added, in order. It reads a row for each page that is at the same path of two
// hosts, and one for each page of those that may be mirrors.
func (x *Index) Mirrors() (all []Mirror, err error) {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return nil, ErrClosed
	}
	err = x.db.View(func(txn *badger.Txn) error {
		all = x.mirrorsUnder(txn, []byte("m"))
		return nil
	})
	slices.SortFunc(all, func(a, b Mirror) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Of, b.Of)) })
	return all, err
}

// mirrorsUnder finds mirrors among the pairs of hosts with rows under a prefix.
func (x *Index) mirrorsUnder(txn *badger.Txn, prefix []byte) (all []Mirror) {
	var host, other string
	same := 0 // pages that both have
	judge := func() {
		if m, ok := x.mirror(txn, host, other, same); ok {
			all = append(all, m)
		}
	}
	it := keysOf(txn, prefix)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		a, b := cutPair(it.Item().Key())
		if a != host || b != other {
			judge()
			host, other, same = a, b, 0
		}
		same++
	}
	judge()
	return all
}

// mirror decides whether one of two hosts, in order of names, is a mirror of the other.
func (x *Index) mirror(txn *badger.Txn, a, b string, same int) (Mirror, bool) {
	if same < x.opts.MirrorPages {
		return Mirror{}, false
	}
	m := Mirror{Host: b, Of: a, Same: same, Pages: min(count(txn, hostPrefix(a)), count(txn, hostPrefix(b)))}
	if len(b) < len(a) {
		m.Host, m.Of = a, b
	}
	return m, float64(same) >= x.opts.MirrorShare*float64(m.Pages)
}

func count(txn *badger.Txn, prefix []byte) (n int) {
	it := keysOf(txn, prefix)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		n++
	}
	return n
}

func keysOf(txn *badger.Txn, prefix []byte) *badger.Iterator {
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = prefix
	return txn.NewIterator(o)
}
