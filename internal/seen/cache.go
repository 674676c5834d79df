package seen

import "github.com/seed-7440039f/frontier/internal/offheap"

const (
	ways       = 5  // fingerprints in a bucket
	bucketSize = 64 // bytes, a cache line
)

// bucket holds fingerprints in the order of their last use, the latest first. Empty slots are all
// zero, and come last.
type bucket struct {
	hi [ways]uint64
	lo [ways]uint32
	_  uint32
}

// Cache stores some of the fingerprints that it was given, preferring those that are looked up
// again. It is divided into shards like a Set.
//
// The zero value stores nothing; see SetLimit. Not safe for concurrent use.
type Cache struct {
	shards  [shards]cacheShard
	limit   int // buckets of a shard at most
	buckets int // of all shards
	n       int // fingerprints
}

type cacheShard struct {
	buckets []bucket
	n       int // fingerprints
	table   offheap.Array[bucket]
}

// SetLimit sets the maximum memory of the cache in bytes. Larger shards shrink when they are next
// used. Since each change costs copying the cache, an existing limit stays if it is below the new
// one by less than half.
func (c *Cache) SetLimit(bytes int64) {
	n := int(max(0, bytes) / (shards * bucketSize))
	if n < c.limit {
		c.limit = n - n/8 // leaves room for a further decrease
	} else if n > c.limit+c.limit/2 {
		c.limit = n
	}
}

// Limit returns the maximum memory of the cache in bytes.
func (c *Cache) Limit() int64 { return int64(c.limit) * shards * bucketSize }

// Full reports whether there is little room left for marks that are offered.
func (c *Cache) Full() bool {
	return c.buckets >= c.limit*shards*9/10 && c.n >= c.buckets*ways*4/5
}

// Size returns the memory of the cache in bytes.
func (c *Cache) Size() int64 { return int64(c.buckets) * bucketSize }

// Has reports whether m is stored, and makes it the latest of its bucket.
func (c *Cache) Has(m [12]byte) bool {
	hi, lo := split(m)
	t := &c.shards[hi>>(64-shardBits)]
	if len(t.buckets) == 0 {
		return false
	}
	b := &t.buckets[home(hi, len(t.buckets))]
	for i := range ways {
		if b.hi[i] == hi && b.lo[i] == lo {
			b.promote(i)
			return true
		}
	}
	return false
}

// promote moves place i to the front.
func (b *bucket) promote(i int) {
	hi, lo := b.hi[i], b.lo[i]
	for ; i > 0; i-- {
		b.hi[i], b.lo[i] = b.hi[i-1], b.lo[i-1]
	}
	b.hi[0], b.lo[0] = hi, lo
}

// Insert stores m, which was looked up, as the latest of its bucket.
func (c *Cache) Insert(m [12]byte) {
	if b, i := c.place(m); b != nil {
		b.promote(i)
	}
}

// Offer stores m, which may never be looked up, in place of the oldest of its bucket, unless there
// is room.
func (c *Cache) Offer(m [12]byte) { c.place(m) }

// place puts m at the end of its bucket, or finds it there. It returns nil if the cache may hold
// nothing.
func (c *Cache) place(m [12]byte) (*bucket, int) {
	hi, lo := split(m)
	t := &c.shards[hi>>(64-shardBits)]
	if size := len(t.buckets); size > c.limit || size < c.limit && t.n >= size*ways*3/5 {
		c.resize(t, min(c.limit, max(1, 2*size)))
	}
	if len(t.buckets) == 0 {
		return nil, 0
	}
	n := t.n
	b, i := t.place(hi, lo)
	c.n += t.n - n
	return b, i
}

func (t *cacheShard) place(hi uint64, lo uint32) (*bucket, int) {
	b := &t.buckets[home(hi, len(t.buckets))]
	i := 0
	for ; i < ways-1 && b.hi[i] != 0; i++ {
		if b.hi[i] == hi && b.lo[i] == lo {
			return b, i
		}
	}
	if b.hi[i] == 0 {
		t.n++
	}
	b.hi[i], b.lo[i] = hi, lo
	return b, i
}

// resize moves a shard to n buckets.
func (c *Cache) resize(t *cacheShard, n int) {
	old := t.table
	c.buckets += n - len(old.Items)
	c.n -= t.n
	*t = cacheShard{table: offheap.Make[bucket](n)}
	t.buckets = t.table.Items
	for i := range old.Items {
		for j := range ways {
			if b := &old.Items[i]; n > 0 && b.hi[j] != 0 {
				t.place(b.hi[j], b.lo[j])
			}
		}
	}
	c.n += t.n
	old.Free()
}
