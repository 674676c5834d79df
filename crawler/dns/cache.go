// This file caches answers for as long as they are valid.
//
// It does not depend on servers and takes the time as an argument.

package dns

import (
	"container/list"
	"net"
	"net/netip"
	"time"
)

// maxAddrs is how many addresses of a name are remembered.
const maxAddrs = 16

// answer is what is known about a name.
type answer struct {
	addrs []netip.Addr // empty: err says why
	err   error        // why there are no addresses
	ttl   time.Duration
}

// record is an answer in the cache.
type record struct {
	name    string
	answer  answer
	got     time.Time
	expires time.Time
}

// cache holds records, and evicts the least recently used.
//
// Invariant, verified by check: every record is in the map and in the list, and there are at most
// limit of them. Not safe for concurrent use.
type cache struct {
	limit int
	names map[string]*list.Element // of *record
	used  list.List                // last used first
}

// get returns the record of a name, expired or not; nil if there is none.
func (c *cache) get(name string) *record {
	e := c.names[name]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*record)
}

func (c *cache) put(name string, a answer, now time.Time) {
	r := &record{name: name, answer: a, got: now, expires: now.Add(a.ttl)}
	if e := c.names[name]; e != nil {
		e.Value = r
		c.used.MoveToFront(e)
		return
	}
	for c.used.Len() >= c.limit {
		old := c.used.Remove(c.used.Back()).(*record)
		delete(c.names, old.name)
	}
	if c.names == nil {
		c.names = map[string]*list.Element{}
	}
	c.names[name] = c.used.PushFront(r)
}

// notFound returns the error for a name without an address.
func notFound(name, why string) error {
	return &net.DNSError{Err: why, Name: name, IsNotFound: true}
}
