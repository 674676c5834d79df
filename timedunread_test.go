package frontier

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Blocks come in order of their times and are found by their numbers. A list has all
// that are unread when it ends as they are then, however many came and went since it
// began, and is made a few at a time.
func TestUnreadBlocksAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var u unreadBlocks
		in := map[uint32]timeItem{}
		var out []uint32 // that were taken out, and may come back
		var l *timedList
		last := uint32(0)
		push := func(id uint32) {
			it := timeItem{at: rapid.Int64Range(0, 20).Draw(t, "at"), id: id, aux: rapid.Uint32().Draw(t, "aux")}
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
				require.Equal(t, at, it.at)
				require.Equal(t, in[it.id], it)
				delete(in, it.id)
				out = append(out, it.id)
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
				got := map[uint32]timeItem{}
				for _, it := range l.all() {
					require.NotContains(t, got, it.id, "told twice")
					got[it.id] = it
				}
				for id, it := range in {
					require.Equal(t, it, got[id])
				}
				l = nil
				require.Empty(t, u.lists)
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(in), u.len())
				require.NoError(t, u.items.check(u.root))
			},
		})
	})
}

// What is listed of many blocks under one lock does not depend on how many there are.
func TestListIsMadeSomeAtATime(t *testing.T) {
	var u unreadBlocks
	for i := range uint32(3*listedAtOnce + 5) {
		u.push(timeItem{at: int64(i), id: i + 1})
	}
	l := u.begin()
	steps := 1
	for ; u.list(l, listedAtOnce); steps++ {
		require.LessOrEqual(t, len(l.blocks), steps*listedAtOnce)
	}
	u.end(l)
	require.Equal(t, 4, steps)
	all := l.all()
	require.Len(t, all, u.len())
	require.True(t, slices.IsSortedFunc(all, func(a, b timeItem) int { return int(a.id) - int(b.id) }))
}
