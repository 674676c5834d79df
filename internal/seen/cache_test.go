package seen

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What a Cache says it remembers it was given, and its memory stays in bounds.
func TestCacheAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Cache
		given := map[uint32]bool{}
		draw := func() uint32 { return rapid.Uint32Range(0, 3000).Draw(t, "n") }
		limit := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"limit": func(*rapid.T) {
				limit = rapid.Int64Range(-1, 8).Draw(t, "buckets") * shards * bucketSize
				was := c.Limit()
				c.SetLimit(limit)
				limit = max(0, limit)
				switch {
				case limit < was:
					require.LessOrEqual(t, c.Limit(), limit)
				case limit > was*3/2:
					require.Equal(t, limit, c.Limit())
				default:
					require.Equal(t, was, c.Limit())
				}
				limit = c.Limit()
			},
			"insert": func(*rapid.T) {
				n := draw()
				c.Insert(mark(n))
				given[n] = true
				require.Equal(t, limit > 0, c.Has(mark(n)))
			},
			"offer many": func(*rapid.T) {
				from := draw()
				for n := from; n < from+100; n++ {
					c.Offer(mark(n))
					given[n] = true
				}
			},
			"": func(*rapid.T) {
				for n := range uint32(3200) {
					if c.Has(mark(n)) {
						require.True(t, given[n], "%d", n)
					}
				}
				total, n := 0, 0
				for i := range c.shards {
					s := &c.shards[i]
					total += len(s.buckets)
					held := 0
					for _, b := range s.buckets {
						for j := range ways {
							if b.hi[j] != 0 {
								held++
							}
						}
					}
					require.Equal(t, held, s.n)
					n += held
				}
				require.Equal(t, int64(total)*bucketSize, c.Size())
				require.Equal(t, n, c.n)
			},
		})
	})
}

// The popular stay, however many others pass by.
func TestCacheKeepsThePopular(t *testing.T) {
	var c Cache
	c.SetLimit(shards * bucketSize * 64)
	x := uint64(7)
	next := func() (m [12]byte) {
		for i := range m {
			x = x*6364136223846793005 + 1442695040888963407
			m[i] = byte(x >> 56)
		}
		return m
	}
	var popular [][12]byte
	for range 10_000 {
		popular = append(popular, next())
		c.Insert(popular[len(popular)-1])
	}
	kept := 0
	for round := range 20 {
		kept = 0
		for range 100_000 {
			c.Offer(next())
		}
		for _, m := range popular {
			if c.Has(m) {
				kept++
			} else {
				c.Insert(m)
			}
		}
		require.LessOrEqual(t, c.Size(), c.Limit(), "round %d", round)
	}
	require.Greater(t, kept, 9_900)
	c.SetLimit(0)
	for range 10_000 {
		c.Insert(next()) // each shard notices
	}
	require.Zero(t, c.Size())
}
