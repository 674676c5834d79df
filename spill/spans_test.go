// This file tests that what is known of rounds goes with their last block.

package spill

import (
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/stretchr/testify/require"
)

func TestSpansGoWithTheirBlocks(t *testing.T) {
	s := &Store{gens: map[uint32]uint32{}}
	for gen := range uint32(100) {
		p := &packer{s: s, gen: gen, kind: keys.KindBlock}
		for range 3 {
			require.NoError(t, p.begin())
		}
	}
	require.Len(t, s.spans, 100)
	for b := range uint32(297) {
		x, ok := s.spanOf(b)
		require.True(t, ok)
		require.Equal(t, b/3, x.gen)
		s.forgetBlocks([]uint32{b})
	}
	require.Len(t, s.spans, 1)
	x, ok := s.spanOf(298)
	require.True(t, ok)
	require.EqualValues(t, 99, x.gen)
	s.forgetBlocks([]uint32{297, 298, 299})
	require.Len(t, s.spans, 1, "the last one may be going to have more")
}
