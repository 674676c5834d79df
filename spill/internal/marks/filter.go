// This file separates marks that are certainly not in a run from those that may be.
//
// A filter is a Bloom filter in blocks of one cache line. Marks are uniform, so nothing is hashed:
// the leading bits of a mark select its block, the trailing ones its bits. So blocks come in the
// order of the marks, and a filter of any size is written and read as a stream.

package marks

import (
	"encoding/binary"
	"math/bits"

	"github.com/seed-7440039f/frontier/internal/offheap"
)

const (
	blockWords    = 8
	filterBlock   = 8 * blockWords // bytes
	filterProbes  = 5
	FilterBits    = 15      // per mark
	filterLimit   = 1 << 32 // blocks
	MaxFold       = 4
	foldMultiple  = 12 // any fold up to MaxFold divides it
	positionBits  = 9  // 512 in a block
	positionsMask = 1<<positionBits - 1
)

// filter holds the blocks of a run's filter, each the union of fold neighbours. It is as good as a
// filter that was built with that size.
type filter struct {
	blocks offheap.Array[[blockWords]uint64]
	Fold   int
}

// passes is how many of a million other marks a filter lets through, by how often it is folded.
var passes = [MaxFold + 1]int64{1: 2_200, 2: 29_000, 3: 101_000, 4: 201_000}

// FilterBlocks returns the number of blocks that the filter of n marks has on disk.
func FilterBlocks(n uint64) uint64 {
	blocks := (n*FilterBits + 8*filterBlock - 1) / (8 * filterBlock)
	return max(1, (blocks+foldMultiple-1)/foldMultiple) * foldMultiple
}

// blockOf returns the block of a mark among n.
func blockOf(hi uint64, n uint64) uint64 {
	b, _ := bits.Mul64(hi, n)
	return b
}

// positions returns the bits that decide where in its block a mark is noted.
func positions(hi uint64, lo uint32) uint64 { return hi<<32 | uint64(lo) }

// has reports whether a mark may be in the run. A nil filter reports true for all marks.
func (f *filter) has(hi uint64, lo uint32) bool {
	if f == nil {
		return true
	}
	b := &f.blocks.Items[blockOf(hi, uint64(len(f.blocks.Items)))]
	x := positions(hi, lo)
	for range filterProbes {
		if b[x>>6&(blockWords-1)]>>(x&63)&1 == 0 {
			return false
		}
		x >>= positionBits
	}
	return true
}

// Bytes returns the memory of the filter in bytes.
func (f *filter) Bytes() int64 {
	if f == nil {
		return 0
	}
	return f.blocks.Size()
}

// free frees the memory. The filter must not be used any more.
func (f *filter) free() {
	if f != nil {
		f.blocks.Free()
	}
}

// filterWriter writes a filter for marks in ascending order.
type filterWriter struct {
	out    *stream
	n      uint64 // blocks in all
	at     uint64 // block being filled
	block  [blockWords]uint64
	packed [filterBlock]byte
}

func (w *filterWriter) add(hi uint64, lo uint32) error {
	for b := blockOf(hi, w.n); w.at < b; {
		if err := w.next(); err != nil {
			return err
		}
	}
	x := positions(hi, lo)
	for range filterProbes {
		p := x & positionsMask
		w.block[p>>6] |= 1 << (p & 63)
		x >>= positionBits
	}
	return nil
}

func (w *filterWriter) next() error {
	for i, v := range w.block {
		binary.LittleEndian.PutUint64(w.packed[8*i:], v)
	}
	w.block = [blockWords]uint64{}
	w.at++
	return w.out.write(w.packed[:])
}

func (w *filterWriter) end() error {
	for w.at < w.n {
		if err := w.next(); err != nil {
			return err
		}
	}
	return w.out.flush()
}

// newFilter returns an empty filter for n blocks on disk, after folding.
func newFilter(n uint64, fold int) *filter {
	return &filter{offheap.Make[[blockWords]uint64](int(n) / fold), fold}
}

// merge adds blocks read from disk; first is the number of the first.
func (f *filter) merge(first uint64, packed []byte) {
	for ; len(packed) > 0; packed = packed[filterBlock:] {
		b := &f.blocks.Items[first/uint64(f.Fold)]
		for i := range b {
			b[i] |= binary.LittleEndian.Uint64(packed[8*i:])
		}
		first++
	}
}
