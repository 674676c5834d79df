package blocks

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is read once while it is cached, its memory is not reused while it is being read, and its
// memory is counted.
func TestBlockCache(t *testing.T) {
	var c Cache
	reads := 0
	fill := func(v byte) func(*Block) error {
		return func(b *Block) error {
			reads++
			b.raw = append(b.raw[:0], v)
			return nil
		}
	}
	holds := func(v byte) func(*Block) error {
		return func(b *Block) error { require.Equal(t, []byte{v}, b.raw); return nil }
	}
	require.NoError(t, c.Use(1, fill(1), holds(1)))
	require.NoError(t, c.Use(1, fill(9), holds(1)))
	require.Equal(t, 1, reads)

	// Others take its slot, and all spare memory, while it is read.
	require.NoError(t, c.Use(1, fill(9), func(b *Block) error {
		for i := range uint32(2 * kept) {
			other := byte(2 + i%100)
			require.NoError(t, c.Use(1+(i+1)*kept, fill(other), holds(other)))
		}
		return holds(1)(b)
	}))
	require.NoError(t, c.Use(1, fill(3), holds(3)))

	// A block that cannot be read is not kept, nor is a very large one.
	broken := errors.New("broken")
	require.ErrorIs(t, c.Use(2, func(*Block) error { return broken }, nil), broken)
	require.NoError(t, c.Use(2, fill(2), holds(2)))
	large := func(b *Block) error { b.raw = make([]byte, 2*keepRaw); return nil }
	require.NoError(t, c.Use(3, large, func(*Block) error { return nil }))
	require.Less(t, c.Bytes(), int64(keepRaw))

	c.Clear()
	var spare int64
	for _, b := range c.spare {
		spare += b.size()
	}
	require.Equal(t, spare, c.Bytes())
}

func TestBlockCacheConcurrently(t *testing.T) {
	var c Cache
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 5000 {
				block := uint32(1 + (i*7+g)%(3*kept))
				err := c.Use(block, func(b *Block) error {
					b.raw = append(b.raw[:0], byte(block), byte(block>>8))
					return nil
				}, func(b *Block) error {
					if b.raw[0] != byte(block) || b.raw[1] != byte(block>>8) {
						return errors.New("another block")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for i, b := range c.slots {
		if b != nil && (b.users != 1 || b.block%kept != uint32(i)) {
			t.Errorf("slot %d has block %d with %d users", i, b.block, b.users)
		}
	}
}
