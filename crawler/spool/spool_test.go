package spool

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A Body is the bytes that were written, wherever it keeps them.
func TestBodyIsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		b := New(Options{Memory: rapid.IntRange(1, 64).Draw(t, "memory"), Dir: dir})
		defer b.Close()
		var want []byte
		for _, p := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 40)).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "grow") {
				b.Grow(rapid.IntRange(0, 100).Draw(t, "by"))
			}
			n, err := b.Write(p)
			require.NoError(t, err)
			require.Equal(t, len(p), n)
			want = append(want, p...)
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				n := rapid.IntRange(0, len(want)).Draw(t, "to")
				require.NoError(t, b.Truncate(int64(n)))
				want = want[:n]
			}
		}
		require.EqualValues(t, len(want), b.Size())
		for range 2 {
			got, err := io.ReadAll(b.Reader())
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
		}
		got, err := b.Bytes()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		require.True(t, bytes.Equal(want[:min(10, len(want))], b.Head(10)))
	})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left, "files left")
}

func TestLongBodiesLeaveMemory(t *testing.T) {
	b := New(Options{Memory: 1000, Dir: t.TempDir()})
	_, err := b.Write(make([]byte, 1000))
	require.NoError(t, err)
	assert.True(t, b.InMemory())
	_, err = b.Write([]byte{1})
	require.NoError(t, err)
	assert.False(t, b.InMemory())
	assert.Nil(t, b.buf)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	_, err = b.Bytes()
	assert.ErrorIs(t, err, ErrClosed)
	_, err = b.Write(nil)
	assert.ErrorIs(t, err, ErrClosed)
	_, err = io.ReadAll(b.Reader())
	assert.ErrorIs(t, err, ErrClosed)
}

func TestNilAndGivenBodies(t *testing.T) {
	var none *Body
	p, err := none.Bytes()
	assert.NoError(t, err)
	assert.Empty(t, p)
	assert.Empty(t, none.Head(3))
	assert.Zero(t, none.Size())
	assert.True(t, none.InMemory())
	assert.NoError(t, none.Close())
	got, err := io.ReadAll(none.Reader())
	assert.NoError(t, err)
	assert.Empty(t, got)
	got, err = io.ReadAll(Of([]byte("abc")).Reader())
	assert.NoError(t, err)
	assert.Equal(t, "abc", string(got))
}

func TestAFolderThatIsMissing(t *testing.T) {
	b := New(Options{Memory: 1, Dir: t.TempDir() + "/none"})
	_, err := b.Write([]byte("ab"))
	assert.ErrorContains(t, err, "spool: ")
	assert.Zero(t, b.Size())
}
