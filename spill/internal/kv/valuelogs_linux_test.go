package kv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever is written to badger's value log has space on the volume before it is, also
// in a file that was just begun, and one value that is longer than a file.
func TestValueLogHasSpace(t *testing.T) {
	dir := t.TempDir()
	d := pressed(t, dir)
	defer func() { require.NoError(t, d.Close()) }()
	for i, n := range []int{3000, 400_000, 400_000, 400_000, 3000, 1 << 20, 3000} {
		var b Batch
		b.Set(fmt.Appendf(nil, "%d", i), bytes.Repeat([]byte{1}, n))
		before := d.values
		require.NoError(t, d.Write(&b, false))
		require.Positive(t, d.values.id)
		if d.values == before {
			continue
		}
		var st syscall.Stat_t
		require.NoError(t, syscall.Stat(filepath.Join(dir, valueLogName(d.values.id)), &st))
		if st.Size >= 2*valueLog { // else it is full, and what was left was given back
			require.GreaterOrEqual(t, st.Blocks*512, int64(2*valueLog), "value %d", i)
		}
	}
	require.Greater(t, d.values.id, 1)
	last, err := os.Stat(filepath.Join(dir, valueLogName(d.values.id)))
	require.NoError(t, err)
	require.Positive(t, last.Size())
}
