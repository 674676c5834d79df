// This file keeps what must be known of each block on disk that still holds an
// unfinished record: how many it has, and which are finished.
//
// Blocks are numbered in the order in which they are made, and mostly die in it,
// too. So they lie in pages by number, and a page goes with its last block.

package frontier

import (
	"bytes"
	"encoding/binary"
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

// block is a stored block. Its records that are not finished are live. The zero
// block is none.
type block struct {
	dead  arena.Ref // bitmap of the finished positions; 0: none is
	state uint32    // twice the number of live records; odd while it is in core.dirty
}

func (b *block) live() int     { return int(b.state / 2) }
func (b *block) addLive(n int) { b.state += uint32(2 * n) }

// dirty tells that finished positions are new since the last checkpoint.
func (b *block) dirty() bool { return b.state&1 != 0 }
func (b *block) setDirty()   { b.state |= 1 }
func (b *block) setClean()   { b.state &^= 1 }

const blockPageSize = 2048

// blockTable finds blocks by their numbers.
//
// The zero value is empty. Not safe for concurrent use.
type blockTable struct {
	pages map[uint32]*blockPage // by number / blockPageSize
}

type blockPage struct {
	blocks offheap.Array[block]
	n      int // that are not zero
}

// at returns a block, or nil if it is not in the table.
func (t *blockTable) at(id uint32) *block {
	p := t.pages[id/blockPageSize]
	if p == nil {
		return nil
	}
	b := &p.blocks.Items[id%blockPageSize]
	if *b == (block{}) {
		return nil
	}
	return b
}

// add returns a block that may be new. The caller makes it something else than
// zero.
func (t *blockTable) add(id uint32) *block {
	p := t.pages[id/blockPageSize]
	if p == nil {
		if t.pages == nil {
			t.pages = map[uint32]*blockPage{}
		}
		p = &blockPage{blocks: offheap.Make[block](blockPageSize)}
		t.pages[id/blockPageSize] = p
	}
	b := &p.blocks.Items[id%blockPageSize]
	if *b == (block{}) {
		p.n++
	}
	return b
}

// remove takes out a block, which is in the table.
func (t *blockTable) remove(id uint32) {
	p := t.pages[id/blockPageSize]
	p.blocks.Items[id%blockPageSize] = block{}
	if p.n--; p.n == 0 {
		p.blocks.Free()
		delete(t.pages, id/blockPageSize)
	}
}

// all yields the blocks in no order.
func (t *blockTable) all() iter.Seq2[uint32, *block] {
	return func(yield func(uint32, *block) bool) {
		for k, p := range t.pages {
			for i := range p.blocks.Items {
				if b := &p.blocks.Items[i]; *b != (block{}) && !yield(k*blockPageSize+uint32(i), b) {
					return
				}
			}
		}
	}
}

// size returns how many bytes the table takes, bitmaps excepted.
func (t *blockTable) size() int64 { return int64(len(t.pages)) * (blockPageSize*8 + 64) }

// deadHeader is the size of a bitmap's header: 2 bytes, how many it has.
const deadHeader = 2

// deadBits returns the bitmap of a block's finished positions, perhaps shorter or
// longer than the block. It is valid until the next call that stores anything.
func (c *core) deadBits(b *block) []byte {
	if b.dead == 0 {
		return nil
	}
	mem := c.names.Bytes(b.dead)
	return mem[deadHeader:][:binary.LittleEndian.Uint16(mem)]
}

// copyDead returns a copy of a block's bitmap, up to the last finished position.
func (c *core) copyDead(b *block) []byte {
	return bytes.Clone(bytes.TrimRight(c.deadBits(b), "\x00"))
}

// isDead reports whether the record at position i is finished.
func (c *core) isDead(b *block, i int) bool {
	bits := c.deadBits(b)
	return i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0
}

// setDead marks position i as finished.
func (c *core) setDead(b *block, i int) {
	bits := c.deadBits(b)
	if i/8 >= len(bits) {
		bits = c.growDead(b, i/8+1)
	}
	bits[i/8] |= 1 << (i % 8)
}

// growDead gives a block a bitmap of at least n bytes.
func (c *core) growDead(b *block, n int) []byte {
	old := c.deadBits(b)
	size := int(arena.Cost(deadHeader + max(n, 2*len(old))))
	ref, mem := c.names.Alloc(size)
	clear(mem)
	binary.LittleEndian.PutUint16(mem, uint16(size-deadHeader))
	copy(mem[deadHeader:], old)
	c.freeDead(b)
	b.dead = ref
	return mem[deadHeader:]
}

// giveDead notes the finished positions of a block that Recover found. Its parts
// come later.
func (c *core) giveDead(id uint32, bits []byte) {
	if bits = bytes.TrimRight(bits, "\x00"); len(bits) > 0 {
		copy(c.growDead(c.blocks.add(id), len(bits)), bits)
	}
}

func (c *core) freeDead(b *block) {
	if b.dead != 0 {
		c.names.Free(b.dead, deadHeader+len(c.deadBits(b)))
		b.dead = 0
	}
}

// forgetBlock frees what is known of a block.
func (c *core) forgetBlock(id uint32) {
	c.freeDead(c.blocks.at(id))
	c.blocks.remove(id)
}
