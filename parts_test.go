package frontier

import (
	"slices"
	"testing"

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
		c := benchCore()
		qid := c.queueOf(c.ensure(c.hash([]byte("a.example")), "a.example"), 0, 1)
		q := c.queues.at(qid)
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
					count: rapid.IntRange(1, MaxPart).Draw(t, "count"), first: rapid.IntRange(0, 1<<16-MaxPart).Draw(t, "first"),
					taken: map[int]bool{}, dead: map[int]bool{}, chained: true,
				}
				id := c.addPart(Part{Block: block, First: uint16(m.first), Count: uint8(m.count)})
				require.NotContains(t, parts, id)
				c.chainPart(q, id)
				parts[id] = m
				chain = append(chain, id)
			},
			"take": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				c.take(c.parts.at(id), 1<<pos)
				parts[id].taken[pos] = true
			},
			"untake": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				if parts[id].taken[pos] && !parts[id].dead[pos] {
					c.untake(c.parts.at(id), pos)
					delete(parts[id].taken, pos)
				}
			},
			"kill": func(t *rapid.T) {
				id := pick()
				pos := rapid.IntRange(0, parts[id].count-1).Draw(t, "pos")
				if !parts[id].dead[pos] {
					c.kill(id, pos)
					parts[id].taken[pos], parts[id].dead[pos] = true, true
					over(id)
				}
			},
			"kill all": func(t *rapid.T) {
				id := pick()
				m := parts[id]
				for pos := range m.count {
					if !m.dead[pos] {
						c.kill(id, pos)
						m.taken[pos], m.dead[pos] = true, true
					}
				}
				over(id)
			},
			"unchain": func(t *rapid.T) {
				if len(chain) == 0 {
					t.Skip("empty")
				}
				c.unchain(q)
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
				c.unchain(q)
				last := q.chain
				q.chain = 0
				c.chainPart(q, first)
				c.chainAll(q, last)
				chain = append([]uint32{first}, rest...)
			},
			"": func(t *rapid.T) {
				require.Equal(t, chain, append(chain[:0:0], slices.Collect(c.chain(q))...))
				require.Equal(t, len(parts), c.parts.len())
				touched := 0
				for id, m := range parts {
					p := c.parts.at(id)
					d := c.detail(p)
					require.Equal(t, []int{m.first, m.count, len(m.dead)}, []int{int(d.first), int(d.count), int(d.done)})
					require.Equal(t, m.chained, p.chained())
					for pos := range m.count {
						require.Equal(t, !m.taken[pos], c.unread(p)>>pos&1 == 1)
					}
					if len(m.taken) > 0 {
						touched++
					}
				}
				require.Equal(t, touched, c.touchedParts.len())
			},
		})
	})
}
