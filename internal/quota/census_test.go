package quota

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// However hosts change while and after they are counted, at the end the sum is right.
func TestCensusAgainstASum(t *testing.T) {
	keys := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		urls := map[string]int64{}
		var c Census
		round, next := 0, -1 // next: key to be seen; -1: no round
		t.Repeat(map[string]func(*rapid.T){
			"change": func(t *rapid.T) {
				key, n := rapid.SampledFrom(keys).Draw(t, "key"), rapid.Int64Range(0, 9).Draw(t, "urls")
				c.Changed(key, n-urls[key])
				urls[key] = n
			},
			"begin": func(*rapid.T) { round, next = c.Begin(), 0 },
			"end": func(t *rapid.T) {
				if next < 0 {
					t.Skip("none is under way")
				}
				old := round
				c.End()
				c.Saw(old, "z", 5)
				c.SawAll(old)
				next = -1
			},
			"see": func(t *rapid.T) {
				switch {
				case next < 0 || next > len(keys):
					t.Skip("nothing is to be seen")
				case next == len(keys):
					c.SawAll(round)
				default:
					c.Saw(round, keys[next], urls[keys[next]])
				}
				next++
			},
			"": func(t *rapid.T) {
				want := int64(0)
				for _, key := range keys[:min(max(next, 0), len(keys))] {
					want += urls[key]
				}
				require.Equal(t, want, c.URLs())
				require.Equal(t, next >= 0, c.Begun())
				require.Equal(t, next > len(keys), c.Complete())
			},
		})
	})
}
