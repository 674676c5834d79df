// This file notices hosts that have the same pages: mirrors. While a page is added it
// looks whether the hosts that had pages in common with its own have it at the same path,
// too, and writes that down; later it counts. When to count, and which hosts those are, is
// a guess that is kept in memory: see pairs.go.

package neardup

import (
	"cmp"
	"slices"

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

// noticeMirror counts a pair of hosts, and reports it if they are mirrors.
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

// Mirrors returns the hosts that are mirrors of others, as far as their pages were
// added, in order. It reads three rows for each page that is at the same path of two
// hosts, and one for each page of those that may be mirrors.
//
// Two hosts that both have fewer pages than Options.MirrorPages are compared as a whole:
// Options.MirrorShare of the pages of the host that has more must be the same. While more
// pages may come that tells nothing, so Options.OnMirror is not told of them. Pages that
// have fewer than three texts among them make no mirror.
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

// common is what two hosts, in order of names, have in common.
type common struct {
	a, b  string
	same  int            // pages at the same paths
	texts map[Print]bool // of these pages; no more are kept than need be told apart
}

// mirrorsUnder finds mirrors among the pairs of hosts with rows under a prefix; whole says
// that small hosts are to be compared, too.
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

// count counts two pages if they are still the same: either may have changed.
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

// fewTexts is how many different texts the pages that hosts have in common must have: one
// text all over, such as what a server answers to whatever it is asked, tells nothing.
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

// compareHosts looks for other hosts that have the page at the same path: that of the
// earlier page that was found, and those that had other pages in common with this one's.
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

// sameOn returns the page that a host has at the path of this one if it is the same or
// near, and otherwise zero.
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
