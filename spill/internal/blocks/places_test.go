package blocks

import (
	"testing"
	"unsafe"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// placeOf makes a place up.
func placeOf(n uint32) kv.Place { return *(*kv.Place)(unsafe.Pointer(&[3]uint32{n, n, n})) }

// What is remembered is what was set last. With room for all nothing is forgotten, with less
// the memory is kept to.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Places{Most: rapid.SampledFrom([]int64{0, 2 * pageBytes, 1 << 30}).Draw(t, "most")}
		want := map[uint32]kv.Place{}
		block := func(t *rapid.T) uint32 { return rapid.Uint32Range(0, 6*pageBlocks).Draw(t, "block") }
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				b, at := block(t), placeOf(rapid.Uint32Range(1, 1<<32-1).Draw(t, "place"))
				s.Set(b, at)
				want[b] = at
			},
			"forget": func(t *rapid.T) { b := block(t); s.Forget(b); delete(want, b) },
			"clear":  func(*rapid.T) { s.Clear(); clear(want) },
			"": func(t *rapid.T) {
				known := 0
				for b := range uint32(6*pageBlocks + 1) {
					if at, ok := s.Of(b); ok {
						known++
						require.Equal(t, want[b], at)
					}
				}
				require.LessOrEqual(t, s.Bytes(), max(s.Most, pageBytes))
				if s.Most == 1<<30 {
					require.Len(t, want, known)
				}
				if len(want) == 0 {
					require.Zero(t, s.Bytes())
				}
			},
		})
	})
}
