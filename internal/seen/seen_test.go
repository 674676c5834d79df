package seen

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// mark returns a fingerprint whose high bits, and so its slot, collide with many.
func mark(n uint32) (m [12]byte) {
	binary.LittleEndian.PutUint64(m[:8], uint64(n%3)<<63|uint64(n%5)<<(50-shardBits)|uint64(n%7))
	binary.LittleEndian.PutUint32(m[8:], n)
	return m
}

func TestSetAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		known := map[uint32]bool{}
		draw := func() uint32 { return rapid.Uint32Range(0, 200).Draw(t, "n") }
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(*rapid.T) {
				n := draw()
				require.Equal(t, !known[n], s.Insert(mark(n)))
				known[n] = true
			},
			"insert many": func(*rapid.T) {
				from := draw()
				for n := from; n < from+50; n++ {
					require.Equal(t, !known[n], s.Insert(mark(n)))
					known[n] = true
				}
			},
			"remove": func(*rapid.T) {
				n := draw()
				s.Remove(mark(n))
				delete(known, n)
			},
			"remove many": func(*rapid.T) {
				from := draw()
				for n := from; n < from+50; n++ {
					s.Remove(mark(n))
					delete(known, n)
				}
			},
			"reserve": func(*rapid.T) { s.Reserve(rapid.IntRange(0, 5000).Draw(t, "n")) },
			"": func(*rapid.T) {
				require.Equal(t, len(known), s.Len())
				all := map[[12]byte]bool{}
				for m := range s.All() {
					all[m] = true
				}
				require.Len(t, all, s.Len())
				for n := range uint32(260) {
					require.Equal(t, known[n], s.Has(mark(n)), "%d", n)
				}
			},
		})
	})
}

func TestSetOfManyIsSmall(t *testing.T) {
	var s Set
	x := uint64(1)
	next := func() (m [12]byte) {
		x = x*6364136223846793005 + 1442695040888963407
		binary.LittleEndian.PutUint64(m[:8], x^x>>29)
		binary.LittleEndian.PutUint32(m[8:], uint32(x>>32))
		return m
	}
	const n = 300_000
	for range n {
		require.True(t, s.Insert(next()))
	}
	x = 1
	for range n {
		require.True(t, s.Has(next()))
	}
	require.False(t, s.Has(next()))
	require.Equal(t, n, s.Len())
	require.LessOrEqual(t, s.Size(), int64(n*12*5/4*5/4+64<<10))
}

func TestReservedRoomIsNotGrownAgain(t *testing.T) {
	var s Set
	s.Reserve(100_000)
	was := s.Size()
	for n := range uint32(100) {
		var m [12]byte
		m[0], m[7] = byte(n), byte(n*37)
		s.Insert(m)
	}
	require.Equal(t, was, s.Size())
	require.LessOrEqual(t, was, int64(100_000*12*3/2))
}

// The fingerprint of all zeros, which marks empty slots, can be kept too.
func TestZeroFingerprint(t *testing.T) {
	var s Set
	require.False(t, s.Has([12]byte{}))
	s.Remove([12]byte{})
	require.True(t, s.Insert([12]byte{}))
	require.False(t, s.Insert([12]byte{}))
	require.True(t, s.Has([12]byte{}))
	s.Remove([12]byte{})
	require.Zero(t, s.Len())
}
