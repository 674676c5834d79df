package dormant

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A host leaves in turn, once all calls are settled that were submitted before it
// departed; an entry counts under the place that Depart returned.
func TestHostsLeaveInTurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type departure struct {
			host  uint32
			place int32
			after int
		}
		var d Hosts
		var want []departure
		var unwritten []uint32
		submitted, settled := 0, 0
		host := rapid.Uint32Range(1, 9)
		t.Repeat(map[string]func(*rapid.T){
			"depart": func(t *rapid.T) {
				h := host.Draw(t, "host")
				want = append(want, departure{h, d.Depart(h), submitted})
			},
			"submit": func(*rapid.T) {
				submitted++
				require.Equal(t, len(want) > 0 || len(unwritten) > 0, d.Submitted())
			},
			"settle": func(t *rapid.T) { settled = rapid.IntRange(settled, submitted).Draw(t, "settled") },
			"pop": func(t *rapid.T) {
				h, place, ok := d.Pop(submitted - settled)
				if len(want) == 0 || want[0].after > settled {
					require.False(t, ok)
					return
				}
				require.True(t, ok)
				require.Equal(t, want[0], departure{h, place, want[0].after})
				want = want[1:]
			},
			"must write": func(t *rapid.T) {
				h := host.Draw(t, "host")
				unwritten = append(unwritten, h)
				require.Equal(t, Unwritten, d.MustWrite(h))
			},
			"write": func(t *rapid.T) {
				n := min(rapid.IntRange(1, 3).Draw(t, "n"), len(unwritten))
				require.Equal(t, append([]uint32(nil), unwritten[:n]...), append([]uint32(nil), d.TakeUnwritten(n)...))
				unwritten = unwritten[n:]
			},
			"": func(*rapid.T) {
				require.Equal(t, len(want), d.Len())
				places := map[departure]bool{}
				d.Places(func(h uint32, place int32) { places[departure{host: h, place: place}] = true })
				for _, x := range want {
					require.True(t, places[departure{host: x.host, place: x.place}])
				}
				for _, h := range unwritten {
					require.True(t, places[departure{host: h, place: Unwritten}])
				}
			},
		})
	})
}

func TestWhatIsKnownOfThoseThatLeft(t *testing.T) {
	var d Hosts
	require.False(t, d.MayHaveRow(7))
	d.HasRow(7)
	require.True(t, d.MayHaveRow(7))
	require.Equal(t, 1, d.Rows())
	before := d.Departures(7)
	d.Gone(7 + shards)
	require.NotEqual(t, before, d.Departures(7), "one with a like hash may be the same")
	require.Equal(t, uint32(0), d.Departures(8))
}
