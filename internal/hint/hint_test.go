package hint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mark(i int) (m storage.Mark) {
	m[0], m[11] = byte(i), 1
	return m
}

var hints = rapid.Custom(func(t *rapid.T) Hint {
	h := Hint{
		Depth:  rapid.IntRange(0, 100).Draw(t, "depth"),
		Weight: float64(rapid.IntRange(0, 100).Draw(t, "weight")) / 4,
		Meta:   rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "meta"),
	}
	if ms := rapid.Int64Range(0, 1000).Draw(t, "not before"); ms > 0 {
		h.NotBefore = time.UnixMilli(ms).UTC()
	}
	return h
})

// Every hint is dropped once, by an answer or by the end of the first walk that began after
// it came; each mark that was dropped and has no new hint has its row deleted.
func TestPendingAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Pending{Latest: rapid.Bool().Draw(t, "latest")}
		type known struct {
			Hint
			walks int // that had begun
		}
		in := map[storage.Mark]known{}
		rows := map[storage.Mark]bool{}
		walks, walking := 0, false
		now := int64(0)
		drop := func(m storage.Mark) {
			p.Drop(m)
			delete(in, m)
		}
		add := func(t *rapid.T) {
			m, h := mark(rapid.IntRange(0, 30).Draw(t, "mark")), hints.Draw(t, "hint")
			limit := rapid.SampledFrom([]int64{0, math.MaxInt64}).Draw(t, "limit")
			got, ok := p.Add(m, h, now, limit)
			old, again := in[m]
			require.Equal(t, again || limit > 0 || len(in) == 0, ok)
			if !ok {
				return
			}
			if again {
				h.Weight, h.Depth = max(h.Weight, old.Weight), min(h.Depth, old.Depth)
				times := slices.DeleteFunc([]time.Time{h.NotBefore, old.NotBefore}, time.Time.IsZero)
				if slices.SortFunc(times, time.Time.Compare); len(times) > 0 {
					h.NotBefore = times[0]
					if p.Latest {
						h.NotBefore = times[len(times)-1]
					}
				}
			}
			got.walk = 0
			require.Equal(t, h, got)
			in[m], rows[m] = known{h, walks}, true
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": add,
			"answer": func(t *rapid.T) {
				if len(in) > 0 {
					byName := func(a, b storage.Mark) int { return int(a[0]) - int(b[0]) }
					drop(rapid.SampledFrom(slices.SortedFunc(maps.Keys(in), byName)).Draw(t, "mark"))
				}
			},
			"walk": func(t *rapid.T) {
				if p.Due(0, 0) == instant.Never {
					require.True(t, walking || len(in) == 0)
					return
				}
				require.False(t, walking)
				p.BeginWalk()
				walks, walking = walks+1, true
			},
			"end": func(t *rapid.T) {
				if !walking {
					t.Skip("none is under way")
				}
				p.DropMissed(func() { t.Fatal("they are few") })
				p.EndWalk(now)
				walking = false
				maps.DeleteFunc(in, func(_ storage.Mark, x known) bool { return x.walks < walks })
			},
			"delete": func(t *rapid.T) {
				deleted, more := p.TakeGone()
				require.False(t, more)
				for _, r := range deleted {
					require.Nil(t, r.Value)
					r.Value = (&Hint{}).Row(mark(0)).Value // any
					m, _, err := Parse(r.Key, r.Value)
					require.NoError(t, err)
					delete(rows, m)
				}
				for m := range rows {
					require.Contains(t, in, m)
				}
			},
			"": func(t *rapid.T) {
				now++
				require.Equal(t, len(in), p.Len())
				for m, x := range in {
					h, ok := p.Get(m)
					h.walk = 0
					require.True(t, ok)
					require.Equal(t, x.Hint, h)
					require.Contains(t, rows, m, "its row went")
				}
				p.Check(func(m storage.Mark) bool { _, ok := in[m]; return ok }, func(f string, args ...any) { t.Fatalf(f, args...) })
			},
		})
	})
}

func TestRowsSayWhatHintsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hints.Draw(t, "hint")
		r := h.Row(mark(7))
		m, got, err := Parse(r.Key, r.Value)
		require.NoError(t, err)
		require.Equal(t, mark(7), m)
		require.True(t, h.NotBefore.Equal(got.NotBefore))
		got.NotBefore = h.NotBefore
		require.Equal(t, fmt.Sprint(h), fmt.Sprint(got))

		_, _, err = Parse(r.Key, r.Value[:len(r.Value)/2])
		require.Error(t, err)
	})
}

// A walk waits for other hints as long as it takes, and ten times that after another.
func TestWalksWaitForOthers(t *testing.T) {
	var p Pending
	require.Equal(t, instant.Never, p.Due(1, 1))
	p.Add(mark(1), Hint{}, 100, math.MaxInt64)
	require.EqualValues(t, 100, p.Due(10, 100), "it is cheap")
	price := int64(4000 * blockPrice)
	require.Equal(t, 100+price, p.Due(4000, 0))
	require.Equal(t, 100+price, p.Due(0, 4000*heapStep))
	p.BeginWalk()
	p.Add(mark(2), Hint{}, 200, math.MaxInt64)
	require.Equal(t, instant.Never, p.Due(10, 100), "one is under way")
	p.DropMissed(func() {})
	p.EndWalk(1000)
	require.Equal(t, 1, p.Len(), "the second came too late")
	require.Equal(t, 1000+price*share, p.Due(4000, 0))
	require.EqualValues(t, 1000, p.Due(10, 100))
}

// What is large is done in steps.
func TestDroppedInSteps(t *testing.T) {
	var p Pending
	const n = 3*stepSize + 5
	for i := range n {
		m := storage.Mark{byte(i), byte(i >> 8)}
		p.Add(m, Hint{}, 0, math.MaxInt64)
	}
	p.BeginWalk()
	pauses := 0
	p.DropMissed(func() { pauses++ })
	require.Equal(t, 3, pauses)
	deleted := 0
	for more := true; more; {
		var rows []storage.Row
		rows, more = p.TakeGone()
		require.LessOrEqual(t, len(rows), stepSize)
		deleted += len(rows)
	}
	require.Equal(t, n, deleted)
	require.Zero(t, p.Size())
}
