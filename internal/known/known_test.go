package known

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/seen"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func mark(n int) (m storage.Mark) {
	binary.LittleEndian.PutUint64(m[:], uint64(n)+1)
	return m
}

// A mark is young from its admission until the checkpoint of a round that covers it, however
// rounds end and whatever comes meanwhile.
func TestURLsAgainstASet(t *testing.T) {
	const marks = 40
	rapid.Check(t, func(t *rapid.T) {
		k := New()
		young := map[storage.Mark]bool{} // neither the store's nor unknown
		store := map[storage.Mark]bool{}
		var applied, under []storage.Mark // in the log; admitted only
		round, covers := false, 0
		checkpoints := int64(0)
		end := func(t *rapid.T) {
			if !round {
				t.Skip()
			}
			round = false
		}
		t.Repeat(map[string]func(*rapid.T){
			"admit": func(t *rapid.T) {
				m := mark(rapid.IntRange(0, marks).Draw(t, "m"))
				if store[m] {
					t.Skip()
				}
				require.Equal(t, !young[m], k.Insert(m))
				if !young[m] {
					young[m], under = true, append(under, m)
				}
			},
			"apply": func(t *rapid.T) {
				if len(under) > 0 {
					k.Log(under[0])
					applied, under = append(applied, under[0]), under[1:]
				}
			},
			"undo": func(t *rapid.T) {
				if n := len(under); n > 0 {
					k.Remove(under[n-1])
					delete(young, under[n-1])
					under = under[:n-1]
				}
			},
			"begin": func(t *rapid.T) {
				if round {
					t.Skip()
				}
				round, covers = true, rapid.IntRange(0, len(applied)).Draw(t, "covers")
				k.BeginRound(&seen.Set{})
				for i := covers; i < k.Logged(); i++ {
					k.Keep(i)
				}
			},
			"complete": func(t *rapid.T) {
				end(t)
				head := k.Head(covers)
				require.True(t, slices.Equal(applied[:covers], head.All()))
				for len(under) > 0 { // what is on its way is applied or undone before a checkpoint
					k.Log(under[0])
					applied, under = append(applied, under[0]), under[1:]
				}
				for _, m := range applied[:covers] {
					store[m] = true
					delete(young, m)
				}
				applied = applied[covers:]
				checkpoints++
				k.EndRound(covers).Free()
			},
			"fail": func(t *rapid.T) {
				end(t)
				k.FailRound().Free()
			},
			"": func(t *rapid.T) {
				for i := range marks {
					require.Equal(t, young[mark(i)], k.Young(mark(i)))
				}
				require.Len(t, applied, k.Logged())
				require.EqualValues(t, len(young)+len(store), k.Total())
				require.Equal(t, checkpoints, k.Checkpoints())
				if !round {
					require.Equal(t, len(young), k.RecentLen())
				}
			},
		})
	})
}
