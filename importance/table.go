// This file stores a few bits for each of many keys, in a fixed amount of memory.

package importance

import (
	"math"
	"math/bits"
	"sync"
)

const (
	ways    = 4   // cells of a bucket
	stripes = 256 // locks of a table
)

// table is a hash table that forgets. A key has four cells to choose from, its bucket. A cell has a part
// of the key's hash, its fingerprint, and a value; 0 is no cell. Two keys of one bucket with the same
// fingerprint share a cell. A new key may take the place of the poorest cell of a full bucket, with the
// probability of its part of the worth of both: so what is worth much stays, and a flood of new keys
// cannot wash it away.
//
// Safe for concurrent use.
type table[C uint16 | uint32 | uint64] struct {
	cells []C
	width int               // bits of a value; the rest of a cell is its fingerprint
	worth func(v C) float64 // greater than 0
	lost  func(v C)         // called for a value that found no place, or lost it; nil: not
	dice  *dice

	locks [stripes]struct {
		sync.Mutex
		_ [56]byte // a cache line of its own
	}
}

// newTable returns a table that takes at most the given bytes, or has one bucket.
func newTable[C uint16 | uint32 | uint64](bytes int64, size, width int, worth func(v C) float64, d *dice) *table[C] {
	return &table[C]{cells: make([]C, ways*max(1, bytes/int64(ways*size))), width: width, worth: worth, dice: d}
}

// value returns the value of a key, or 0.
func (t *table[C]) value(hash uint64) (v C) {
	t.update(hash, func(old C) C {
		v = old
		return old
	})
	return v
}

// update replaces the value of a key, 0 at first, by what f makes of it.
func (t *table[C]) update(hash uint64, f func(v C) C) {
	high, _ := bits.Mul64(hash, uint64(len(t.cells)/ways))
	bucket := t.cells[high*ways : high*ways+ways : high*ways+ways]
	mask := C(1)<<t.width - 1
	print := C(hash << t.width)
	l := &t.locks[high%stripes]
	l.Lock()
	defer l.Unlock()
	for i := range bucket {
		c := &bucket[i]
		if *c&mask != 0 && *c&^mask == print {
			if *c = f(*c & mask); *c != 0 {
				*c |= print
			}
			return
		}
	}
	v := f(0)
	if v == 0 {
		return
	}
	free, least := &bucket[0], math.Inf(1) // or the poorest
	for i := range bucket {
		if bucket[i] == 0 {
			bucket[i] = print | v
			return
		}
		if worth := t.worth(bucket[i] & mask); worth < least {
			free, least = &bucket[i], worth
		}
	}
	if now := t.worth(v); t.dice.roll()*(now+least) >= now {
		t.lose(v)
		return
	}
	t.lose(*free & mask)
	*free = print | v
}

func (t *table[C]) lose(v C) {
	if t.lost != nil {
		t.lost(v)
	}
}
