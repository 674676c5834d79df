package count

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is the counts, and what happened to each, in maps.
type model struct {
	of   map[string]Numbers
	dead map[string]uint64
	seq  uint64
}

// store is rows in a map.
type store map[string][]byte

func (s store) Row(key string) ([]byte, bool, error) { v, ok := s[key]; return v, ok, nil }

func (s store) Rows(prefix, from string, fn func(key string, value []byte) bool) error {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if strings.HasPrefix(key, prefix) && key >= from && !fn(key, s[key]) {
			break
		}
	}
	return nil
}

func (m *model) sum(crawl uint32) (s row.CountSum) {
	for key, n := range m.of {
		if strings.HasPrefix(key, row.CountsOf(crawl)) && n.Total > 0 {
			s.Total += n.Total
			s.Finished += n.Finished
			s.Hosts++
			if n.Total > n.Finished {
				s.Active++
			}
		}
	}
	return s
}

// Batches that are written or fail, deletions among them, and the dropping of what is dead: the rows, and
// a table in memory, have the numbers of a map.
func TestTablesAgainstAMap(t *testing.T) {
	hosts := []string{"a.example", "b.a.example", "ba.example", "example", "10.0.0.1"}
	rapid.Check(t, func(t *rapid.T) {
		m := model{of: map[string]Numbers{}, dead: map[string]uint64{}}
		rows := store{}
		stored, inMemory := NewTable(rows), NewTable(nil)
		write := func(rs []storage.Row) {
			for _, r := range rs {
				if r.Value == nil {
					delete(rows, r.Key)
				} else {
					rows[r.Key] = r.Value
				}
			}
		}
		dead := func(host string, crawl uint32) uint64 { return m.dead[row.CountOf(crawl, host)] }
		draw := func() (string, uint32) {
			return rapid.SampledFrom(hosts).Draw(t, "host"), rapid.Uint32Range(0, 1).Draw(t, "crawl")
		}
		t.Repeat(map[string]func(*rapid.T){
			"batch": func(t *rapid.T) {
				c := Changes{Dead: dead}
				next := maps.Clone(m.of)
				type one struct {
					host  string
					crawl uint32
					Numbers
				}
				var ones []one
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					host, crawl := draw()
					key := row.CountOf(crawl, host)
					x := Numbers{Total: 1, Finished: rapid.Int64Range(0, 1).Draw(t, "finished")}
					if now := next[key]; rapid.Bool().Draw(t, "ends") && now.Total > 0 {
						x = Numbers{Total: -1, Finished: -min(now.Finished, x.Finished)}
						if now.Total == now.Finished {
							x.Finished = -1
						}
					}
					n := next[key]
					n.Add(x, 1)
					next[key] = n
					c.Add(host, crawl, x, 1)
					ones = append(ones, one{host, crawl, x})
				}
				m.seq++
				before := stored.Version()
				stored.Begin(&c)
				rs, err := stored.Write(m.seq)
				require.NoError(t, err)
				stored.Written()
				if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
					stored.End(false)
					return
				}
				write(rs)
				for _, x := range ones {
					key := row.CountOf(x.crawl, x.host)
					n, _ := Load(key, rows.Row)
					shown := stored.Visible(key, n)
					stored.Note(x.host, x.crawl, x.Numbers, 1, m.seq)
					m.of[key] = Numbers{m.of[key].Total + x.Total, m.of[key].Finished + x.Finished}
					if after := stored.Visible(key, n); shown != after && m.dead[key] < shown.Seq {
						require.Equal(t, x.Numbers, Numbers{after.Total - shown.Total, after.Finished - shown.Finished})
					}
					inMemory.Change(x.host, x.crawl, x.Numbers, 1, m.seq, dead)
				}
				stored.End(true)
				require.Greater(t, stored.Version(), before)
			},
			"deletion": func(t *rapid.T) {
				host, crawl := draw()
				key := row.CountOf(crawl, host)
				m.seq++
				m.dead[key] = m.seq
				delete(m.of, key)
				for _, table := range []*Table{stored, inMemory} {
					n := table.found(key, rows.Row)
					if n == (row.Count{}) || n.Seq > m.seq {
						continue
					}
					require.NoError(t, table.Drop([]Dead{{key, crawl, n}}, func(rs []storage.Row) error {
						if table == stored {
							write(rs)
						}
						return nil
					}))
				}
			},
			"": func(t *rapid.T) {
				for crawl := range uint32(2) {
					require.Equal(t, m.sum(crawl), stored.Sum(crawl))
					require.Equal(t, m.sum(crawl), inMemory.Sum(crawl))
					var keys []string
					_ = inMemory.Each(row.CountsOf(crawl), "", func(key, _ string, _ uint32, n row.Count) bool {
						require.Equal(t, m.of[key], Numbers{n.Total, n.Finished})
						keys = append(keys, key)
						return true
					})
					require.True(t, slices.IsSorted(keys))
				}
				for _, host := range hosts {
					for crawl := range uint32(2) {
						key := row.CountOf(crawl, host)
						for name, table := range map[string]*Table{"stored": stored, "in memory": inMemory} {
							n := table.found(key, rows.Row)
							require.Equal(t, m.of[key], Numbers{n.Total, n.Finished}, "%s %q", name, key)
						}
					}
				}
			},
		})
	})
}

func (t *Table) found(key string, read Read) row.Count {
	if !t.Stored() {
		return t.Of(key)
	}
	n, _ := Load(key, read)
	return n
}

// A host that is done takes no memory of a table whose counts are rows.
func TestWhatIsStoredTakesNoMemory(t *testing.T) {
	rows := map[string][]byte{}
	table := NewTable(store{})
	none := func(string, uint32) uint64 { return 0 }
	sizes := map[int64]bool{}
	for i := range 10_000 {
		c := Changes{Dead: none}
		c.Add(fmt.Sprintf("h%d.example", i), 0, Numbers{1, 1}, 1)
		table.Begin(&c)
		rs, err := table.Write(uint64(i + 1))
		require.NoError(t, err)
		table.End(true)
		sizes[table.Size()] = true
		rows[rs[0].Key] = rs[0].Value
	}
	require.Len(t, sizes, 1)
	require.Len(t, rows, 10_000)
	require.Equal(t, row.CountSum{Total: 10_000, Finished: 10_000, Hosts: 10_000}, table.Sum(0))
}
