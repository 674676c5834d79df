package importance

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// What was known is known after a restart; a damaged file is reported, and nothing is known then.
func TestSnapshot(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		t.Run(score.String(), func(t *testing.T) {
			o := Options{Score: score, Memory: 16 << 10}
			x := estimator(t, o)
			for i := range 2000 {
				for range i % 7 {
					x.Priority(entry(i), frontier.History{})
					x.Found(entry(i))
				}
				x.Visit(lease(i/2), i%3 > 0, nil, nil)
			}
			file := filepath.Join(t.TempDir(), "snapshot")
			y, err := New(Options{Score: score, Memory: 16 << 10}) // with another key
			require.NoError(t, err)
			require.ErrorIs(t, y.Load(file), fs.ErrNotExist)
			require.NoError(t, x.Save(file))
			require.NoError(t, y.Load(file))
			for i := range 2000 {
				require.Equal(t, x.Explain(entry(i)), y.Explain(entry(i)))
			}
			require.Equal(t, score == Trust, x.Counts().Covered > 0)
			require.Equal(t, x.Counts().Covered, y.Counts().Covered)

			whole, err := os.ReadFile(file)
			require.NoError(t, err)
			empty := estimator(t, o).Explain(entry(6))
			try := func(b []byte) {
				t.Helper()
				require.NoError(t, os.WriteFile(file, b, 0o600))
				require.ErrorIs(t, y.Load(file), ErrCorrupt)
				require.Equal(t, empty, y.Explain(entry(6)))
			}
			for i := 0; i < len(whole); i += 1 + len(whole)/300 {
				try(whole[:i])
				b := slices.Clone(whole)
				b[i] ^= 0x10
				require.NoError(t, os.WriteFile(file, b, 0o600))
				if want := x.Explain(entry(6)); y.Load(file) == nil { // some bits of a gzip file mean nothing
					require.Equal(t, want, y.Explain(entry(6)))
				} else {
					require.Equal(t, empty, y.Explain(entry(6)))
				}
			}
			try(nil)
			require.NoError(t, os.WriteFile(file, whole, 0o600))
			z := estimator(t, Options{Score: 1 - score, Memory: 16 << 10})
			require.ErrorIs(t, z.Load(file), ErrCorrupt)
			z = estimator(t, Options{Score: score, Memory: 32 << 10})
			require.ErrorIs(t, z.Load(file), ErrCorrupt)
			assert.NoError(t, y.Load(file))
		})
	}
}

// After a restart the frontier learns again what deserves more, since it may have forgotten; but not for ever.
func TestRestartReminds(t *testing.T) {
	x := estimator(t, Options{})
	for range 4 { // the next level begins with 7
		x.Found(entry(1))
	}
	require.Zero(t, x.Found(entry(1)))
	file := filepath.Join(t.TempDir(), "snapshot")
	require.NoError(t, x.Save(file))
	y := estimator(t, Options{})
	require.NoError(t, y.Load(file))
	require.Zero(t, y.Found(entry(2)), "it has two links")
	require.Equal(t, 5, y.Found(entry(1)))
	for range 20 {
		y.Found(entry(1))
	}
	require.Zero(t, y.Found(entry(1)))
}
