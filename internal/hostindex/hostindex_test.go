package hostindex

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever comes and goes, each host is among the candidates for its hash, and
// only hosts that are in are.
func TestHostIndexAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		want := map[uint32]uint64{} // hashes by number
		next := uint32(0)
		// Few segments, and tags that are near each other, at the end and equal.
		hash := rapid.Custom(func(t *rapid.T) uint64 {
			segment := rapid.SampledFrom([]uint64{0, 7, 255}).Draw(t, "segment")
			tag := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(1<<32-5, 1<<32-1), rapid.Uint64Range(0, 1<<32-1)).Draw(t, "tag")
			return segment<<56 | tag<<24
		})
		ids := func() []uint32 {
			var ids []uint32
			for id := range want {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return ids
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				next++
				want[next] = hash.Draw(t, "hash")
				x.Add(want[next], next)
			},
			"add many": func(t *rapid.T) {
				for range rapid.IntRange(1, 200).Draw(t, "n") {
					next++
					want[next] = uint64(next) * 0x9E3779B97F4A7C15 >> 8
					x.Add(want[next], next)
				}
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip("empty")
				}
				id := rapid.SampledFrom(ids()).Draw(t, "id")
				x.Remove(want[id], id)
				delete(want, id)
			},
			"remove most": func(t *rapid.T) {
				for i, id := range ids() {
					if i%10 > 0 {
						x.Remove(want[id], id)
						delete(want, id)
					}
				}
			},
			"": func(t *rapid.T) {
				slots := 0
				for i := range x.segments {
					slots += len(x.segments[i].slots.Items)
				}
				require.Equal(t, slots, x.slots)
				for id, h := range want {
					found := 0
					for got := range x.Candidates(h) {
						require.Equal(t, tagOf(h), tagOf(want[got]))
						if got == id {
							found++
						}
					}
					require.Equal(t, 1, found, "host %d", id)
				}
				for range x.Candidates(hash.Draw(t, "other")) {
					break
				}
			},
		})
	})
}

func TestHostIndexGrowsAndShrinks(t *testing.T) {
	var x Index
	const n = 200_000
	hash := func(id uint32) uint64 { return uint64(id) * 0x9E3779B97F4A7C15 }
	for id := uint32(1); id <= n; id++ {
		x.Add(hash(id), id)
	}
	require.Less(t, x.Size(), int64(n*14), "bytes of %d hosts", n)
	for id := uint32(1); id < n-100; id++ {
		x.Remove(hash(id), id)
	}
	require.Less(t, x.Size(), int64(256*1024))
	for id := uint32(n - 100); id <= n; id++ {
		require.Contains(t, slices.Collect(x.Candidates(hash(id))), id)
	}
}
