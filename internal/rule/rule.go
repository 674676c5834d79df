// Package rule stores the settings of hosts, domains and all hosts. It owns a tree of values under
// reversed names, so that a domain is one range. Readers take no lock: a change replaces the tree,
// and callers make one change at a time.
package rule

import (
	"bytes"
	"iter"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/google/btree"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// All is the key of the value for all hosts.
const All = ""

const (
	hostEnd   = '!' // ends the keys of hosts; it sorts before the dot
	domainEnd = '.'
)

// Host is the key of one host's value.
func Host(name string) string { return hostkey.Reversed(name) + string(hostEnd) }

// Domain returns the key of the value for a name and all hosts under it: a prefix of the reversed
// names of those hosts.
func Domain(name string) string { return hostkey.Reversed(name) + string(domainEnd) }

// Parse is the inverse of Host and Domain; it returns false for other keys. The key must not be
// that of All.
func Parse(key string) (name string, domain, ok bool) {
	end := key[len(key)-1]
	return hostkey.Reversed(key[:len(key)-1]), end == domainEnd, end == domainEnd || end == hostEnd
}

// Fields are the fields that a value sets, one bit each.
type Fields uint16

// Table holds the values in force. The zero value is empty.
type Table[V any] struct {
	now    atomic.Pointer[Values[V]]
	probes sync.Pool // of *probe[V]
}

// Values are the values in force at one moment. They never change. Nil is empty.
type Values[V any] struct {
	table *Table[V]
	tree  *btree.BTreeG[*entry[V]]
	n     [16]int // how many set each field
	any   Fields  // fields that at least one value sets
}

type entry[V any] struct {
	key    string
	fields Fields
	value  *V
}

// probe holds buffers that a look-up would otherwise allocate.
type probe[V any] struct {
	pivot entry[V]
	buf   [260]byte
}

func (t *Table[V]) probe() *probe[V] {
	if p, ok := t.probes.Get().(*probe[V]); ok {
		return p
	}
	return new(probe[V])
}

// Load returns the current values.
func (t *Table[V]) Load() *Values[V] { return t.now.Load() }

// Get returns the value of a key, or nil.
func (t *Table[V]) Get(key string) *V {
	x := t.now.Load()
	if x == nil {
		return nil
	}
	p := t.probe()
	defer t.probes.Put(p)
	p.pivot.key = key
	if e, ok := x.tree.Get(&p.pivot); ok {
		return e.value
	}
	return nil
}

// Put replaces the value with the same key, and returns the old one. A value that sets no fields
// only removes it.
func (t *Table[V]) Put(key string, value *V, fields Fields) (old *V) {
	x := &Values[V]{table: t}
	if was := t.now.Load(); was != nil {
		x.tree, x.n = was.tree.Clone(), was.n
	} else {
		x.tree = btree.NewG(32, func(a, b *entry[V]) bool { return a.key < b.key })
	}
	e := &entry[V]{key, fields, value}
	var gone *entry[V]
	if fields == 0 {
		gone, _ = x.tree.Delete(e)
	} else {
		gone, _ = x.tree.ReplaceOrInsert(e)
	}
	x.count(fields, 1)
	if gone != nil {
		x.count(gone.fields, -1)
		old = gone.value
	}
	t.now.Store(x)
	return old
}

func (x *Values[V]) count(f Fields, n int) {
	x.any = 0
	for i := range x.n {
		if f>>i&1 != 0 {
			x.n[i] += n
		}
		if x.n[i] > 0 {
			x.any |= 1 << i
		}
	}
}

// Set reports whether any value sets one of the fields: if not, no look-up is needed.
func (x *Values[V]) Set(f Fields) bool { return x != nil && x.any&f != 0 }

// Len is how many values there are.
func (x *Values[V]) Len() int {
	if x == nil {
		return 0
	}
	return x.tree.Len()
}

// All yields the values in the order of their keys: first that for all hosts, then those of domains
// and hosts in domain order.
func (x *Values[V]) All() iter.Seq2[string, *V] {
	return func(yield func(string, *V) bool) {
		if x != nil {
			x.tree.Ascend(func(e *entry[V]) bool { return yield(e.key, e.value) })
		}
	}
}

// Visit calls fn with the values that apply to a host, the most specific first, until fn returns false.
func (x *Values[V]) Visit(host []byte, fn func(*V) bool) {
	x.visit(host, func(e *entry[V]) bool { return fn(e.value) })
}

// First returns the most specific value for a host that sets one of the fields, or nil.
func (x *Values[V]) First(host []byte, f Fields) (found *V) {
	if !x.Set(f) {
		return nil
	}
	x.visit(host, func(e *entry[V]) bool {
		if e.fields&f != 0 {
			found = e.value
		}
		return found == nil
	})
	return found
}

func (x *Values[V]) visit(host []byte, fn func(*entry[V]) bool) {
	if x == nil {
		return
	}
	p := x.table.probe()
	defer x.table.probes.Put(p)
	name := hostkey.AppendReversed(p.buf[:0], host)
	found := func(n int, end byte) bool { // searches the value of name[:n] and end
		p.buf[n] = end
		p.pivot.key = unsafe.String(&p.buf[0], n+1)
		e, ok := x.tree.Get(&p.pivot)
		return !ok || fn(e)
	}
	if !found(len(name), hostEnd) {
		return
	}
	for n := len(name); n > 0; n = bytes.LastIndexByte(name[:n], '.') {
		if !found(n, domainEnd) {
			return
		}
	}
	p.pivot.key = All
	if e, ok := x.tree.Get(&p.pivot); ok {
		fn(e)
	}
}

// Check calls bad with wrong counts; fields returns what a value sets.
func (x *Values[V]) Check(bad func(string, ...any), fields func(*V) Fields) {
	var want Values[V]
	for key, v := range x.All() {
		if fields(v) == 0 {
			bad("F3: what lies under %q sets nothing", key)
		}
		want.count(fields(v), 1)
	}
	if x != nil && (want.n != x.n || want.any != x.any) {
		bad("F6: rules set %v settings, counted %v", want.n, x.n)
	}
}
