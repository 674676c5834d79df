// This file caches the most recently read blocks, decompressed: hosts with consecutive turns have
// their records in the same block.

package blocks

import (
	"errors"
	"math"
	"sync"

	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	kept    = 128      // blocks
	keepRaw = 64 << 10 // bytes of one; larger ones are not kept
)

// Cache holds decompressed blocks, each in a slot chosen by its number. Blocks are never changed
// after they are written, and their numbers are not reused.
//
// The zero value is empty. Safe for concurrent use.
type Cache struct {
	mu    sync.Mutex // never held while a block is read
	slots [kept]*Block
	spare []*Block // unused
	held  int64    // bytes of all in slots and spare
}

// Block is a block that was verified, and memory for the next.
type Block struct {
	block    uint32
	users    int // callers, and the slot
	timed    bool
	dir, raw []byte
}

func (b *Block) size() int64 { return int64(cap(b.dir) + cap(b.raw)) }

// Use calls fn with a block; fill reads it if it is not cached. fill may reuse the memory of its
// argument, and fn must not keep any.
func (c *Cache) Use(block uint32, fill func(*Block) error, fn func(*Block) error) error {
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
func (c *Cache) take(block uint32) *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.slots[block%kept]
	if n := len(c.spare); (b == nil || b.block != block) && n > 0 {
		b = c.spare[n-1]
		c.spare = c.spare[:n-1]
		c.held -= b.size()
		b.block = 0
	} else if b == nil || b.block != block {
		b = &Block{}
	}
	b.users++
	return b
}

// keep puts a block that was read into its slot.
func (c *Cache) keep(b *Block) {
	if b.size() > keepRaw {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	slot := &c.slots[b.block%kept]
	old := *slot
	*slot = b
	b.users++
	c.held += b.size()
	if old != nil {
		c.held -= old.size()
		c.leave(old)
	}
}

func (c *Cache) release(b *Block) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(b)
}

// leave records that a user of a block has finished.
func (c *Cache) leave(b *Block) {
	if b.users--; b.users == 0 && b.size() <= keepRaw && len(c.spare) < kept/4 {
		c.spare = append(c.spare, b)
		c.held += b.size()
	}
}

// Bytes returns the memory of the cache in bytes.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// Clear removes the blocks that are not in use.
func (c *Cache) Clear() {
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

// Fill verifies and decompresses a block, into the memory of b if it fits.
func (b *Block) Fill(key, value []byte, timed bool) (err error) {
	var dir, body []byte
	if timed {
		b.raw, err = OpenTimed(b.raw, key, value)
	} else if dir, body, err = split(key, value); err == nil {
		b.raw, err = wire.Inflate(b.raw, body, rawLimit)
	}
	b.dir, b.timed = append(b.dir[:0], dir...), timed
	return err
}

var (
	errFound  = errors.New("found") // ends a walk through a directory
	errNoPart = errors.New("block has no such part")
)

// Records calls fn with the wanted records of a part.
func (b *Block) Records(p storage.Part, want uint32, fn func(i int, r storage.Record)) error {
	if b.timed {
		return b.timedRecords(p, want, fn)
	}
	var e entry
	match := func(first uint16, count uint8) bool { return first == p.First && count == p.Count }
	switch err := readDirectory(b.dir, match, func(found entry) error { e = found; return errFound }); err {
	case errFound:
	case nil:
		return errNoPart
	default:
		return err
	}
	return readRecords(b.raw, e, want, func(i int, r storage.Record) error {
		fn(i, r)
		return nil
	})
}

func (b *Block) timedRecords(p storage.Part, want uint32, fn func(i int, r storage.Record)) error {
	found := 0
	err := ReadTimed(b.raw, false, func(pos int, r storage.TimedRecord) bool {
		i := pos - int(p.First)
		if i >= 0 && i < int(p.Count) {
			found++
			if want&(1<<i) != 0 {
				fn(i, r.Record)
			}
		}
		return i+1 < int(p.Count)
	})
	if err == nil && found < int(p.Count) {
		err = errNoPart
	}
	return err
}

// Each calls fn with all records of a block that is not timed, in order. fn must not keep its
// arguments.
func (b *Block) Each(fn func(pos int, r *storage.TimedRecord) error) error {
	var t storage.TimedRecord
	return readDirectory(b.dir, nil, func(e entry) error {
		t.Queue = e.queue
		return readRecords(b.raw, e, math.MaxUint32, func(i int, r storage.Record) error {
			t.Record = r
			return fn(int(e.first)+i, &t)
		})
	})
}

// Parts verifies a block and calls fn with its parts, in order.
func Parts(key, value []byte, fn func(q storage.Queue, first uint16, count uint8) error) error {
	dir, _, err := split(key, value)
	if err != nil {
		return err
	}
	return readDirectory(dir, nil, func(e entry) error { return fn(e.queue, e.first, e.count) })
}
