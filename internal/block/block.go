// Package block tracks which data of the blocks on disk is still needed: how many records of a
// block are unfinished, which records are finished, and which ranges of it wait in which chain.
//
// It owns the table of blocks with their bitmaps, the parts and their chains, and the changes that
// the next commit and the next checkpoint must write. It has no lock: callers hold the frontier's.
package block

import (
	"bytes"
	"encoding/binary"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/slab"
	"github.com/seed-7440039f/frontier/storage"
)

// Table holds the blocks with unfinished records, and their parts.
//
// The zero value is empty. Not safe for concurrent use.
type Table struct {
	blocks  pages
	bitmaps arena.Arena // of finished positions
	parts   slab.Slab[part]
	touched slab.Slab[touchedPart]
	dirty   []uint32 // blocks whose finished positions changed since the last checkpoint
	drops   []uint32 // blocks without a live record, which the store may delete
	last    uint32   // highest number of a block so far
}

// Has reports whether a block has unfinished records and is in the table. A block without parts is
// in the table once Touch or Bury was called for it.
func (t *Table) Has(id uint32) bool { return t.blocks.at(id) != nil }

// Last is the highest number of a block so far.
func (t *Table) Last() uint32 { return t.last }

// Made notes that a block was written.
func (t *Table) Made(id uint32) { t.last = max(t.last, id) }

// IsDead reports whether the record at a position is finished. All records of a block that is not
// in the table are.
func (t *Table) IsDead(id uint32, pos int) bool {
	b := t.blocks.at(id)
	return b == nil || t.isDead(b, pos)
}

// IsBuried is IsDead for blocks that need not be in the table: if a block is not, none of its
// records is finished.
func (t *Table) IsBuried(id uint32, pos int) bool {
	b := t.blocks.at(id)
	return b != nil && t.isDead(b, pos)
}

// Touch adds a block with live records, unless it is in the table.
func (t *Table) Touch(id uint32, live int) { t.touch(id, live) }

func (t *Table) touch(id uint32, live int) *block {
	b := t.blocks.at(id)
	if b == nil {
		b = t.blocks.add(id)
		b.addLive(live)
	}
	return b
}

// Bury marks a record that is in no part as finished. live is the number of unfinished records of
// the block, if the block is new.
func (t *Table) Bury(id uint32, live, pos int) {
	t.setDead(t.touch(id, live), pos)
	t.died(id, 1)
}

// RestoreDead sets the finished positions of a block on opening. Its parts follow later.
func (t *Table) RestoreDead(id uint32, bits []byte) {
	if bits = bytes.TrimRight(bits, "\x00"); len(bits) > 0 {
		copy(t.growDead(t.blocks.add(id), len(bits)), bits)
	}
}

// RestoreWhole adds a block without parts on opening, and returns the number of its unfinished records.
func (t *Table) RestoreWhole(id uint32, records int) (live int) {
	t.Made(id)
	live = records
	b := t.blocks.at(id)
	if b == nil {
		return live
	}
	for i := range records {
		if t.isDead(b, i) {
			live--
		}
	}
	b.addLive(live)
	t.DropDead(id)
	return live
}

// DropDead removes a block if it is in the table and all its records are finished.
func (t *Table) DropDead(id uint32) {
	if b := t.blocks.at(id); b != nil && b.live() == 0 {
		t.drop(id)
	}
}

func (t *Table) drop(id uint32) {
	t.forget(id)
	t.drops = append(t.drops, id)
}

// TakeDrops returns the blocks removed since the last call. The store may delete them.
func (t *Table) TakeDrops() []uint32 {
	ids := t.drops
	t.drops = nil
	return ids
}

// PutDrops undoes TakeDrops.
func (t *Table) PutDrops(ids []uint32) { t.drops = append(t.drops, ids...) }

// TakeDirty returns the blocks whose finished positions changed since the last call. Each stays
// dirty until Clean.
func (t *Table) TakeDirty() []uint32 {
	ids := t.dirty
	t.dirty = nil
	return ids
}

// Clean returns all finished positions of a dirty block for the store; nothing if the block was
// removed.
func (t *Table) Clean(id uint32) (d storage.DeadBits, ok bool) {
	b := t.blocks.at(id)
	if b == nil {
		return d, false
	}
	b.setClean()
	return storage.DeadBits{Block: id, Bits: t.copyDead(b)}, true
}

// Soil undoes TakeDirty and Clean for one block.
func (t *Table) Soil(id uint32) {
	if b := t.blocks.at(id); b != nil {
		t.soil(id, b)
	}
}

func (t *Table) soil(id uint32, b *block) {
	if !b.dirty() {
		b.setDirty()
		t.dirty = append(t.dirty, id)
	}
}

// died notes that n more records of a block are marked as finished.
func (t *Table) died(id uint32, n int) {
	b := t.blocks.at(id)
	if b.live() == n {
		t.drop(id)
		return
	}
	b.addLive(-n)
	t.soil(id, b)
}

// Size returns the memory of the table in bytes.
func (t *Table) Size() int64 {
	return t.blocks.size() + t.bitmaps.Size() + t.parts.Size() + t.touched.Size()
}

// deadHeader is the size of a bitmap's header: its length in 2 bytes.
const deadHeader = 2

// deadBits returns the bitmap of a block's finished positions, which may be shorter or
// longer than the block. It is valid until the next call that stores anything.
func (t *Table) deadBits(b *block) []byte {
	if b.dead == 0 {
		return nil
	}
	mem := t.bitmaps.Bytes(b.dead)
	return mem[deadHeader:][:binary.LittleEndian.Uint16(mem)]
}

// copyDead returns a copy of a block's bitmap, up to the last finished position.
func (t *Table) copyDead(b *block) []byte {
	return bytes.Clone(bytes.TrimRight(t.deadBits(b), "\x00"))
}

func (t *Table) isDead(b *block, i int) bool {
	bits := t.deadBits(b)
	return i/8 < len(bits) && bits[i/8]&(1<<(i%8)) != 0
}

// setDead marks position i as finished.
func (t *Table) setDead(b *block, i int) {
	bits := t.deadBits(b)
	if i/8 >= len(bits) {
		bits = t.growDead(b, i/8+1)
	}
	bits[i/8] |= 1 << (i % 8)
}

// growDead extends the bitmap of a block to at least n bytes.
func (t *Table) growDead(b *block, n int) []byte {
	old := t.deadBits(b)
	size := int(arena.Cost(deadHeader + max(n, 2*len(old))))
	ref, mem := t.bitmaps.Alloc(size)
	clear(mem)
	binary.LittleEndian.PutUint16(mem, uint16(size-deadHeader))
	copy(mem[deadHeader:], old)
	t.freeDead(b)
	b.dead = ref
	return mem[deadHeader:]
}

func (t *Table) freeDead(b *block) {
	if b.dead != 0 {
		t.bitmaps.Free(b.dead, deadHeader+len(t.deadBits(b)))
		b.dead = 0
	}
}

// forget frees the data of a block.
func (t *Table) forget(id uint32) {
	t.freeDead(t.blocks.at(id))
	t.blocks.remove(id)
}
