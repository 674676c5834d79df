package fifo

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// disk is a queue with the blocks that its parts lie in.
type disk struct {
	records record.Arena
	blocks  block.Table
	s       Store
	q       Queue
	parts   map[uint32][]uint64 // by part: the numbers of its records
	last    uint32              // block
}

func newDisk() *disk {
	d := &disk{parts: map[uint32][]uint64{}}
	d.s = New(&d.records, &d.blocks)
	return d
}

func (d *disk) url(seq uint64) []byte { return fmt.Appendf(nil, "http://a.example/%d", seq) }

func (d *disk) new(seq uint64) arena.Ref {
	return d.records.Store(seq, (&record.Body{URL: d.url(seq)}).Append(nil))
}

// home gives the first records of the queue that have none a home, up to n that follow
// each other.
func (d *disk) home(n int) {
	var refs []arena.Ref
	var seqs []uint64
	for ref, behind := range d.s.After(&d.q, 0) {
		if len(refs) > 0 && (behind || d.records.At(ref).Part() != 0) || len(refs) == n {
			break
		}
		if d.records.At(ref).Part() == 0 {
			refs, seqs = append(refs, ref), append(seqs, d.records.At(ref).Seq())
		}
	}
	if len(refs) == 0 {
		return
	}
	d.last++
	id := d.blocks.AddPart(storage.Part{Block: d.last, Count: uint8(len(refs))})
	d.parts[id] = seqs
	for i, ref := range refs {
		d.s.SetHome(ref, id, i)
	}
}

// load reads what the next record needs, and reports whether there is one.
func (d *disk) load() bool {
	if id, which := d.s.Next(&d.q); id != 0 {
		var rs []Loaded
		for m := which; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			rs = append(rs, Loaded{Pos: i, Seq: d.parts[id][i], Body: (&record.Body{URL: d.url(d.parts[id][i])}).Append(nil)})
		}
		d.s.Install(&d.q, id, rs)
	}
	return d.q.Resident()
}

// all lists what waits, in order.
func (d *disk) all() []uint64 {
	seqs := []uint64{}
	for ref := range d.s.Front(&d.q) {
		seqs = append(seqs, d.records.At(ref).Seq())
	}
	for id := range d.s.Parts(&d.q) {
		for m := d.blocks.Unread(id); m != 0; m &= m - 1 {
			seqs = append(seqs, d.parts[id][bits.TrailingZeros32(m)])
		}
	}
	for ref := range d.s.Back(&d.q) {
		seqs = append(seqs, d.records.At(ref).Seq())
	}
	return seqs
}

// A queue is a list, wherever its records lie.
func TestQueueAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk()
		want := []uint64{}
		seq := uint64(0)
		var walk *Walk
		var owed, met map[uint64]bool // by the walk: what waits all the while
		gone := func(seq uint64) { delete(owed, seq) }
		end := func() {
			for d.s.Step(walk, 100) {
			}
			d.s.EndWalk(walk)
			for seq := range owed {
				require.True(t, met[seq], "the walk did not meet %d", seq)
			}
			walk = nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 10).Draw(t, "records") {
					seq++
					d.s.Push(&d.q, d.new(seq))
					want = append(want, seq)
				}
			},
			"home": func(t *rapid.T) { d.home(rapid.IntRange(1, storage.MaxPart).Draw(t, "records")) },
			"evict": func(t *rapid.T) {
				if !d.s.Walked(1) {
					d.s.Evict(&d.q, rapid.Bool().Draw(t, "keep"))
				}
			},
			"pop": func(t *rapid.T) {
				require.Equal(t, len(want) > 0, d.load())
				if len(want) == 0 {
					return
				}
				ref := d.s.Pop(&d.q)
				require.Equal(t, want[0], d.records.At(ref).Seq())
				gone(want[0])
				d.s.Took(1, ref)
				if rapid.Bool().Draw(t, "comes back") {
					d.s.PushFront(&d.q, ref)
					return
				}
				d.s.Finish(ref)
				want = want[1:]
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "record")
				p, ok := d.s.Find(&d.q, d.url(want[i]), 0)
				if !ok {
					require.True(t, d.q.chain != 0, "it is nowhere")
					return
				}
				require.True(t, d.s.In(&d.q, d.records.Locate(p.Ref)))
				require.Equal(t, want[i], d.records.At(p.Ref).Seq())
				gone(want[i])
				d.s.Remove(p)
				require.False(t, d.s.In(&d.q, d.records.Locate(p.Ref)))
				d.s.Finish(p.Ref)
				want = slices.Delete(want, i, i+1)
			},
			"lose": func(t *rapid.T) {
				id, which := d.s.Next(&d.q)
				if id == 0 {
					return
				}
				for range bits.OnesCount32(which) {
					gone(want[0])
					want = want[1:]
				}
				require.Equal(t, bits.OnesCount32(which), d.s.Abandon(&d.q, id))
			},
			"purge": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				dead := Dead{Seq: seq, Block: d.last}
				require.True(t, d.s.HeadDead(&d.q, dead))
				_, n, clean := d.s.Purge(&d.q, dead, rapid.IntRange(1, 200).Draw(t, "steps"))
				for _, x := range want[:n] {
					gone(x)
				}
				want = want[n:]
				require.True(t, !clean || len(want) == 0)
			},
			"purge what is alive": func(t *rapid.T) {
				if len(want) > 0 && want[0] == slices.Min(want) && !d.q.HeadOnDisk() {
					_, n, clean := d.s.Purge(&d.q, Dead{Seq: want[0] - 1}, 100)
					require.Zero(t, n)
					require.True(t, clean)
				}
			},
			"walk": func(t *rapid.T) {
				if walk == nil {
					met, owed = map[uint64]bool{}, map[uint64]bool{}
					for _, x := range want {
						owed[x] = true
					}
					walk = &Walk{
						Owner: 1, Queues: []Numbered{{7, &d.q}},
						Part: func(queue, id uint32) {
							require.EqualValues(t, 7, queue)
							for m := d.blocks.Unread(id); m != 0; m &= m - 1 {
								met[d.parts[id][bits.TrailingZeros32(m)]] = true
							}
						},
						Record: func(_ uint32, ref arena.Ref) bool {
							met[d.records.At(ref).Seq()] = true
							return true
						},
					}
					d.s.Begin(walk)
				}
				d.s.Step(walk, rapid.IntRange(1, 5).Draw(t, "steps"))
			},
			"end the walk": func(t *rapid.T) {
				if walk != nil {
					end()
				}
			},
			"": func(t *rapid.T) {
				require.Equal(t, want, d.all())
				d.s.Check(&d.q, t.Errorf)
				chained := map[uint32]bool{}
				for id := range d.s.Parts(&d.q) {
					chained[id] = true
				}
				d.blocks.Check(chained, nil, true, t.Errorf)
				resident := slices.Collect(maps.Keys(maps.Collect(d.s.After(&d.q, 0))))
				require.Equal(t, d.q.Resident(), len(resident) > 0)
			},
		})
	})
}

// A record from which to continue is found in either stretch.
func TestRecordsBehindOne(t *testing.T) {
	d := newDisk()
	for seq := uint64(1); seq <= 4; seq++ {
		d.s.Push(&d.q, d.new(seq))
	}
	d.home(2)
	d.s.Evict(&d.q, false) // 1 and 2 are on disk, 3 and 4 in the back stretch
	require.True(t, d.load())
	d.s.Push(&d.q, d.new(5)) // 1 and 2 are in the front stretch
	seqs := func(ref arena.Ref) (out []uint64) {
		for x, behind := range d.s.After(&d.q, ref) {
			out = append(out, d.records.At(x).Seq())
			require.Equal(t, d.records.At(x).Seq() == 3, behind)
		}
		return out
	}
	refs := map[uint64]arena.Ref{}
	for ref := range d.s.After(&d.q, 0) {
		refs[d.records.At(ref).Seq()] = ref
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5}, seqs(0))
	for seq := uint64(1); seq <= 5; seq++ {
		require.Equal(t, []uint64{1, 2, 3, 4, 5}[seq:], append([]uint64{}, seqs(refs[seq])...))
	}
}

// A walk that looks for a URL learns that it was taken, and one whose owner ends ends.
func TestWalkLearnsWhatWasTaken(t *testing.T) {
	d := newDisk()
	d.s.Push(&d.q, d.new(1))
	d.s.Push(&d.q, d.new(2))
	w := &Walk{Owner: 1, Queues: []Numbered{{7, &d.q}}, URL: d.url(1), Record: func(uint32, arena.Ref) bool { return true }}
	d.s.Begin(w)
	p, _ := d.s.Find(&d.q, d.url(2), 0)
	d.s.Took(1, p.Ref)
	require.False(t, w.Taken)
	d.s.Took(2, d.q.back.first)
	require.False(t, w.Taken)
	d.s.Took(1, d.q.back.first)
	require.True(t, w.Taken)
	require.True(t, d.s.Walked(1))
	d.s.Gone(1)
	require.False(t, d.s.Walked(1))
	require.False(t, d.s.Step(w, 1))
}
