// This file keeps the timed blocks that were read last: when memory is short the
// records of one are wanted one by one, soon after each other.

package spill

import "sync"

const (
	timedKept    = 32 // blocks
	timedKeptRaw = 64 << 10
)

// timedCache holds decompressed timed blocks. They are not changed any more.
//
// The zero value is empty. Safe for concurrent use.
type timedCache struct {
	mu    sync.Mutex
	at    map[uint32][]byte
	order [timedKept]uint32 // of their coming, around next
	next  int
	held  int64 // bytes
}

func (c *timedCache) get(block uint32) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[block]
}

// put keeps raw, if it is not large.
func (c *timedCache) put(block uint32, raw []byte) {
	if cap(raw) > timedKeptRaw {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at = map[uint32][]byte{}
	}
	if c.at[block] != nil {
		return
	}
	c.held += int64(cap(raw) - cap(c.at[c.order[c.next]]))
	delete(c.at, c.order[c.next])
	c.at[block] = raw
	c.order[c.next] = block
	c.next = (c.next + 1) % timedKept
}

func (c *timedCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.held = nil, 0
}

func (c *timedCache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}
