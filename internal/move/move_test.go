package move

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/block"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var errPack = errors.New("no disk")

// site is a queue, with the history of its records.
type site struct {
	fifo.Queue
	listed    bool
	dead      uint64
	leased    []arena.Ref
	finishing []arena.Ref

	waits    []uint64 // numbers of what waits, in order
	shuffled bool     // something came back to the head
}

// world is a Source and a Store in memory.
type world struct {
	records   record.Arena
	blocks    block.Table
	fifo      fifo.Store
	scheduled *timed.Records
	timed     timed.Blocks
	m         Mover

	sites     []*site // by number
	dates     map[uint64]int64
	onDisk    map[uint64]bool     // scheduled records that left memory
	packed    map[uint32][]uint64 // by block: numbers of its records
	names     map[uint32][]string // by block: their queues
	whole     map[uint32]bool     // timed blocks
	meta      []byte              // of new records
	seq       uint64
	soon      int64
	closed    bool
	failing   bool
	locked    bool
	dismissed int
	between   func() // comes when the lock is free
}

func newWorld(queues int) *world {
	w := &world{dates: map[uint64]int64{}, onDisk: map[uint64]bool{}, packed: map[uint32][]uint64{}, names: map[uint32][]string{}, whole: map[uint32]bool{}, between: func() {}}
	w.fifo = fifo.New(&w.records, &w.blocks)
	w.scheduled, w.timed = timed.NewRecords(&w.records), timed.NewBlocks(&w.blocks)
	w.m = New(&w.records, &w.blocks, &w.fifo, w.scheduled, &w.timed)
	for range queues + 1 {
		w.sites = append(w.sites, &site{})
	}
	return w
}

func (w *world) Lock() {
	if w.locked {
		panic("locked twice")
	}
	w.between()
	w.locked = true
}

func (w *world) Unlock() {
	if !w.locked {
		panic("not locked")
	}
	w.locked = false
	w.between()
}

func (w *world) Closed() bool               { return w.closed }
func (w *world) Top() uint32                { return uint32(len(w.sites) - 1) }
func (w *world) Finishing(id uint32) bool   { return len(w.sites[id].finishing) > 0 }
func (w *world) Dead(id uint32) uint64      { return w.sites[id].dead }
func (w *world) Trim(id uint32) (more bool) { return w.fifo.Evict(&w.sites[id].Queue, false) }
func (w *world) Soon() int64                { return w.soon }
func (w *world) Millis(date int64) int64    { return date }
func (w *world) Freed()                     {}

func (w *world) Queue(id uint32) Queue {
	if id == 0 || int(id) >= len(w.sites) {
		return Queue{}
	}
	return Queue{Queue: &w.sites[id].Queue, Priority: uint8(1 + id%3), Listed: &w.sites[id].listed}
}

func (w *world) Name(id uint32, names []byte) (storage.Queue, []byte) {
	return storage.Queue{Host: w.host(id), Priority: uint8(1 + id%3)}, names
}

func (w *world) host(id uint32) string { return fmt.Sprintf("%d.example", id) }

func (w *world) DeadOf(q storage.Queue) uint64 {
	var id uint32
	_, _ = fmt.Sscanf(q.Host, "%d.example", &id)
	return w.sites[id].dead
}

func (w *world) Leased(id uint32, to []Leased) []Leased {
	for _, ref := range w.sites[id].leased {
		to = append(to, Leased{ref, len(w.sites[id].leased) > 1})
	}
	return to
}

func (w *world) Dismiss(ref arena.Ref) {
	i, _ := w.scheduled.Find(ref)
	w.scheduled.Remove(i)
	w.onDisk[w.records.At(ref).Seq()] = true
	w.records.Discard(ref)
	w.dismissed++
}

func (w *world) Pack(_ uint32, runs []storage.Run) ([][]storage.Part, error) {
	for range 8 {
		w.between()
	}
	if w.failing {
		return nil, errPack
	}
	id := uint32(len(w.packed) + 1)
	out := make([][]storage.Part, len(runs))
	for i, run := range runs {
		for part := range slices.Chunk(run.Records, storage.MaxPart) {
			out[i] = append(out[i], storage.Part{Block: id, First: uint16(len(w.packed[id])), Count: uint8(len(part))})
			for _, r := range part {
				w.packed[id], w.names[id] = append(w.packed[id], r.Seq), append(w.names[id], run.Host)
			}
		}
	}
	w.between()
	return out, nil
}

func (w *world) PackTimed(_ uint32, records []storage.TimedRecord) (out []storage.TimedBlock, err error) {
	w.between()
	if w.failing {
		return nil, errPack
	}
	for some := range slices.Chunk(records, storage.MaxTimed) {
		id := uint32(len(w.packed) + 1)
		for _, r := range some {
			w.packed[id], w.names[id] = append(w.packed[id], r.Seq), append(w.names[id], r.Host)
		}
		w.whole[id] = true
		out = append(out, storage.TimedBlock{Block: id, Count: len(some), Due: some[0].Due})
	}
	return out, nil
}

func (w *world) new() arena.Ref {
	w.seq++
	return w.records.Store(w.seq, (&record.Body{URL: fmt.Appendf(nil, "http://a.example/%d", w.seq), Meta: w.meta}).Append(nil))
}

func (w *world) push(id uint32, ref arena.Ref) {
	x := w.sites[id]
	w.fifo.Push(&x.Queue, ref)
	if w.records.At(ref).Part() == 0 {
		w.m.List(id, &x.listed)
	}
	x.waits = append(x.waits, w.records.At(ref).Seq())
}

func (w *world) add(id uint32, n int) {
	for range n {
		w.push(id, w.new())
	}
}

func (w *world) schedule(id uint32, at int64) {
	ref := w.new()
	it := timeheap.Item{At: at, ID: uint32(ref), Aux: id}
	w.scheduled.Push(it)
	w.scheduled.NeedHome(it)
	w.dates[w.seq] = at
}

// pop takes the next record of a queue, from disk if it is there; 0: there is none.
func (w *world) pop(id uint32) arena.Ref {
	x := w.sites[id]
	if part, which := w.fifo.Next(&x.Queue); part != 0 {
		p := w.blocks.Part(part)
		var rs []fifo.Loaded
		for m := which; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			rs = append(rs, fifo.Loaded{Pos: i, Seq: w.packed[p.Block][int(p.First)+i], Body: []byte("body")})
		}
		w.fifo.Install(&x.Queue, part, rs)
	}
	if !x.Resident() {
		return 0
	}
	return w.fifo.Pop(&x.Queue)
}

// back puts a record back at the head.
func (w *world) back(id uint32, ref arena.Ref) {
	x := w.sites[id]
	w.m.ToHead(id, ref)
	w.fifo.PushFront(&x.Queue, ref)
	if w.records.At(ref).Part() == 0 {
		w.m.List(id, &x.listed)
	}
	x.waits, x.shuffled = slices.Insert(x.waits, 0, w.records.At(ref).Seq()), true
}

// act lets something happen as it may at any moment while the lock is free.
func (w *world) act(t *rapid.T) {
	id := rapid.Uint32Range(1, w.Top()).Draw(t, "queue")
	x := w.sites[id]
	one := func(refs *[]arena.Ref) (ref arena.Ref) {
		if len(*refs) > 0 {
			i := rapid.IntRange(0, len(*refs)-1).Draw(t, "record")
			ref = (*refs)[i]
			*refs = slices.Delete(*refs, i, i+1)
		}
		return ref
	}
	switch rapid.IntRange(0, 7).Draw(t, "what happens") {
	case 0:
		w.add(id, rapid.SampledFrom([]int{1, 2, 10, 40, keptLooks}).Draw(t, "records"))
	case 1:
		for range rapid.IntRange(1, 5).Draw(t, "scheduled") {
			w.schedule(id, rapid.Int64Range(1, 100).Draw(t, "at"))
		}
	case 2, 3:
		if ref := w.pop(id); ref != 0 {
			require.Contains(t, x.waits, w.records.At(ref).Seq())
			if !x.shuffled {
				require.Equal(t, x.waits[0], w.records.At(ref).Seq(), "a queue is in order")
			}
			x.waits = slices.DeleteFunc(x.waits, func(seq uint64) bool { return seq == w.records.At(ref).Seq() })
			x.leased = append(x.leased, ref)
		}
	case 4:
		if ref := one(&x.leased); ref != 0 {
			w.back(id, ref)
		}
	case 5:
		if ref := one(&x.leased); ref != 0 {
			x.finishing = append(x.finishing, ref)
		}
	case 6:
		if ref := one(&x.finishing); ref != 0 {
			w.fifo.Finish(ref)
		}
	case 7:
		if w.scheduled.Len() > 0 { // it comes due
			it := w.scheduled.Pop()
			delete(w.dates, w.records.At(arena.Ref(it.ID)).Seq())
			w.push(it.Aux, arena.Ref(it.ID))
		}
	}
}

// check looks for every record that is not finished where it must be: those up to number
// homes have a home in a block.
func (w *world) check(t require.TestingT, homes uint64) {
	alive := map[uint64]bool{}
	home := func(ref arena.Ref, id uint32) {
		r := w.records.At(ref)
		alive[r.Seq()] = true
		if r.Part() == 0 {
			require.Greater(t, r.Seq(), homes, "a record has no home")
			return
		}
		p := w.blocks.Part(r.Part())
		pos := int(p.First) + r.Pos()
		require.Equal(t, r.Seq(), w.packed[p.Block][pos])
		require.Equal(t, w.host(id), w.names[p.Block][pos])
		require.False(t, w.blocks.IsBuried(p.Block, pos))
	}
	for id := uint32(1); id <= w.Top(); id++ {
		x := w.sites[id]
		w.fifo.Check(&x.Queue, func(f string, args ...any) { require.Fail(t, fmt.Sprintf(f, args...)) })
		w.m.Check(id, w.Queue(id), 0, func(f string, args ...any) { require.Fail(t, fmt.Sprintf(f, args...)) })
		for ref := range w.fifo.After(&x.Queue, 0) {
			home(ref, id)
		}
		for _, ref := range x.leased {
			home(ref, id)
		}
		for _, ref := range x.finishing {
			alive[w.records.At(ref).Seq()] = true
		}
		for _, seq := range x.waits {
			alive[seq] = true
		}
	}
	for _, it := range w.scheduled.Items {
		home(arena.Ref(it.ID), it.Aux)
	}
	maps.Copy(alive, w.onDisk)
	for id, seqs := range w.packed {
		for pos, seq := range seqs {
			if known := w.blocks.Has(id); known || !w.whole[id] { // of a timed block nothing need be known
				require.Equal(t, !alive[seq], !known || w.blocks.IsBuried(id, pos), "record %d in block %d", seq, id)
			}
		}
	}
}

// After a round every record that was there when it began has a home in a block, unless
// it is finished; whatever comes, goes and comes back meanwhile.
func TestRoundsGiveHomes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapid.IntRange(1, 5).Draw(t, "queues"))
		w.soon = rapid.Int64Range(0, 100).Draw(t, "soon")
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for range rapid.IntRange(0, 30).Draw(t, "before") {
				w.act(t)
			}
			w.failing = rapid.IntRange(0, 4).Draw(t, "fails") == 0
			through := w.seq
			keep := rapid.SampledFrom([]int64{0, 1 << 30}).Draw(t, "keep")
			r := w.m.Begin(w, w, 1, through, keep)
			w.between = func() {
				if rapid.IntRange(0, 2).Draw(t, "meanwhile") == 0 {
					w.act(t)
				}
			}
			err := r.Run()
			w.between = func() {}
			if err != nil {
				require.ErrorIs(t, err, errPack)
				r.Undo()
				through = 0
			}
			for _, x := range w.sites {
				for _, ref := range x.finishing { // no commit fails
					w.fifo.Finish(ref)
				}
				x.finishing = nil
			}
			w.check(t, through)
		}
	})
}

// A round looks at a large queue where the last one ended, until something without a home
// comes to its head.
func TestRoundsGoOnInLargeQueues(t *testing.T) {
	w := newWorld(1)
	const n = 5 * looksAtOnce
	for range 3 {
		before := w.m.Looked()
		w.add(1, n)
		r := w.m.Begin(w, w, 1, w.seq, 1<<30)
		require.NoError(t, r.Run())
		require.LessOrEqual(t, w.m.Looked()-before, uint64(n))
		w.check(t, w.seq)
	}
	require.Equal(t, uint64(3*n), w.m.Looked())
}

// Scheduled and waiting records are copied in portions of a number of bytes. What is left
// of one kind's last portion says nothing of the other's.
func TestRoundsEndAfterLargePortions(t *testing.T) {
	w := newWorld(1)
	w.meta = make([]byte, copyBytes/timedPacked)
	for range timedPacked {
		w.schedule(1, 50)
	}
	w.add(1, looksAtOnce)
	require.NoError(t, w.m.Begin(w, w, 1, w.seq, 1<<30).Run())
	w.check(t, w.seq)
}

// A record that ends while it is moved is finished, even if another has its memory by then.
func TestFinishedWhileItIsMoved(t *testing.T) {
	w := newWorld(1)
	w.add(1, 1)
	w.between = func() {
		if w.m.Looked() > 0 && w.seq == 1 {
			ref := w.pop(1)
			w.fifo.Finish(ref)
			w.sites[1].waits = nil
			w.add(1, 1)
			require.NotZero(t, w.records.At(ref).Seq(), "the second record has the place of the first")
		}
	}
	require.NoError(t, w.m.Begin(w, w, 1, w.seq, 1<<30).Run())
	w.between = func() {}
	require.Equal(t, map[uint32][]uint64{1: {1}}, w.packed)
	w.check(t, 1)
}

// A round that does not succeed leaves its work to the next.
func TestUndoneRounds(t *testing.T) {
	w := newWorld(2)
	w.add(1, 100)
	w.schedule(2, 50)
	w.failing = true
	r := w.m.Begin(w, w, 1, w.seq, 1<<30)
	require.ErrorIs(t, r.Run(), errPack)
	r.Undo()
	require.False(t, r.Moved())

	w.failing, w.closed = false, true
	r = w.m.Begin(w, w, 1, w.seq, 1<<30)
	require.ErrorIs(t, r.Run(), storage.ErrClosed)
	r.Undo()

	w.closed = false
	r = w.m.Begin(w, w, 1, w.seq, 1<<30)
	require.NoError(t, r.Run())
	require.True(t, r.Moved())
	r.Undo() // its checkpoint failed
	w.check(t, w.seq)
	require.Zero(t, w.records.Homeless())
	require.Equal(t, 1, w.dismissed)
}

// Deleted records need no home.
func TestDeletedRecordsGetNoHome(t *testing.T) {
	w := newWorld(2)
	w.add(1, 10)
	w.schedule(2, 50)
	w.sites[1].dead, w.sites[2].dead = 7, w.seq
	require.NoError(t, w.m.Begin(w, w, 1, w.seq, 1<<30).Run())
	require.Equal(t, map[uint32][]uint64{1: {8, 9, 10}}, w.packed)
}

// Changes of blocks are reported once, and again if the checkpoint fails.
func TestDeadPositions(t *testing.T) {
	w := newWorld(1)
	w.add(1, 10)
	r := w.m.Begin(w, w, 1, w.seq, 1<<30)
	require.NoError(t, r.Run())
	w.fifo.Finish(w.pop(1))
	take := func() []storage.DeadBits {
		w.Lock()
		defer w.Unlock()
		return r.TakeDead()
	}
	first := take()
	require.Len(t, first, 1)
	require.Equal(t, byte(1), first[0].Bits[0])
	w.Lock()
	r.PutDead()
	w.Unlock()
	require.Equal(t, first, take())
	require.Empty(t, take())
}

func TestWhenARoundIsWanted(t *testing.T) {
	idle := Load{Log: 1 << 20, MaxLog: MaxLog(1 << 30), Used: 1 << 20, Limit: 256 << 20, Homeless: 1 << 20}
	require.False(t, idle.Wanted())
	for name, change := range map[string]func(*Load){
		"the log is long":                  func(l *Load) { l.Log = l.MaxLog + 1 },
		"little of the log is left":        func(l *Load) { l.Log = 2 * idleLog },
		"a caller waits for room":          func(l *Load) { l.Full = true },
		"memory is short and most can go":  func(l *Load) { l.Used, l.Homeless = l.Limit*3/4, l.Limit/2 },
		"memory is short, the log is long": func(l *Load) { l.Log, l.Used = 1<<30, l.Limit },
	} {
		l := idle
		change(&l)
		require.True(t, l.Wanted(), name)
	}
	l := idle
	l.Used = l.Limit
	require.False(t, l.Wanted(), "there is little to be moved")
	l.Full, l.Homeless = true, 0
	require.False(t, l.Wanted(), "there is nothing to be moved")
}
