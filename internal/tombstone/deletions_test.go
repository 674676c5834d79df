package tombstone

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A deletion is in force until a sweep ends during which nothing came back, and is kept as long as its sweep,
// the log, or a block may need it.
func TestDeletions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Deletions{Changed: func(*Tombstone) {}}
		seq, block := uint64(0), uint32(0)
		var list []*Deletion
		sweeping := map[*Deletion]bool{}
		again := map[*Deletion]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"enact": func(t *rapid.T) {
				d := NewDeletion(row.Deletion{OfCrawl: true, Crawl: uint32(len(list))})
				seq, block = seq+1, block+1
				d.Number(seq, block)
				block += uint32(rapid.IntRange(0, 1).Draw(t, "blocks")) // while it is committed
				l.Enact(d, block, seq, true)
				list, sweeping[d] = append(list, d), true
			},
			"end": func(t *rapid.T) {
				for d := range sweeping {
					require.Equal(t, !again[d], l.EndSweep(d))
					if !again[d] {
						delete(sweeping, d)
					}
					delete(again, d)
					break
				}
			},
			"revive": func(t *rapid.T) {
				before := len(sweeping)
				for d := range sweeping {
					again[d] = true
				}
				for _, d := range l.Revive() {
					require.False(t, sweeping[d])
					sweeping[d] = true
				}
				require.Len(t, sweeping, len(list))
				require.LessOrEqual(t, before, len(sweeping))
			},
			"checkpoint": func(t *rapid.T) {
				through, oldest := rapid.Uint64Range(0, seq).Draw(t, "through"), rapid.Uint32Range(0, block+1).Draw(t, "oldest")
				l.Written()
				require.Empty(t, l.Rows())
				require.Empty(t, l.Outdated(through, true, func(uint32) bool { return true }), "no count was dropped")
				ds := l.Outdated(through, false, func(block uint32) bool { return block < oldest })
				l.Drop(ds)
				var kept []*Deletion
				for _, d := range list {
					if sweeping[d] || d.Seq > through || d.Block >= oldest {
						kept = append(kept, d)
					}
				}
				require.Len(t, ds, len(list)-len(kept))
				list = kept
			},
			"": func(t *rapid.T) {
				swept := l.Check(seq, block, func(format string, args ...any) { require.Fail(t, fmt.Sprintf(format, args...)) })
				require.Equal(t, len(list)-len(sweeping), swept.Len())
				require.Equal(t, len(sweeping), l.InForce.Len())
				require.Equal(t, list, append([]*Deletion(nil), l.All()...))
			},
		})
	})
}
