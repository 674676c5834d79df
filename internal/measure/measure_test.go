package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Few URLs are all in the sample: each that is handed out counts once, with its time.
func TestWaitsOfFew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Waits{By: make([]Histogram, 2)}
		since := map[uint64]int64{}
		var all Histogram
		by := make([]Histogram, 2)
		now := int64(0)
		seq := rapid.Uint64Range(1, 50)
		t.Repeat(map[string]func(*rapid.T){
			"began": func(t *rapid.T) {
				x := seq.Draw(t, "seq")
				since[x] = now
				w.Began(x, now)
			},
			"ended": func(t *rapid.T) {
				x, p := seq.Draw(t, "seq"), rapid.IntRange(1, 3).Draw(t, "priority")
				if at, ok := since[x]; ok {
					all.add(time.Duration(now-at), 1)
					if p <= 2 {
						by[p-1].add(time.Duration(now-at), 1)
					}
					delete(since, x)
				}
				w.Ended(x, p, now, int64(len(since)))
			},
			"later": func(t *rapid.T) { now += rapid.Int64Range(0, int64(time.Hour)).Draw(t, "step") },
			"": func(t *rapid.T) {
				w.Check(t.Errorf)
				require.Equal(t, all, w.All)
				require.Equal(t, by, w.By)
			},
		})
	})
}

// Of many URLs a sample is kept in a table of one size, and counts for about all.
func TestWaitsOfMany(t *testing.T) {
	const n = 200000
	w := Waits{}
	for seq := uint64(1); seq <= n; seq++ {
		w.Began(seq, int64(seq))
	}
	w.Check(t.Errorf)
	require.Equal(t, int64(waitSlots*16), w.Size())
	for seq := uint64(1); seq <= n; seq++ {
		w.Ended(seq, 1, int64(seq)+int64(time.Second), n)
	}
	w.Check(t.Errorf)
	require.InEpsilon(t, n, w.All.Count, 0.1)
	require.Equal(t, time.Second, w.All.Sum/time.Duration(w.All.Count))
	require.Zero(t, w.n)
}

func TestRatesAreOfTheLastMinute(t *testing.T) {
	var r Rates
	second := func(n int64) int64 { return n * int64(time.Second) }
	added, out, done := r.Over(Totals{At: second(1), Added: 7})
	require.Equal(t, []float64{7, 0, 0}, []float64{added, out, done}, "since Open")
	r.Sample(Totals{})
	require.Equal(t, second(1), r.Next)
	added, out, done = r.Over(Totals{At: 5, Added: 3, HandedOut: 2, Done: 1})
	require.Equal(t, []float64{3, 2, 1}, []float64{added, out, done}, "the first second counts as a whole one")
	for i := int64(1); i <= 200; i++ {
		r.Sample(Totals{At: second(i), Added: 10 * i, HandedOut: i, Done: i * i})
	}
	added, out, done = r.Over(Totals{At: second(200), Added: 2000, HandedOut: 200, Done: 40000})
	require.Equal(t, []float64{10, 1, 340}, []float64{added, out, done})
	added, _, _ = r.Over(Totals{At: second(1000), Added: 2000})
	require.Zero(t, added)
}
