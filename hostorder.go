// This file orders the hosts in memory by domain: their names with the labels
// reversed, so that the hosts of a domain lie together.
//
// The order costs memory and time for each new host, and only those need it who
// look at many hosts. So it is made when it is first asked for, in steps, and
// kept from then on.

package frontier

import (
	"bytes"
	"math"
	"net/netip"
	"strings"
	"unsafe"

	"github.com/google/btree"
)

const (
	orderHostsAtOnce = 256 // hosts that are put in order under one lock
	sweepAtOnce      = 32  // hosts that a sweep visits under one lock
)

// hostOrder is a B-tree of host numbers. Of the core's hosts it has those up to a
// number that grows until all are in.
//
// The zero value is an order that nobody has asked for.
type hostOrder struct {
	tree  *btree.BTreeG[uint32]
	upTo  uint32 // hosts up to this number are in the tree
	pivot []byte // key that number 0 stands for
}

// complete reports whether every host in memory is in the tree.
func (o *hostOrder) complete() bool { return o.upTo == math.MaxUint32 }

// size is how many bytes the tree takes, about: its nodes are three quarters full.
func (o *hostOrder) size() int64 {
	if o.tree == nil {
		return 0
	}
	return int64(o.tree.Len()) * 6
}

// orderHosts makes the order if nobody has before.
func (f *Frontier) orderHosts() {
	for done := false; !done; {
		f.mu.Lock()
		done = f.closed || f.core.orderSome(orderHostsAtOnce)
		f.mu.Unlock()
	}
}

// orderSome puts some more hosts in order, and reports whether all are.
func (c *core) orderSome(n int) bool {
	o := &c.order
	if o.tree == nil {
		o.tree = btree.NewG(64, c.hostBefore)
	}
	for ; n > 0 && o.upTo < c.hosts.top; n-- {
		o.upTo++
		if c.hosts.at(o.upTo).nameLen > 0 {
			o.tree.ReplaceOrInsert(o.upTo)
		}
	}
	if o.upTo >= c.hosts.top {
		o.upTo = math.MaxUint32
	}
	return o.complete()
}

// hostBefore compares two hosts by their keys; number 0 is the pivot.
func (c *core) hostBefore(a, b uint32) bool {
	var x, y [256]byte
	return bytes.Compare(c.orderKey(x[:0], a), c.orderKey(y[:0], b)) < 0
}

func (c *core) orderKey(dst []byte, id uint32) []byte {
	if id == 0 {
		return c.order.pivot
	}
	return appendReversed(dst, c.name(c.hosts.at(id)))
}

// ordered notes that a host came into memory, unordered that it leaves.
func (c *core) ordered(id uint32) {
	if c.order.tree != nil && id <= c.order.upTo {
		c.order.tree.ReplaceOrInsert(id)
	}
}

func (c *core) unordered(id uint32) {
	if c.order.tree != nil && id <= c.order.upTo {
		c.order.tree.Delete(id)
	}
}

// hostsAfter appends up to n hosts whose keys begin with prefix and come after
// key. All hosts must be in order.
func (c *core) hostsAfter(dst []uint32, key, prefix string, n int) []uint32 {
	return c.inOrder(c.order.tree, dst, key, prefix, n)
}

// inOrder is hostsAfter for any tree of hosts.
func (c *core) inOrder(t *btree.BTreeG[uint32], dst []uint32, key, prefix string, n int) []uint32 {
	from := max(key, prefix)
	c.order.pivot = append(c.order.pivot[:0], from...)
	t.AscendGreaterOrEqual(0, func(id uint32) bool {
		var buf [256]byte
		switch k := appendReversed(buf[:0], c.name(c.hosts.at(id))); {
		case n == 0 || !bytes.HasPrefix(k, bytesOf(prefix)):
			return false
		case string(k) > key:
			dst = append(dst, id)
			n--
		}
		return true
	})
	return dst
}

// hostsIn appends up to n hosts of a scope whose keys come after key, in order.
func (c *core) hostsIn(dst []uint32, s Scope, key string, n int) []uint32 {
	if s == (Scope{}) {
		return c.hostsAfter(dst, key, "", n)
	}
	if own := reversed(s.name); key < own {
		if id := c.lookup(c.hash(bytesOf(s.name)), s.name); id != 0 {
			dst = append(dst, id)
			n--
		}
	}
	if s.domain && n > 0 {
		dst = c.hostsAfter(dst, key, s.key(), n)
	}
	return dst
}

// contains reports whether a host is in the scope.
func (s Scope) contains(host string) bool {
	return s == (Scope{}) || host == s.name || s.domain && strings.HasPrefix(reversed(host), s.key())
}

// sweepHosts calls fn with the hosts in memory of a scope, in domain order, a few
// under one lock. Hosts that come or go meanwhile may be missed. fn may change
// what is known of the host, but not end it; it returns false to see the same
// host again under another lock.
func (f *Frontier) sweepHosts(s Scope, fn func(id uint32, now int64) (done bool)) error {
	f.orderHosts()
	var ids []uint32
	for key, more := "", true; more; {
		if err := f.lockOpen(); err != nil {
			return err
		}
		c := f.core
		ids = c.hostsIn(ids[:0], s, key, sweepAtOnce)
		more = len(ids) == sweepAtOnce
		for _, id := range ids {
			at := string(c.orderKey(nil, id)) // fn may let it go
			if !fn(id, f.last) {
				more = true
				break
			}
			key = at
		}
		f.dispatchLocked()
		f.mu.Unlock()
	}
	return nil
}

// appendReversed appends a name with its labels reversed: c.b.a for a.b.c.
// Addresses have no labels and stay as they are.
func appendReversed(dst, name []byte) []byte {
	if len(name) > 0 && mayBeAddress(name) {
		if _, err := netip.ParseAddr(unsafe.String(&name[0], len(name))); err == nil {
			return append(dst, name...)
		}
	}
	for {
		dot := bytes.LastIndexByte(name, '.')
		dst = append(dst, name[dot+1:]...)
		if dot < 0 {
			return dst
		}
		dst = append(dst, '.')
		name = name[:dot]
	}
}

// mayBeAddress spares names the parsing of addresses.
func mayBeAddress(name []byte) bool {
	last := name[len(name)-1]
	return last >= '0' && last <= '9' || bytes.IndexByte(name, ':') >= 0
}

// reversed is appendReversed for strings.
func reversed(name string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	var buf [256]byte
	return string(appendReversed(buf[:0], bytesOf(name)))
}
