package spill_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Rows reports those of a prefix from a key on, in order, as of the last batch, and no more than are asked for.
// An opening reads all but those that are as many as hosts.
func TestRowsAgainstAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mach := spilltest.OpenMemory(t, spill.Options{})
		defer mach.Kill(t)
		require.NoError(rt, mach.Store.Recover(t.Context(), told{}))
		rows := map[string]string{}
		key := rapid.Custom(func(rt *rapid.T) string {
			return rapid.SampledFrom([]string{"", "p", storage.ManyRows, "r", "v\xff"}).Draw(rt, "prefix") + fmt.Sprint(rapid.IntRange(1, 9).Draw(rt, "key"))
		})
		id := uint64(0)
		for range rapid.IntRange(1, 8).Draw(rt, "batches") {
			id++
			b := &storage.Batch{ID: id}
			for range rapid.IntRange(1, 9).Draw(rt, "rows") {
				k := key.Draw(rt, "key")
				if slices.ContainsFunc(b.Rows, func(r storage.Row) bool { return r.Key == k }) {
					continue
				}
				if r := (storage.Row{Key: k}); rapid.IntRange(0, 3).Draw(rt, "deleted") == 0 {
					b.Rows = append(b.Rows, r)
					delete(rows, k)
				} else {
					r.Value = fmt.Append(nil, id, k)
					b.Rows = append(b.Rows, r)
					rows[k] = string(r.Value)
				}
			}
			require.NoError(rt, mach.Store.Commit(b))
			prefix := rapid.SampledFrom([]string{"", "p", storage.ManyRows, "v\xff", "x"}).Draw(rt, "of")
			from := rapid.OneOf(rapid.Just(""), key).Draw(rt, "from")
			most := rapid.IntRange(1, 30).Draw(rt, "most")
			var want, got []string
			for _, k := range slices.Sorted(maps.Keys(rows)) {
				if strings.HasPrefix(k, prefix) && k >= from && len(want) < most {
					want = append(want, k+"="+rows[k])
				}
			}
			require.NoError(rt, mach.Store.Rows(prefix, from, func(k string, v []byte) bool {
				got = append(got, k+"="+string(v))
				return len(got) < most
			}))
			require.Equal(rt, want, got)
		}
		require.NoError(rt, mach.Store.Release())
		seen := told{}
		require.NoError(rt, mach.Store.Recover(t.Context(), seen))
		maps.DeleteFunc(rows, func(k, _ string) bool { return strings.HasPrefix(k, storage.ManyRows) })
		require.Equal(rt, told(rows), seen)
	})
}

// told is a recovery that notes rows.
type told map[string]string

func (x told) Begin(func(string) ([]byte, bool, error)) error { return nil }
func (x told) Marks(int64) error                              { return nil }
func (x told) Dead(uint32, []byte) error                      { return nil }
func (x told) Part(storage.Queue, storage.Part) error         { return nil }
func (x told) Timed(storage.TimedBlock) error                 { return nil }
func (x told) Batch(*storage.Batch) error                     { return nil }
func (x told) Row(key string, value []byte) error             { x[key] = string(value); return nil }
