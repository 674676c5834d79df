package tombstone

import (
	"math"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Numbers that are given and taken back, the last first, against a list.
func TestForgottenAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type one struct {
			d    *Tombstone
			undo func()
		}
		var x Forgotten
		var list []one
		t.Repeat(map[string]func(*rapid.T){
			"forget": func(t *rapid.T) {
				d := &Tombstone{Deletion: row.Deletion{OfCrawl: true, Crawl: rapid.Uint32Range(0, 1).Draw(t, "crawl")}}
				before := x.Version()
				r, undo := x.Forget(d)
				require.Equal(t, d.Crawl, r.Crawl)
				require.Greater(t, x.Version(), before)
				list = append(list, one{d, undo})
			},
			"commit": func(t *rapid.T) {
				if i := slices.IndexFunc(list, func(y one) bool { return y.d.Seq == 0 }); i >= 0 {
					list[i].d.Seq = uint64(i) + 1
				}
			},
			"undo": func(t *rapid.T) {
				if n := len(list); n > 0 && list[n-1].d.Seq == 0 {
					list[n-1].undo()
					list = list[:n-1]
				}
			},
			"": func(t *rapid.T) {
				for crawl := range uint32(2) {
					until := uint64(0)
					for _, y := range list {
						if y.d.Crawl == crawl {
							until = y.d.Seq
							if until == 0 {
								until = math.MaxUint64
							}
						}
					}
					require.Equal(t, until, x.Until("a.org", crawl))
					require.Equal(t, until != 0, x.Of("a.org", crawl) != 0)
				}
			},
		})
		var again Forgotten
		for r := range x.All() {
			again.Put(&r)
		}
		for crawl := range uint32(2) {
			require.Equal(t, x.Of("a.org", crawl), again.Of("a.org", crawl))
			require.Zero(t, again.Until("a.org", crawl))
		}
	})
}
