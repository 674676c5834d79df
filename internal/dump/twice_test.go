package dump

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pipe looks like a file, but cannot seek.
type pipe struct{ io.Reader }

func (pipe) Seek(int64, int) (int64, error) { return 0, errors.New("illegal seek") }

func TestReadTwice(t *testing.T) {
	behind := strings.NewReader("passed over\nlines\n")
	_, err := behind.Seek(12, io.SeekStart)
	require.NoError(t, err)
	for name, r := range map[string]io.Reader{
		"it seeks": behind, "it does not": io.MultiReader(strings.NewReader("lines\n")), "it only looks like it": pipe{strings.NewReader("lines\n")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			x, err := ReadTwice(r, dir)
			require.NoError(t, err)
			first, err := io.ReadAll(x.First())
			require.NoError(t, err)
			again, err := x.Again()
			require.NoError(t, err)
			second, err := io.ReadAll(again)
			require.NoError(t, err)
			require.Equal(t, []string{"lines\n", "lines\n"}, []string{string(first), string(second)})
			x.Close()
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestPendingKeepsTheFirstError(t *testing.T) {
	var p Pending
	require.NoError(t, p.Wait())
	bad := errors.New("bad")
	a, b, c := p.Begin(), p.Begin(), p.Begin()
	go func() { a(nil); b(bad); c(errors.New("worse")) }()
	require.Equal(t, bad, p.Wait())
	for range 3 * pendingMax {
		go p.Begin()(nil)
	}
	require.Equal(t, bad, p.Wait())
}
