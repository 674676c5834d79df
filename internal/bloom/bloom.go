// Package bloom stores 64-bit hashes approximately, in about 1.5 bytes each: it always finds a hash
// that was added, and wrongly finds another with a probability of about 1 in 200 for each doubling
// of the filter.
package bloom

import "github.com/seed-7440039f/frontier/internal/offheap"

const (
	firstBlocks = 6 << 10 // of the first level: 192 KiB
	perBlock    = 21      // hashes per block of 256 bits: 12 bits each
)

// Filter is a split-block Bloom filter that grows: a full level is followed by one twice as large.
//
// The zero value is an empty filter. Not safe for concurrent use.
type Filter struct {
	levels []offheap.Array[block]
	room   int // number of hashes that fit into the last level
	n      int
}

type block [8]uint32

// salts spread a hash over the words of a block. They are those of Parquet.
var salts = block{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// at returns the block of a hash in a level.
func at(level []block, hash uint64) *block {
	return &level[(hash>>32)*uint64(len(level))>>32]
}

func (b *block) add(hash uint64) {
	for i := range b {
		b[i] |= 1 << (uint32(hash) * salts[i] >> 27)
	}
}

func (b *block) has(hash uint64) bool {
	for i := range b {
		if b[i]&(1<<(uint32(hash)*salts[i]>>27)) == 0 {
			return false
		}
	}
	return true
}

// Add adds a hash. Its bits must be evenly distributed.
func (f *Filter) Add(hash uint64) {
	if f.Has(hash) {
		return
	}
	if f.room == 0 {
		blocks := firstBlocks << len(f.levels)
		f.levels = append(f.levels, offheap.Make[block](blocks))
		f.room = blocks * perBlock
	}
	at(f.levels[len(f.levels)-1].Items, hash).add(hash)
	f.room--
	f.n++
}

// Has reports whether the hash was added. False positives are possible.
func (f *Filter) Has(hash uint64) bool {
	for i := len(f.levels) - 1; i >= 0; i-- {
		if at(f.levels[i].Items, hash).has(hash) {
			return true
		}
	}
	return false
}

// Len returns how many different hashes were added, at least.
func (f *Filter) Len() int { return f.n }

// Size returns the memory of the filter in bytes.
func (f *Filter) Size() (n int64) {
	for i := range f.levels {
		n += f.levels[i].Size()
	}
	return n
}
