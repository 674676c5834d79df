// Package tombstone finds the deletions that apply to a URL. A tombstone means that all records of
// a scope or crawl up to a sequence number are dead. A Set owns the tombstones in force, by target.
// The caller decides when a tombstone is added and removed, and removes the dead records. Forgotten
// owns the numbers of targets that were forgotten, and has a lock for those who read one.
//
// The rest has no lock: callers hold the frontier's.
package tombstone

import (
	"bytes"
	"strings"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Tombstone is one deletion. Its target does not change while it is in a Set.
type Tombstone struct {
	row.Deletion
	Removed int64 // URLs that were found dead

	by *Tombstone // of a number of Forgotten: the deletion that made it; nil: it was recovered
}

// OfHost reports whether the tombstone concerns one host only.
func (t *Tombstone) OfHost() bool { return !t.Scope.Domain && t.Scope.Named }

// Contains reports whether the tombstone concerns a host's URLs of a crawl.
func (t *Tombstone) Contains(host []byte, crawl uint32) bool {
	return t.ContainsHost(host) && (!t.OfCrawl || t.Crawl == crawl)
}

// ContainsHost reports whether the tombstone concerns a host's URLs of some crawl.
func (t *Tombstone) ContainsHost(host []byte) bool {
	s := &t.Scope
	switch {
	case !s.Named || string(host) == s.Name:
		return true
	case !s.Domain || !strings.HasSuffix(string(host), s.Name) && !hostkey.MayBeAddress(host):
		return false // most are not under the domain, and need not be reversed
	}
	var buf [256]byte
	return bytes.HasPrefix(hostkey.AppendReversed(buf[:0], host), []byte(domainKey(s.Name)))
}

// domainKey is the prefix of the reversed names of all hosts of a domain, if each of them
// ends with a dot.
func domainKey(name string) string { return hostkey.Reversed(name) + "." }

// Dead is the combined effect of all tombstones of a Set on a host's URLs of one crawl: records up
// to Seq are dead, and parts of blocks up to Block. The zero value means that none is.
type Dead struct {
	Seq   uint64
	Block uint32
	By    *Tombstone // the youngest of them
	n     int        // tombstones of the same target
}

func (d *Dead) join(x *Dead) {
	if x != nil && x.Seq > d.Seq {
		*d = *x
	}
}

// target is what a tombstone applies to.
type target struct {
	kind  kind
	name  string // host, or domainKey of a domain
	crawl uint32 // of which it applies to, if it is of a crawl
}

type kind uint8

const (
	all kind = iota
	ofDomain
	ofHost
	ofCrawl
	ofDomainInCrawl
	ofHostInCrawl
)

func (t *Tombstone) target() target {
	at := target{kind: all}
	switch {
	case t.Scope.Domain:
		at = target{kind: ofDomain, name: domainKey(t.Scope.Name)}
	case t.Scope.Named:
		at = target{kind: ofHost, name: t.Scope.Name}
	}
	if t.OfCrawl {
		at.kind, at.crawl = at.kind+ofCrawl, t.Crawl
	}
	return at
}

// Set holds tombstones by target. Of several with the same target the youngest applies, and still
// does if it is removed before the others. The zero value is empty.
type Set struct {
	dead    map[target]*Dead
	domains int // targets that are domains, of a crawl or not
	inCrawl int // targets that are domains or hosts, of a crawl
	n       int
}

// Len returns the number of tombstones in the set.
func (s *Set) Len() int { return s.n }

// Add adds a tombstone, which must have a sequence number, to the set.
func (s *Set) Add(t *Tombstone) {
	if s.dead == nil {
		s.dead = map[target]*Dead{}
	}
	at := t.target()
	d := s.dead[at]
	if d == nil {
		d = &Dead{}
		s.dead[at] = d
		s.count(at, 1)
	}
	if t.Seq > d.Seq {
		d.Seq, d.Block, d.By = t.Seq, t.Block, t
	}
	d.n++
	s.n++
}

// Remove removes a tombstone from the set.
func (s *Set) Remove(t *Tombstone) {
	at := t.target()
	d := s.dead[at]
	s.n--
	if d.n--; d.n > 0 {
		return
	}
	delete(s.dead, at)
	s.count(at, -1)
}

// replace adds a tombstone, and removes and returns the one of the same target; nil: there was none.
func (s *Set) replace(t *Tombstone) *Tombstone {
	var former *Tombstone
	if d := s.dead[t.target()]; d != nil {
		former = d.By
		s.Remove(former)
	}
	s.Add(t)
	return former
}

// count counts a target that was added, or removed.
func (s *Set) count(at target, n int) {
	if at.kind%ofCrawl == ofDomain {
		s.domains += n
	}
	if at.kind > ofCrawl {
		s.inCrawl += n
	}
}

// HasCrawl reports whether a tombstone concerns all URLs of a crawl, and no others.
func (s *Set) HasCrawl(crawl uint32) bool { return s.dead[target{kind: ofCrawl, crawl: crawl}] != nil }

// Of returns the effect of the tombstones on a host's URLs of a crawl.
func (s *Set) Of(host []byte, crawl uint32) (d Dead) {
	if s.n == 0 {
		return d
	}
	d.join(s.dead[target{kind: all}])
	d.join(s.dead[target{kind: ofCrawl, crawl: crawl}])
	d.join(s.dead[target{kind: ofHost, name: string(host)}])
	if s.inCrawl > 0 {
		d.join(s.dead[target{kind: ofHostInCrawl, name: string(host), crawl: crawl}])
	}
	if s.domains > 0 {
		var buf [256]byte
		key := append(hostkey.AppendReversed(buf[:0], host), '.')
		for i, b := range key {
			if b == '.' {
				d.join(s.dead[target{kind: ofDomain, name: string(key[:i+1])}])
				if s.inCrawl > 0 {
					d.join(s.dead[target{kind: ofDomainInCrawl, name: string(key[:i+1]), crawl: crawl}])
				}
			}
		}
	}
	return d
}
