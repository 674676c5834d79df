// This file adds one page to an index, in one transaction: it removes the URL's previous content,
// finds an earlier page that is the same or near, and stores this one. sketch.go compares pages;
// keys.go defines the keys.

package neardup

import (
	"bytes"

	"github.com/dgraph-io/badger/v4"
)

// adding is the state of one Add.
type adding struct {
	x          *Index
	url        string
	host, path string
	page       Page
	id         id
	match      Match
	sameAt     []string // other hosts with the same page at the same path
}

func (a *adding) try() error {
	a.match, a.sameAt = Match{}, nil
	return a.x.db.Update(func(txn *badger.Txn) error {
		known, err := a.forget(txn)
		if known || err != nil {
			return err
		}
		first, err := a.find(txn)
		if err != nil {
			return err
		}
		r := record{url: a.url, page: a.page, first: first.id}
		if a.match.Kind == New {
			r.first = a.id
			if err := a.index(txn); err != nil {
				return err
			}
		}
		if err := a.compareHosts(txn, first); err != nil {
			return err
		}
		if err := txn.Set(append(hostPrefix(a.host), a.id[:]...), nil); err != nil {
			return err
		}
		return txn.Set(recordKey(a.id), r.bytes())
	})
}

// forget removes the URL's previous content. If it was the same, known is true and nothing changes.
func (a *adding) forget(txn *badger.Txn) (known bool, err error) {
	old, err := getRecord(txn, a.id)
	if old == nil || err != nil {
		return false, err
	}
	if old.page.Bytes == a.page.Bytes {
		return true, a.again(txn, old)
	}
	a.match.Known, a.match.Changed = true, true
	a.match.Change = a.page.Change(&old.page)
	if old.first != a.id {
		return false, nil
	}
	for _, key := range a.x.prints(&old.page) {
		if err := deleteIf(txn, key, a.id); err != nil {
			return false, err
		}
	}
	for _, prefix := range a.x.bands(&old.page) {
		if err := txn.Delete(append(prefix, a.id[:]...)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// again returns the previous match of a page that did not change.
func (a *adding) again(txn *badger.Txn, old *record) error {
	a.match = Match{Kind: SameURL, URL: a.url, Resemblance: 1, Known: true}
	if old.first == a.id {
		return nil
	}
	first, err := getRecord(txn, old.first)
	if err != nil || first == nil {
		return err
	}
	if kind, r := compare(&a.page, &first.page, a.x.opts.Threshold); kind != New {
		a.match = Match{Kind: kind, URL: first.url, Resemblance: r, Known: true, SameLinks: sameLinks(&a.page, &first.page)}
	}
	return nil
}

// found is an earlier page.
type found struct {
	id  id
	url string
}

// find looks for an earlier page with the same or nearly the same content, and fills
// in the match.
func (a *adding) find(txn *badger.Txn) (found, error) {
	for _, key := range a.x.prints(&a.page) {
		other, err := getID(txn, key)
		if err != nil {
			return found{}, err
		}
		if other == (id{}) || other == a.id {
			continue
		}
		if f, err := a.accept(txn, other); f != (found{}) || err != nil {
			return f, err
		}
	}
	if a.page.Words < MinWords {
		return found{}, nil
	}
	return a.findNear(txn)
}

// accept fills in the match if another page is still as it was indexed.
func (a *adding) accept(txn *badger.Txn, other id) (found, error) {
	r, err := getRecord(txn, other)
	if r == nil || err != nil {
		return found{}, err
	}
	kind, res := compare(&a.page, &r.page, a.x.opts.Threshold)
	if kind == New || res < a.match.Resemblance {
		return found{}, nil
	}
	a.match.Kind, a.match.URL, a.match.Resemblance = kind, r.url, res
	a.match.SameLinks = sameLinks(&a.page, &r.page)
	return found{other, r.url}, nil
}

func sameLinks(p, other *Page) bool { return p.Links != 0 && p.Links == other.Links }

func compare(p, other *Page, threshold float64) (Kind, float64) {
	near, r := p.Near(other, threshold)
	switch {
	case p.Bytes == other.Bytes:
		return SameByte, 1
	case !near || p.Words == 0: // pages without words, as those that scripts fill, need not be alike
		return New, 0
	case p.Text == other.Text:
		return SameText, 1
	}
	return Near, r
}

// findNear returns, of the pages that share a super-shingle with this one, the one that resembles
// it most.
func (a *adding) findNear(txn *badger.Txn) (best found, err error) {
	const most = 64 // candidates; more than that share the same template
	seen := map[id]bool{a.id: true}
	it := keysOf(txn, nil)
	defer it.Close()
	for _, prefix := range a.x.bands(&a.page) {
		for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
			other := idOf(bytes.TrimPrefix(it.Item().Key(), prefix))
			if seen[other] {
				continue
			}
			if seen[other] = true; len(seen) > most {
				return best, nil
			}
			f, err := a.accept(txn, other)
			if err != nil {
				return found{}, err
			}
			if f != (found{}) {
				best = f
			}
		}
	}
	return best, nil
}

// index makes the page available for comparison with others.
func (a *adding) index(txn *badger.Txn) error {
	for _, key := range a.x.prints(&a.page) {
		if err := txn.Set(key, a.id[:]); err != nil {
			return err
		}
	}
	for _, prefix := range a.x.bands(&a.page) {
		if err := txn.Set(append(prefix, a.id[:]...), nil); err != nil {
			return err
		}
	}
	return nil
}
