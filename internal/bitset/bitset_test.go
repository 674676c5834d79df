package bitset

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSetAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		want := map[int]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"flip": func(t *rapid.T) {
				k := rapid.IntRange(0, 400).Draw(t, "k")
				require.Equal(t, want[k], s.Has(k))
				if want[k] {
					s.Remove(k)
					delete(want, k)
				} else {
					s.Add(k)
					want[k] = true
				}
			},
			"": func(t *rapid.T) {
				low := -1
				for k := range want {
					if low < 0 || k < low {
						low = k
					}
				}
				require.Equal(t, low, s.First())
				require.Equal(t, len(want), s.Len())
			},
		})
	})
}
