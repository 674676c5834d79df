// This file stores the data about each block on disk with an unfinished record: how many records it
// has, and which are finished.
//
// Blocks are numbered in the order in which they are made, and mostly end in that order, too. So
// they are stored in pages by number, and a page is freed with its last block.

package block

import (
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

// block is a stored block. Its records that are not finished are live. The zero block is none.
type block struct {
	dead  arena.Ref // bitmap of the finished positions; 0: none is
	state uint32    // twice the number of live records; odd while it is in Table.dirty
}

func (b *block) live() int     { return int(b.state / 2) }
func (b *block) addLive(n int) { b.state += uint32(2 * n) }

// dirty reports whether finished positions are new since the last checkpoint.
func (b *block) dirty() bool { return b.state&1 != 0 }
func (b *block) setDirty()   { b.state |= 1 }
func (b *block) setClean()   { b.state &^= 1 }

const pageSize = 2048

// pages finds blocks by their numbers.
//
// The zero value is empty. Not safe for concurrent use.
type pages struct {
	pages map[uint32]*page // by number / pageSize
}

type page struct {
	blocks offheap.Array[block]
	n      int // that are not zero
}

// at returns a block, or nil if it is not in the table.
func (t *pages) at(id uint32) *block {
	p := t.pages[id/pageSize]
	if p == nil {
		return nil
	}
	b := &p.blocks.Items[id%pageSize]
	if *b == (block{}) {
		return nil
	}
	return b
}

// add returns a block, which may be new. The caller must make it nonzero.
func (t *pages) add(id uint32) *block {
	p := t.pages[id/pageSize]
	if p == nil {
		if t.pages == nil {
			t.pages = map[uint32]*page{}
		}
		p = &page{blocks: offheap.Make[block](pageSize)}
		t.pages[id/pageSize] = p
	}
	b := &p.blocks.Items[id%pageSize]
	if *b == (block{}) {
		p.n++
	}
	return b
}

// remove removes a block, which must be in the table.
func (t *pages) remove(id uint32) {
	p := t.pages[id/pageSize]
	p.blocks.Items[id%pageSize] = block{}
	if p.n--; p.n == 0 {
		p.blocks.Free()
		delete(t.pages, id/pageSize)
	}
}

// all yields the blocks in no order.
func (t *pages) all() iter.Seq2[uint32, *block] {
	return func(yield func(uint32, *block) bool) {
		for k, p := range t.pages {
			for i := range p.blocks.Items {
				if b := &p.blocks.Items[i]; *b != (block{}) && !yield(k*pageSize+uint32(i), b) {
					return
				}
			}
		}
	}
}

// size returns the memory of the table in bytes, without bitmaps.
func (t *pages) size() int64 { return int64(len(t.pages)) * (pageSize*8 + 64) }
