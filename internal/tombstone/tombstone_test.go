package tombstone

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A naive set searches all tombstones added since a target had none.
func TestSetAgainstAList(t *testing.T) {
	hosts := []string{"a.org", "b.a.org", "ba.org", "org", "10.0.0.1", "0.1", "a.org."}
	rapid.Check(t, func(t *rapid.T) {
		var set Set
		var present, counting []*Tombstone
		same := func(x *Tombstone) func(*Tombstone) bool {
			return func(y *Tombstone) bool {
				return x.Scope == y.Scope && x.OfCrawl == y.OfCrawl && x.Crawl == y.Crawl
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				seq := rapid.Uint64Range(1, 1000).Filter(func(n uint64) bool {
					return !slices.ContainsFunc(counting, func(x *Tombstone) bool { return x.Seq == n })
				}).Draw(t, "seq")
				x := &Tombstone{Deletion: row.Deletion{Seq: seq, Block: uint32(seq % 7)}}
				if rapid.Bool().Draw(t, "of a crawl") {
					x.OfCrawl, x.Crawl = true, rapid.Uint32Range(0, 2).Draw(t, "crawl")
				}
				if rapid.Bool().Draw(t, "of a scope") {
					x.Scope = row.Scope{Name: rapid.SampledFrom(hosts).Draw(t, "name"), Domain: rapid.Bool().Draw(t, "domain"), Named: true}
				}
				set.Add(x)
				present, counting = append(present, x), append(counting, x)
			},
			"remove": func(t *rapid.T) {
				if len(present) == 0 {
					t.Skip("there is none")
				}
				i := rapid.IntRange(0, len(present)-1).Draw(t, "i")
				x := present[i]
				set.Remove(x)
				if present = slices.Delete(present, i, i+1); !slices.ContainsFunc(present, same(x)) {
					counting = slices.DeleteFunc(counting, same(x))
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(present), set.Len())
				for _, host := range hosts {
					for crawl := range uint32(3) {
						var want *Tombstone
						for _, x := range counting {
							if concerns(x, host, crawl) && (want == nil || x.Seq > want.Seq) {
								want = x
							}
						}
						got := set.Of([]byte(host), crawl)
						require.Same(t, want, got.By, "%s of crawl %d", host, crawl)
						if want != nil {
							require.Equal(t, Dead{Seq: want.Seq, Block: want.Block}, Dead{Seq: got.Seq, Block: got.Block})
						}
					}
				}
				for crawl := range uint32(3) {
					has := slices.ContainsFunc(present, func(x *Tombstone) bool { return x.OfCrawl && x.Crawl == crawl && !x.Scope.Named })
					require.Equal(t, has, set.HasCrawl(crawl))
				}
			},
		})
	})
}

// concerns says it with the labels of the host.
func concerns(x *Tombstone, host string, crawl uint32) bool {
	switch {
	case x.OfCrawl && x.Crawl != crawl:
		return false
	case !x.Scope.Named || host == x.Scope.Name:
		return true
	case !x.Scope.Domain || host == "10.0.0.1":
		return false
	}
	return strings.HasSuffix(host, "."+x.Scope.Name)
}

func TestContains(t *testing.T) {
	hosts := []string{"a.org", "b.a.org", "ba.org", "org", "10.0.0.1"}
	for _, x := range []*Tombstone{
		{},
		{Deletion: row.Deletion{OfCrawl: true, Crawl: 1}},
		{Deletion: row.Deletion{OfCrawl: true, Crawl: 1, Scope: row.Scope{Name: "a.org", Named: true}}},
		{Deletion: row.Deletion{OfCrawl: true, Crawl: 1, Scope: row.Scope{Name: "a.org", Domain: true, Named: true}}},
		{Deletion: row.Deletion{Scope: row.Scope{Name: "a.org", Named: true}}},
		{Deletion: row.Deletion{Scope: row.Scope{Name: "a.org", Domain: true, Named: true}}},
		{Deletion: row.Deletion{Scope: row.Scope{Name: "0.1", Domain: true, Named: true}}},
		{Deletion: row.Deletion{Scope: row.Scope{Name: "10.0.0.1", Domain: true, Named: true}}},
	} {
		for _, host := range hosts {
			for crawl := range uint32(3) {
				require.Equal(t, concerns(x, host, crawl), x.Contains([]byte(host), crawl), "%+v: %s of crawl %d", x.Deletion, host, crawl)
			}
			require.Equal(t, concerns(x, host, x.Crawl), x.ContainsHost([]byte(host)))
		}
		require.Equal(t, x.Scope.Named && !x.Scope.Domain, x.OfHost())
	}
}

func TestOfDoesNotAllocate(t *testing.T) {
	var set Set
	set.Add(&Tombstone{Deletion: row.Deletion{Seq: 1, Scope: row.Scope{Name: "a.org", Domain: true, Named: true}}})
	host := []byte("b.a.org")
	require.Zero(t, testing.AllocsPerRun(100, func() { set.Of(host, 1) }))
}
