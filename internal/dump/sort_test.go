package dump

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// However many runs there are, reading them keeps the limit.
func TestMergingKeepsTheLimit(t *testing.T) {
	const n, limit = 100_000, 1 << 20
	dir := t.TempDir()
	s := sorter{dir: dir, limit: limit}
	value := make([]byte, 300)
	for i := range n {
		require.NoError(t, s.add(fmt.Appendf(nil, "%06d", i*7919%n), value))
	}
	require.Greater(t, len(s.runs), 25)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.Empty(t, files, "what is open has no name")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	i := 0
	require.NoError(t, s.each(func(key, _ []byte) error {
		if string(key) != fmt.Sprintf("%06d", i) {
			return fmt.Errorf("%q is number %d", key, i)
		}
		i++
		if i == 1 {
			runtime.ReadMemStats(&after)
		}
		return nil
	}))
	require.Equal(t, n, i)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(limit*3/2))
	require.NoError(t, s.close())
	files, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}
