package timed

import (
	"maps"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A scan meets all records that wait from its beginning to its end, whatever comes and goes
// meanwhile, and each record is found where it is.
func TestScanMeetsWhatStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var mem record.Arena
		r := NewRecords(&mem)
		in := map[arena.Ref]bool{}
		seq := uint64(0)
		var scan *Scan
		var missing map[arena.Ref]bool // that the scan has to meet
		remove := func(ref arena.Ref) {
			i, ok := r.Find(ref)
			require.True(t, ok)
			r.Remove(i)
			mem.Discard(ref)
			delete(in, ref)
			delete(missing, ref)
		}
		one := func(t *rapid.T) arena.Ref {
			if len(in) == 0 {
				t.Skip("none")
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(in))).Draw(t, "ref")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					seq++
					ref := mem.Store(seq, []byte("body"))
					it := timeheap.Item{At: rapid.Int64Range(0, 50).Draw(t, "at"), ID: uint32(ref)}
					r.Push(it)
					in[ref] = true
				}
			},
			"remove": func(t *rapid.T) { remove(one(t)) },
			"due": func(t *rapid.T) {
				if r.Len() > 0 {
					remove(arena.Ref(r.Items[0].ID))
				}
			},
			"scan": func(t *rapid.T) {
				if scan != nil {
					t.Skip("one is under way")
				}
				scan = NewScan()
				r.Next(scan)
				missing = maps.Clone(in)
			},
			"next": func(t *rapid.T) {
				if scan == nil {
					t.Skip("none")
				}
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					i, more := r.Next(scan)
					if !more {
						r.EndScan(scan)
						require.Empty(t, missing)
						require.Empty(t, r.scans)
						scan, missing = nil, nil
						return
					}
					if i >= 0 && i < r.Len() {
						delete(missing, arena.Ref(r.Items[i].ID))
					}
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, r.Check())
				require.Len(t, in, r.Len())
				for i, it := range r.Items {
					at, ok := r.Find(arena.Ref(it.ID))
					require.True(t, ok)
					require.Equal(t, i, at)
				}
			},
		})
	})
}
