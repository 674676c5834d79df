// This file tests small values of the program's.

package control

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// valuesOf returns all values whose keys begin with prefix.
func valuesOf(t *testing.T, f *frontier.Frontier, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	stored, err := f.Values(t.Context(), prefix)
	require.NoError(t, err)
	for key, v := range stored {
		all[key] = string(v)
	}
	return all
}

func TestValuesAreStoredReplacedAndDeleted(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		ctx := t.Context()
		long := strings.Repeat("k", frontier.MaxValueKey)
		large := strings.Repeat("v", frontier.MaxValue)
		want := map[string]string{"crawl/a": "1", "crawl/b": "", "feed\x00\xff": "x", long: large}
		for key, v := range want {
			require.NoError(t, w.F.SetValue(ctx, key, []byte("former")))
			b := []byte(v)
			require.NoError(t, w.F.SetValue(ctx, key, b))
			clear(b)
		}
		require.NoError(t, w.F.SetValue(ctx, "gone", []byte("x")))
		require.NoError(t, w.F.SetValue(ctx, "gone", nil))
		require.NoError(t, w.F.SetValue(ctx, "never", nil))
		check := func(f *frontier.Frontier) {
			require.Equal(t, want, valuesOf(t, f, ""))
			require.Equal(t, map[string]string{"crawl/a": "1", "crawl/b": ""}, valuesOf(t, f, "crawl/"))
			for key, x := range want {
				v, ok, err := f.Value(key)
				require.NoError(t, err)
				require.True(t, ok)
				require.NotNil(t, v)
				require.Equal(t, x, string(v))
			}
			_, ok, err := f.Value("gone")
			require.NoError(t, err)
			require.False(t, ok)
		}
		check(w.F)

		text := w.Export()
		require.Len(t, harness.LinesOf(text, "value"), 3)
		require.Len(t, harness.LinesOf(text, "value64"), 1)
		other := harness.NewWorld(t, frontier.Options{})
		require.EqualValues(t, 4, other.Imported(text).Values)
		check(other.F)
		stored := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		stored.Imported(text)
		check(stored.F)
		require.Equal(t, harness.Timeless(text), harness.Timeless(stored.Export()))

		if w.Machine != nil {
			w.Reopen()
			check(w.F)
			w = w.Killed()
			check(w.F)
		}
	})
}

func TestValuesThatAreRefused(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		ctx := t.Context()
		require.EqualError(t, w.F.SetValue(ctx, "", []byte("x")), "frontier: set value: key has 0 bytes; want 1 to 255")
		require.EqualError(t, w.F.SetValue(ctx, strings.Repeat("k", 256), nil), "frontier: set value: key has 256 bytes; want 1 to 255")
		require.EqualError(t, w.F.SetValue(ctx, "k", make([]byte, frontier.MaxValue+1)), "frontier: set value: value has 65537 bytes; want at most 65536")
		_, _, err := w.F.Value("")
		require.EqualError(t, err, "frontier: value: key has 0 bytes; want 1 to 255")
		ended, cancel := context.WithCancel(ctx)
		cancel()
		require.ErrorIs(t, w.F.SetValue(ended, "k", nil), context.Canceled)
		_, err = w.F.Values(ended, "")
		require.ErrorIs(t, err, context.Canceled)
		for _, line := range []string{`{"value":"k"}`, `{"value":"","data":"eA=="}`, `{"value":"k","data":"?"}`, `{"value":"k","value64":"aw==","data":""}`} {
			_, err := transfer.Import(ctx, w.F, strings.NewReader(line+"\n"), transfer.ImportOptions{})
			var bad *transfer.LineError
			require.ErrorAs(t, err, &bad, line)
		}
		require.Empty(t, valuesOf(t, w.F, ""))
		require.NoError(t, w.F.Close())
		require.ErrorIs(t, w.F.SetValue(ctx, "k", []byte("x")), frontier.ErrClosed)
		_, _, err = w.F.Value("k")
		require.ErrorIs(t, err, frontier.ErrClosed)
		_, err = w.F.Values(ctx, "")
		require.ErrorIs(t, err, frontier.ErrClosed)
	})
}

// In memory, values count.
func TestValuesInMemoryCount(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{MemoryBudget: 16 << 20})
	before := w.F.Stats().MemoryBytes
	large := make([]byte, frontier.MaxValue)
	require.NoError(t, w.F.SetValue(t.Context(), "k", large))
	require.Greater(t, w.F.Stats().MemoryBytes, before+frontier.MaxValue)
	require.NoError(t, w.F.SetValue(t.Context(), "k", nil))
	require.Equal(t, before, w.F.Stats().MemoryBytes)
	var err error
	for i := 0; err == nil; i++ {
		require.Less(t, i, 300)
		err = w.F.SetValue(t.Context(), "k"+strings.Repeat("x", i%200)+string(rune('a'+i/200)), large)
	}
	require.ErrorIs(t, err, frontier.ErrFull)
}
