package timed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// fake is a block on disk.
type fake struct {
	records []Loaded
	unread  map[int]bool // positions of live records that are on disk only
}

// Each record of a block is read once, or buried, or lost, in order of time; nothing else
// happens to any.
func TestBlocksAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table block.Table
		b := NewBlocks(&table)
		in := map[uint32]*fake{} // with unread records
		lost := map[uint32]bool{}
		var reading uint32
		last, through := uint32(0), uint32(0)
		begun := func(it timeheap.Item) {
			require.Equal(t, it, b.Reading())
			if reading = it.ID; reading != 0 {
				require.Len(t, in[reading].unread, Live(it))
				for pos := range in[reading].unread {
					require.GreaterOrEqual(t, pos, First(it))
				}
			}
		}
		idle := func(t *rapid.T) {
			if reading != 0 {
				t.Skip("busy")
			}
		}
		busy := func(t *rapid.T) (*fake, []Loaded) {
			if reading == 0 {
				t.Skip("idle")
			}
			return in[reading], in[reading].records[First(b.Reading()):]
		}
		ended := func() {
			if len(in[reading].unread) == 0 {
				delete(in, reading)
			}
			reading = 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				last += rapid.Uint32Range(1, 700).Draw(t, "id")
				x := &fake{unread: map[int]bool{}}
				at := rapid.Int64Range(1, 100).Draw(t, "at")
				for pos := range rapid.IntRange(1, 40).Draw(t, "records") {
					x.unread[pos] = true
					r := Loaded{Pos: pos, At: at}
					r.Host = fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "host"))
					x.records = append(x.records, r)
					at += rapid.Int64Range(0, 3).Draw(t, "later")
				}
				in[last] = x
				table.Made(last)
				b.Add(Item(last, x.records[0].At, 0, len(x.records)))
			},
			"begin": func(t *rapid.T) {
				if idle(t); b.Len() > 0 {
					at := b.MinUnread()
					it := b.Begin()
					require.Equal(t, at, it.At)
					begun(it)
				}
			},
			"begin one": func(t *rapid.T) {
				idle(t)
				id := rapid.Uint32Range(1, last+1).Draw(t, "id")
				it := b.BeginBlock(id)
				require.Equal(t, in[id] != nil, it.ID == id)
				begun(it)
			},
			"purge": func(t *rapid.T) {
				through = rapid.Uint32Range(0, last).Draw(t, "through")
				b.Purge(through)
				require.Equal(t, through > 0 && b.Len() > 0 || b.Purging(), b.Purging())
			},
			"begin purge": func(t *rapid.T) {
				if idle(t); b.Purging() {
					begun(b.BeginPurge())
				}
			},
			"bury": func(t *rapid.T) {
				x, rs := busy(t)
				n := len(x.unread)
				got := b.Bury(rs, func(r *Loaded) bool {
					require.True(t, x.unread[r.Pos])
					dead := rapid.Bool().Draw(t, "dead")
					if dead {
						delete(x.unread, r.Pos)
					}
					return dead
				})
				require.Equal(t, n-len(x.unread), got)
			},
			"arrive": func(t *rapid.T) {
				x, rs := busy(t)
				id, now := reading, rapid.Int64Range(0, 150).Draw(t, "now")
				n := 0
				if rapid.Bool().Draw(t, "some") {
					n = b.Soon(rs, now, now+10, rapid.Bool().Draw(t, "short"))
				}
				b.Arrive(rs, n, now, func(part uint32, run []Loaded, wait bool) {
					require.LessOrEqual(t, len(run), storage.MaxPart)
					for i, r := range run {
						require.True(t, x.unread[r.Pos])
						require.Equal(t, run[0].Host, r.Host)
						require.Equal(t, run[0].Pos+i, r.Pos)
						require.Equal(t, wait, r.At <= now)
						delete(x.unread, r.Pos)
						table.Take(part, 1<<i)
						table.Kill(part, i)
					}
				})
				for pos := range x.unread {
					require.GreaterOrEqual(t, pos, rs[0].Pos+n, "block %d", id)
				}
				ended()
			},
			"put back": func(t *rapid.T) {
				busy(t)
				b.PutBack(rapid.Int64Range(0, 200).Draw(t, "at"))
				ended()
			},
			"lose": func(t *rapid.T) {
				x, _ := busy(t)
				if len(x.unread) == 0 {
					t.Skip("nothing to lose")
				}
				require.Len(t, x.unread, b.Lose())
				lost[reading] = true
				delete(in, reading)
				reading = 0
			},
			"": func(t *rapid.T) {
				want := int64(0)
				for id, x := range in {
					want += int64(len(x.unread))
					require.True(t, b.Has(id))
					require.LessOrEqual(t, b.Oldest(), id)
				}
				for id := range lost {
					require.False(t, b.Has(id))
					require.LessOrEqual(t, b.Oldest(), id)
				}
				if reading != 0 {
					return // it may have been buried in part
				}
				due, never := b.Check(map[uint32]int{}, func(format string, args ...any) { t.Errorf(format, args...) })
				require.Equal(t, want, due)
				require.Zero(t, never)
				require.Equal(t, len(in)+len(lost) == 0, b.Empty())
				require.Equal(t, last, b.Last())
			},
		})
	})
}

// A purge gives each block up to its number once, whatever comes back meanwhile.
func TestPurgeGivesEachBlockOnce(t *testing.T) {
	var table block.Table
	b := NewBlocks(&table)
	const n = 100
	for id := uint32(1); id <= n; id++ {
		b.Add(Item(id, int64(id%7), 0, 1))
	}
	b.Purge(n - 10)
	var got []uint32
	for b.Purging() {
		if it := b.BeginPurge(); it.ID != 0 {
			got = append(got, it.ID)
			b.PutBack(it.At)
		}
	}
	slices.Sort(got)
	require.Len(t, got, n-10)
	require.Equal(t, got, slices.Compact(slices.Clone(got)))
	require.EqualValues(t, n-10, got[len(got)-1])
	require.Equal(t, n, b.Len())
}
