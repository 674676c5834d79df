// This file keeps the blocks that were read last, decompressed: hosts whose turns
// follow each other have their records in the same block.

package spill

import "sync"

const (
	blocksKept   = 128      // blocks
	blockKeepRaw = 64 << 10 // bytes of one; larger ones are not kept
)

// blockCache holds decompressed blocks, each in the slot that its number tells.
// Blocks are not changed once they are written, and their numbers not used again.
//
// The zero value is empty. Safe for concurrent use.
type blockCache struct {
	mu    sync.Mutex // never held while a block is read
	slots [blocksKept]*openBlock
	spare []*openBlock // nobody uses them
	held  int64        // bytes of all in slots and spare
}

// openBlock is a block that was verified, and memory for the next.
type openBlock struct {
	block    uint32
	users    int // callers, and the slot
	dir, raw []byte
}

func (b *openBlock) size() int64 { return int64(cap(b.dir) + cap(b.raw)) }

// use calls fn with a block, which fill reads if it is not there. fill may use the
// memory of what it is given, and fn must not keep any.
func (c *blockCache) use(block uint32, fill func(*openBlock) error, fn func(*openBlock) error) error {
	b := c.take(block)
	if b.block != block {
		if err := fill(b); err != nil {
			c.release(b)
			return err
		}
		b.block = block
		c.keep(b)
	}
	err := fn(b)
	c.release(b)
	return err
}

// take returns the block, or memory for it.
func (c *blockCache) take(block uint32) *openBlock {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.slots[block%blocksKept]
	if n := len(c.spare); (b == nil || b.block != block) && n > 0 {
		b = c.spare[n-1]
		c.spare = c.spare[:n-1]
		c.held -= b.size()
		b.block = 0
	} else if b == nil || b.block != block {
		b = &openBlock{}
	}
	b.users++
	return b
}

// keep puts a block that was read into its slot.
func (c *blockCache) keep(b *openBlock) {
	if b.size() > blockKeepRaw {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := &c.slots[b.block%blocksKept]
	old := *slot
	*slot = b
	b.users++
	c.held += b.size()
	if old != nil {
		c.held -= old.size()
		c.leave(old)
	}
}

func (c *blockCache) release(b *openBlock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(b)
}

// leave notes that a block has one user less.
func (c *blockCache) leave(b *openBlock) {
	if b.users--; b.users == 0 && b.size() <= blockKeepRaw && len(c.spare) < blocksKept/4 {
		c.spare = append(c.spare, b)
		c.held += b.size()
	}
}

// bytes is how much memory the cache takes.
func (c *blockCache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

func (c *blockCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, b := range c.slots {
		if b != nil {
			c.slots[i] = nil
			c.held -= b.size()
			c.leave(b)
		}
	}
}
