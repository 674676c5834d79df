// This file keeps connections for the next request to the same host, as far as that is polite: no more
// than were in use at once, idle, for a short time, and only after an answer that was read to its end.

package fetch

import (
	"container/list"
	"slices"
	"sync"
	"time"
)

// keeper holds idle connections. The zero value is ready for use.
type keeper struct {
	mu     sync.Mutex
	idle   map[connKey][]*list.Element // guarded by mu; of *conn, last used last; no empty lists
	order  list.List                   // guarded by mu; last used first
	spoilt map[connKey]struct{}        // guarded by mu; servers that close kept connections when used
	older  map[string]struct{}         // guarded by mu; hosts and ports where HTTP/2 failed
}

const spoiltAtMost = 1 << 12

// avoidHTTP2 makes the next connections with a host and port speak HTTP/1.1.
func (k *keeper) avoidHTTP2(address string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.older == nil || len(k.older) >= spoiltAtMost {
		k.older = map[string]struct{}{}
	}
	k.older[address] = struct{}{}
}

func (k *keeper) avoidsHTTP2(address string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, avoids := k.older[address]
	return avoids
}

// take returns the most recently used live connection for a key; nil if there is none.
func (k *keeper) take(key connKey) *conn {
	for {
		k.mu.Lock()
		all := k.idle[key]
		if len(all) == 0 {
			k.mu.Unlock()
			return nil
		}
		c := k.removeLocked(all[len(all)-1])
		k.mu.Unlock()
		if c.timer.Stop() && c.usable() {
			return c
		}
		c.close()
	}
}

// put keeps a connection for a while, or closes it.
func (k *keeper) put(c *conn, o *Options) {
	if o.NoKeepAlive || !c.usable() {
		c.close()
		return
	}
	var old []*conn
	k.mu.Lock()
	_, spoilt := k.spoilt[c.key]
	switch {
	case spoilt:
		old = append(old, c)
	default:
		if k.idle == nil {
			k.idle = map[connKey][]*list.Element{}
		}
		for k.order.Len() >= o.MaxIdle {
			old = append(old, k.removeLocked(k.order.Back()))
		}
		e := k.order.PushFront(c)
		k.idle[c.key] = append(k.idle[c.key], e)
		c.wire.setLimit(o.KeepAlive + time.Second)
		c.timer = time.AfterFunc(o.KeepAlive, func() { k.expire(e, c) })
	}
	k.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// expire closes a connection that was idle for long enough, unless it is in use.
func (k *keeper) expire(e *list.Element, c *conn) {
	k.mu.Lock()
	if slices.Contains(k.idle[c.key], e) {
		k.removeLocked(e)
	}
	k.mu.Unlock()
	c.close() // take found it expired otherwise
}

// spoil records that connections to a host are not worth keeping, and closes the kept ones.
func (k *keeper) spoil(key connKey) {
	var old []*conn
	defer func() { closeIdle(old) }()
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.idle[key]) > 0 {
		old = append(old, k.removeLocked(k.idle[key][0]))
	}
	if k.spoilt == nil || len(k.spoilt) >= spoiltAtMost {
		k.spoilt = map[connKey]struct{}{}
	}
	k.spoilt[key] = struct{}{}
}

// closeAll closes all idle connections.
func (k *keeper) closeAll() {
	k.mu.Lock()
	var all []*conn
	for k.order.Len() > 0 {
		all = append(all, k.removeLocked(k.order.Back()))
	}
	k.mu.Unlock()
	closeIdle(all)
}

func closeIdle(all []*conn) {
	for _, c := range all {
		c.timer.Stop()
		c.close()
	}
}

func (k *keeper) removeLocked(e *list.Element) *conn {
	c := k.order.Remove(e).(*conn)
	rest := slices.DeleteFunc(k.idle[c.key], func(x *list.Element) bool { return x == e })
	if k.idle[c.key] = rest; len(rest) == 0 {
		delete(k.idle, c.key)
	}
	return c
}
