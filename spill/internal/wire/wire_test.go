package wire

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestScannerReadsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, i := rapid.Uint64().Draw(t, "u"), rapid.Int64().Draw(t, "i")
		p, b := rapid.SliceOf(rapid.Byte()).Draw(t, "p"), rapid.Byte().Draw(t, "b")
		v := binary.AppendUvarint(nil, u)
		v = binary.AppendVarint(v, i)
		v = append(AppendBytes(v, p), b)
		s := Scanner{B: v}
		require.Equal(t, u, s.Uvarint())
		require.Equal(t, i, s.Varint())
		require.Equal(t, string(p), string(s.Bytes()))
		require.Equal(t, b, s.Byte())
		require.NoError(t, s.End())

		s = Scanner{B: v[:rapid.IntRange(0, len(v)-1).Draw(t, "cut")]}
		_, _, _, _ = s.Uvarint(), s.Varint(), s.Bytes(), s.Byte()
		require.ErrorIs(t, s.End(), ErrShort)
		require.Zero(t, s.Uvarint(), "after a fault")
	})
}

func TestScannerRefuses(t *testing.T) {
	s := Scanner{B: []byte{7, 8}}
	assert.Zero(t, s.Limited(6))
	assert.ErrorIs(t, s.End(), ErrNumber)
	s = Scanner{B: []byte{7, 8}}
	assert.EqualValues(t, 7, s.Limited(7))
	assert.ErrorIs(t, s.End(), errLong)
	s = Scanner{B: []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}}
	assert.Zero(t, s.Uvarint())
	assert.ErrorIs(t, s.End(), ErrNumber)
}

func TestSeal(t *testing.T) {
	key := []byte("key")
	v := append(AppendSeal(nil), "content"...)
	CloseSeal(key, v)
	got, err := Unseal(key, v)
	require.NoError(t, err)
	assert.Equal(t, "content", string(got))
	assert.True(t, Whole(key, v))

	_, err = Unseal([]byte("other key"), v)
	assert.ErrorIs(t, err, ErrChecksum)
	_, err = Unseal(key, v[:SealLen-1])
	assert.ErrorIs(t, err, ErrShort)
	for bit := range 8 * len(v) {
		v[bit/8] ^= 1 << (bit % 8)
		_, err := Unseal(key, v)
		assert.Error(t, err, "bit %d", bit)
		v[bit/8] ^= 1 << (bit % 8)
	}
	v[0]++
	assert.True(t, Whole(key, v), "of another version")
	_, err = Unseal(key, v)
	assert.Error(t, err)
}
