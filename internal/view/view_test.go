package view

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Windows after each other have each record that is wanted once, in order, wherever it
// is, and a second listing reads no part that has nothing of what it lists.
func TestWindowsHaveWhatSortingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 2000).Draw(t, "records")
		perPart := rapid.IntRange(1, storage.MaxPart).Draw(t, "per part")
		n := rapid.IntRange(40, 700).Draw(t, "window")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var (
			memory, want []uint64
			parts        []Part
			disk         = map[uint64][]fifo.Loaded{}
		)
		seqs := r.Perm(total)
		if rapid.Bool().Draw(t, "in order") {
			slices.Sort(seqs)
		}
		for i, s := range seqs {
			seq := uint64(s) + 1
			place := r.IntN(10)
			if place > 0 { // on disk
				if k := len(parts); k == 0 || int(parts[k-1].Count) == perPart || i%97 == 0 {
					parts = append(parts, Part{Part: storage.Part{Block: uint32(len(parts) + 1)}})
				}
				p := &parts[len(parts)-1]
				key := Key(p.Part)
				disk[key] = append(disk[key], fifo.Loaded{Pos: int(p.Count), Seq: seq})
				if place < 9 { // others are finished
					p.Want |= 1 << p.Count
				}
				p.Count++
			}
			if place < 3 { // in memory, too
				memory = append(memory, seq)
			}
			if place < 9 {
				want = append(want, seq)
			}
		}
		slices.Sort(want)
		var ranges Ranges
		list := func() (got []uint64, reads int) {
			after := uint64(0)
			for range 2*total + 2 {
				w := begin(after, total)
				w.n = n
				w.MakeRoom()
				for _, seq := range memory {
					if w.Accepts(seq) {
						w.Items = append(w.Items, Item{Seq: seq})
					}
				}
				w.Parts = append(w.Parts, parts...)
				require.NoError(t, w.Read(&ranges, func(p *Part, want uint32) (some []fifo.Loaded, err error) {
					reads++
					for _, x := range disk[Key(p.Part)] {
						if want&(1<<x.Pos) != 0 {
							some = append(some, x)
						}
					}
					return some, nil
				}))
				w.Cut()
				require.LessOrEqual(t, len(w.Items), n)
				for _, x := range w.Items {
					got = append(got, x.Seq)
				}
				if !w.More {
					return got, reads
				}
				after = w.UpTo()
			}
			return got, reads
		}
		got, _ := list()
		require.Equal(t, want, got)
		got, reads := list()
		require.Equal(t, want, got)
		if len(parts) >= rangedFrom && slices.IsSorted(seqs) {
			require.LessOrEqual(t, reads, 2*len(parts)+2*total/n)
			require.Positive(t, ranges.Size())
		}
	})
}

func TestWindowEndsWithAnError(t *testing.T) {
	w := begin(0, 0)
	w.Parts = []Part{{Part: storage.Part{Block: 1, Count: 1}, Want: 1}}
	bad := errors.New("bad")
	require.Equal(t, bad, w.Read(&Ranges{}, func(*Part, uint32) ([]fifo.Loaded, error) { return nil, bad }))
}
