package timed

import (
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Blocks come in order of their times and are found by number. A list contains all blocks that are
// unread when it ends, in their state at that time, however many came and went since it began; it
// is built a few at a time.
func TestUnreadBlocksAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u unread
		in := map[uint32]timeheap.Item{}
		var out []uint32 // that were taken out, and may come back
		var l *List
		last := uint32(0)
		push := func(id uint32) {
			it := timeheap.Item{At: rapid.Int64Range(0, 20).Draw(t, "at"), ID: id, Aux: rapid.Uint32().Draw(t, "aux")}
			u.push(it)
			in[id] = it
		}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(*rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "n") {
					last++
					push(last)
				}
			},
			"pop": func(*rapid.T) {
				if len(in) == 0 {
					t.Skip("none")
				}
				at := u.min()
				it := u.pop()
				require.Equal(t, at, it.At)
				require.Equal(t, in[it.ID], it)
				delete(in, it.ID)
				out = append(out, it.ID)
			},
			"take": func(*rapid.T) {
				id := rapid.Uint32Range(1, last+1).Draw(t, "id")
				n := u.find(id)
				it, ok := in[id]
				require.Equal(t, ok, n != 0)
				if ok {
					require.Equal(t, it, u.remove(n))
					delete(in, id)
					out = append(out, id)
				}
			},
			"back": func(*rapid.T) {
				if len(out) == 0 {
					t.Skip("none")
				}
				push(out[len(out)-1])
				out = out[:len(out)-1]
			},
			"begin": func(*rapid.T) {
				if l == nil {
					l = u.begin()
				}
			},
			"list": func(*rapid.T) {
				if l == nil || u.list(l, rapid.IntRange(1, 5).Draw(t, "n")) {
					return
				}
				u.end(l)
				got := map[uint32]timeheap.Item{}
				for _, it := range l.All() {
					require.NotContains(t, got, it.ID, "told twice")
					got[it.ID] = it
				}
				for id, it := range in {
					require.Equal(t, it, got[id])
				}
				l = nil
				require.Empty(t, u.lists)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(in), u.len())
				require.NoError(t, u.items.Check(u.root))
			},
		})
	})
}

// What is listed of many blocks under one lock does not depend on how many there are.
func TestListIsMadeSomeAtATime(t *testing.T) {
	var u unread
	for i := range uint32(3*listedAtOnce + 5) {
		u.push(timeheap.Item{At: int64(i), ID: i + 1})
	}
	l := u.begin()
	steps := 1
	for ; u.list(l, listedAtOnce); steps++ {
		require.LessOrEqual(t, len(l.blocks), steps*listedAtOnce)
	}
	u.end(l)
	require.Equal(t, 4, steps)
	all := l.All()
	require.Len(t, all, u.len())
	require.True(t, slices.IsSortedFunc(all, func(a, b timeheap.Item) int { return int(a.ID) - int(b.ID) }))
}
