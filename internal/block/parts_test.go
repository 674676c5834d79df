package block

import (
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Parts know which of their records may be read, and are forgotten when all are
// finished, whatever happens to others of the chain.
func TestPartsAgainstAMap(t *testing.T) {
	type model struct {
		count, first int
		taken, dead  map[int]bool
		chained      bool
	}
	rapid.Check(t, func(t *rapid.T) {
		c := &Table{}
		var q Chain
		parts := map[uint32]*model{}
		var chain []uint32
		block := uint32(0)
		pick := func() uint32 {
			ids := make([]uint32, 0, len(parts))
			for id := range parts {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				t.Skip("no parts")
			}
			slices.Sort(ids)
			return rapid.SampledFrom(ids).Draw(t, "part")
		}
		over := func(id uint32) {
			if m := parts[id]; len(m.dead) == m.count && !m.chained {
				delete(parts, id)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				block++
				m := &model{
					count: rapid.IntRange(1, storage.MaxPart).Draw(t, "count"), first: rapid.IntRange(0, 1<<16-storage.MaxPart).Draw(t, "first"),
					taken: map[int]bool{}, dead: map[int]bool{}, chained: true,
				}
				id := c.AddPart(storage.Part{Block: block, First: uint16(m.first), Count: uint8(m.count)})
				require.NotContains(t, parts, id)
				c.Append(&q, id)
				parts[id] = m
				chain = append(chain, id)
			},
			"take": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				c.Take(id, 1<<pos)
				parts[id].taken[pos] = true
			},
			"untake": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				if parts[id].taken[pos] && !parts[id].dead[pos] {
					c.Untake(id, pos)
					delete(parts[id].taken, pos)
				}
			},
			"kill": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				if !parts[id].dead[pos] {
					c.Kill(id, pos)
					parts[id].taken[pos], parts[id].dead[pos] = true, true
					over(id)
				}
			},
			"kill all": func(t *rapid.T) {
				id := pick()
				m := parts[id]
				for pos := range m.count {
					if !m.dead[pos] {
						c.Kill(id, pos)
						m.taken[pos], m.dead[pos] = true, true
					}
				}
				over(id)
			},
			"unchain": func(t *rapid.T) {
				if len(chain) == 0 {
					t.Skip("empty")
				}
				c.Unchain(&q)
				parts[chain[0]].chained = false
				over(chain[0])
				chain = chain[1:]
			},
			"put the first behind": func(t *rapid.T) { // two chains become one
				if len(chain) < 2 {
					t.Skip("too short")
				}
				first, rest := chain[0], chain[1:]
				if m := parts[first]; len(m.dead) == m.count {
					t.Skip("it would be forgotten")
				}
				c.Unchain(&q)
				last := q
				q = 0
				c.Append(&q, first)
				c.Join(&q, last)
				chain = append([]uint32{first}, rest...)
			},
			"kill what is unread": func(t *rapid.T) {
				id := pick()
				m := parts[id]
				if !m.chained {
					t.Skip("its record was taken")
				}
				n := 0
				for pos := range m.count {
					if !m.taken[pos] {
						m.taken[pos], m.dead[pos] = true, true
						n++
					}
				}
				require.Equal(t, n, c.KillUnread(id))
			},
			"find the next": func(t *rapid.T) {
				id, which := c.NextUnread(&q)
				for len(chain) > 0 && chain[0] != id {
					parts[chain[0]].chained = false
					require.Len(t, parts[chain[0]].taken, parts[chain[0]].count)
					over(chain[0])
					chain = chain[1:]
				}
				require.Equal(t, id == 0, len(chain) == 0)
				require.Equal(t, id == 0, which == 0)
			},
			"checkpoint": func(t *rapid.T) {
				dirty := c.TakeDirty()
				for _, id := range dirty {
					d, ok := c.Clean(id)
					require.Equal(t, ok, c.Has(id))
					for pos := range len(d.Bits) * 8 {
						require.Equal(t, d.Bits[pos/8]>>(pos%8)&1 == 1, c.IsDead(id, pos))
					}
				}
				if rapid.Bool().Draw(t, "fails") {
					for _, id := range dirty {
						c.Soil(id)
					}
				}
			},
			"": func(t *rapid.T) {
				chained := map[uint32]bool{}
				for _, id := range chain {
					chained[id] = true
				}
				lost := false // a part that is unchained here may hold records that are not taken
				for _, m := range parts {
					lost = lost || !m.chained && len(m.taken) < m.count
				}
				if !lost {
					c.Check(chained, nil, true, t.Errorf)
				}
				require.Equal(t, chain, append(chain[:0:0], slices.Collect(c.All(q))...))
				require.Equal(t, len(parts), c.parts.Len())
				touched := 0
				for id, m := range parts {
					p := c.parts.At(id)
					d := c.detail(p)
					require.Equal(t, []int{m.first, m.count, len(m.dead)}, []int{int(d.first), int(d.count), int(d.done)})
					require.Equal(t, m.chained, p.chained())
					for pos := range m.count {
						require.Equal(t, !m.taken[pos], c.Unread(id)>>pos&1 == 1)
					}
					if len(m.taken) > 0 {
						touched++
					}
				}
				require.Equal(t, touched, c.touched.Len())
			},
		})
	})
}

// A lost part is found; while records are moved, one just added is none.
func TestLostParts(t *testing.T) {
	lost := func(quiet bool, taken uint32) (n int) {
		c := &Table{}
		c.Take(c.AddPart(storage.Part{Block: 1, Count: 2}), taken)
		c.Check(nil, nil, quiet, func(string, ...any) { n++ })
		return n
	}
	require.Equal(t, []int{1, 1, 0}, []int{lost(true, 0), lost(true, 1), lost(true, 3)})
	require.Equal(t, []int{0, 1, 0}, []int{lost(false, 0), lost(false, 1), lost(false, 3)})
}
