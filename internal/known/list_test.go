// This file tests the list of marks against a slice.

package known

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestListAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l, head List
		var want, wantHead []storage.Mark
		next := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 2*chunkLen).Draw(t, "n") {
					var m storage.Mark
					next++
					binary.LittleEndian.PutUint64(m[:], next)
					l.add(m)
					want = append(want, m)
				}
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "n")
				l.drop(n)
				want = want[n:]
			},
			"head": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "n")
				head, wantHead = l.head(n), want[:n:n]
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), l.n)
				require.True(t, slices.Equal(want, l.All()))
				require.True(t, slices.Equal(wantHead, head.All()))
				if len(want) > 0 {
					i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
					require.Equal(t, want[i], l.at(i))
				}
				require.LessOrEqual(t, len(l.chunks), len(want)/chunkLen+2)
			},
		})
	})
}
