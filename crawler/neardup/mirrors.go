// This file detects hosts with the same pages: mirrors. Adding a page checks whether hosts that
// share pages with its host have the same page at the same path, and records that; later these
// records are counted. The choice of hosts to check, and when to count, is a heuristic kept in
// memory: see pairs.go.

package neardup

import (
	"cmp"
	"slices"

	"github.com/dgraph-io/badger/v4"
)

// Mirror is a host with the same pages as another.
type Mirror struct {
	// Host is the mirror, Of the host that it mirrors: the one with the shorter name, or if both
	// have the same length the first in order. The order in which pages were found would say
	// nothing about which is the original when both are crawled at once; names are stable.
	Host, Of string
	// Same is the number of pages that both have at the same paths, with the same or nearly the
	// same content. Pages is the number of indexed pages of the host that has fewer.
	Same, Pages int
}

// noticeMirror counts the common pages of two hosts, and reports the hosts if one is a mirror.
func (x *Index) noticeMirror(host, of string) {
	host, of = min(host, of), max(host, of)
	if !x.mirrors.seen(host, of, x.opts.MirrorPages) || x.opts.OnMirror == nil {
		return
	}
	var found []Mirror
	err := x.db.View(func(txn *badger.Txn) (err error) {
		found, err = x.mirrorsUnder(txn, mirrorPrefix(host, of), false)
		return err
	})
	if err == nil && len(found) > 0 && x.mirrors.tell(host, of) {
		for _, m := range found {
			x.opts.OnMirror(m)
		}
	}
}

// Mirrors returns, in order, the hosts that are mirrors of others, judging by the pages added so
// far. It reads three rows for each page that is at the same path of two hosts, and one for each
// page of possible mirrors.
//
// If both hosts have fewer pages than Options.MirrorPages they are compared as a whole:
// Options.MirrorShare of the pages of the host that has more must be the same. Since more pages may
// follow, this is not conclusive during a crawl, and Options.OnMirror is not called for them. Pages
// with fewer than three different texts make no mirror.
func (x *Index) Mirrors() (all []Mirror, err error) {
	x.life.RLock()
	defer x.life.RUnlock()
	if x.closed {
		return nil, ErrClosed
	}
	err = x.db.View(func(txn *badger.Txn) (err error) {
		all, err = x.mirrorsUnder(txn, []byte("m"), true)
		return err
	})
	slices.SortFunc(all, func(a, b Mirror) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Of, b.Of)) })
	return all, err
}

// common is what two hosts, in order of names, share.
type common struct {
	a, b  string
	same  int            // pages at the same paths
	texts map[Print]bool // texts of these pages, as far as needed to count them
}

// mirrorsUnder finds mirrors among the pairs of hosts with rows under a prefix; whole means that
// small hosts are compared, too.
func (x *Index) mirrorsUnder(txn *badger.Txn, prefix []byte, whole bool) (all []Mirror, err error) {
	var c common
	judge := func() {
		if m, ok := x.mirror(txn, &c, whole); ok {
			all = append(all, m)
		}
	}
	it := keysOf(txn, prefix)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		a, b, page := cutPair(it.Item().Key())
		if a != c.a || b != c.b {
			judge()
			c = common{a: a, b: b, texts: map[Print]bool{}}
		}
		var other id
		if err := it.Item().Value(func(v []byte) error { other = idOf(v); return nil }); err != nil {
			return nil, err
		}
		if err := x.count(txn, &c, page, other); err != nil {
			return nil, err
		}
	}
	judge()
	return all, nil
}

// count counts two pages if they are still the same, since either may have changed.
func (x *Index) count(txn *badger.Txn, c *common, i, j id) error {
	a, err := getRecord(txn, i)
	if a == nil || err != nil {
		return err
	}
	b, err := getRecord(txn, j)
	if b == nil || err != nil {
		return err
	}
	if kind, _ := compare(&a.page, &b.page, x.opts.Threshold); kind == New {
		return nil
	}
	c.same++
	if len(c.texts) < fewTexts {
		c.texts[a.page.Text] = true
	}
	return nil
}

// fewTexts is the minimum number of different texts among the common pages of two hosts: servers
// that answer every request with the same text are not mirrors.
const fewTexts = 3

// mirror decides whether one of two hosts is a mirror of the other.
func (x *Index) mirror(txn *badger.Txn, c *common, whole bool) (Mirror, bool) {
	if few := min(fewTexts, x.opts.MirrorPages); c.same < few || len(c.texts) < few {
		return Mirror{}, false
	}
	if !whole && c.same < x.opts.MirrorPages {
		return Mirror{}, false
	}
	na, nb := countRows(txn, hostPrefix(c.a)), countRows(txn, hostPrefix(c.b))
	m := Mirror{Host: c.b, Of: c.a, Same: c.same, Pages: min(na, nb)}
	if len(c.b) < len(c.a) {
		m.Host, m.Of = c.a, c.b
	}
	of := m.Pages
	if c.same < x.opts.MirrorPages {
		if of = max(na, nb); of >= x.opts.MirrorPages {
			return Mirror{}, false
		}
	}
	return m, float64(c.same) >= x.opts.MirrorShare*float64(of)
}

// compareHosts compares the page at the same path of other hosts: the host of the earlier page that
// was found, and hosts that share other pages with this one's.
func (a *adding) compareHosts(txn *badger.Txn, first found) error {
	if a.host == "" {
		return nil
	}
	hosts := a.x.mirrors.partnersOf(a.host)
	at := "" // host of the earlier page, if that is at the same path
	if a.match.Kind != New {
		host, path := hostAndPath(first.url)
		if host != a.host && host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
		if host != a.host && path == a.path {
			at = host
		}
	}
	for _, host := range hosts {
		other, err := first.id, error(nil)
		if host != at {
			other, err = a.sameOn(txn, host)
		}
		if err != nil {
			return err
		}
		if other == (id{}) {
			continue
		}
		key, value := mirrorRow(a.host, a.id, host, other)
		if err := txn.Set(key, value); err != nil {
			return err
		}
		a.sameAt = append(a.sameAt, host)
	}
	return nil
}

// sameOn returns the page at the same path of another host if it is the same or near, otherwise
// zero.
func (a *adding) sameOn(txn *badger.Txn, host string) (id, error) {
	url, ok := onHost(a.url, host)
	if !ok {
		return id{}, nil
	}
	other := a.x.id(url)
	r, err := getRecord(txn, other)
	if r == nil || err != nil {
		return id{}, err
	}
	if kind, _ := compare(&a.page, &r.page, a.x.opts.Threshold); kind == New {
		return id{}, nil
	}
	return other, nil
}

// countRows counts rows.
func countRows(txn *badger.Txn, prefix []byte) (n int) {
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
