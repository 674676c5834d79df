// This file is a naive frontier: it knows what a store must hold, and checks what
// a recovery says against it.

package spill_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// place is where a record lies: nowhere (in the log) if block is 0.
type place struct {
	block uint32
	pos   uint16
}

type entry struct {
	queue storage.Queue
	due   int64
	body  string
}

// model uses a store as a frontier does. Its methods report the store's errors
// and then stay as they were.
type model struct {
	rng    *rand.Rand
	store  storage.Spill
	id     uint64
	gen    uint32
	seq    uint64
	alive  map[uint64]entry
	rows   map[string]string
	marks  map[storage.Mark]bool
	fresh  []storage.Mark // of admissions in the log
	at     map[uint64]place
	inLog  map[uint64]bool
	dead   map[uint32][]byte // of blocks, as far as finished
	size   map[uint32]int    // live records of a block
	change map[uint32]bool
	used   map[uint32]bool // blocks ever written
	heads  map[uint32]storage.TimedBlock
}

func newModel(seed uint64, s storage.Spill) *model {
	return &model{
		rng: rand.New(rand.NewPCG(seed, 1)), store: s,
		alive: map[uint64]entry{}, rows: map[string]string{}, marks: map[storage.Mark]bool{},
		at: map[uint64]place{}, inLog: map[uint64]bool{}, dead: map[uint32][]byte{}, size: map[uint32]int{}, change: map[uint32]bool{}, used: map[uint32]bool{}, heads: map[uint32]storage.TimedBlock{},
	}
}

func (m *model) queue() storage.Queue {
	n := int(m.rng.ExpFloat64() * 6)
	return storage.Queue{Host: fmt.Sprintf("h%d.example", n), Crawl: uint32(n % 2), Priority: uint8(1 + n%3)}
}

// commit admits n records, finishes up to k and sets a row, in one batch.
func (m *model) commit(n, k int) error {
	b := &storage.Batch{ID: m.id + 1, Time: int64(m.id) + 1000}
	for range n {
		m.seq++ // never used twice, not even after an error
		a := storage.Admission{Queue: m.queue(), HasMark: m.rng.IntN(4) > 0}
		a.Seq = m.seq
		a.Body = bytes.Repeat([]byte{byte(m.seq), 'x'}, m.rng.IntN(60))
		if m.rng.IntN(5) == 0 {
			a.Due = int64(m.seq) * 1000
		}
		if a.HasMark {
			for i := range a.Mark {
				a.Mark[i] = byte(m.rng.Uint32())
			}
		}
		b.Admit = append(b.Admit, a)
	}
	seqs := slices.Sorted(maps.Keys(m.alive))
	m.rng.Shuffle(len(seqs), func(i, j int) { seqs[i], seqs[j] = seqs[j], seqs[i] })
	left := maps.Clone(m.size)
	for _, seq := range seqs[:min(k, len(seqs))] {
		p := m.at[seq]
		b.Finish = append(b.Finish, storage.Completion{Seq: seq, Block: p.block, Pos: p.pos})
		if p.block != 0 {
			if left[p.block]--; left[p.block] == 0 {
				b.Drop = append(b.Drop, p.block)
			}
		}
	}
	for range m.rng.IntN(4) {
		var mark storage.Mark
		for i := range mark {
			mark[i] = byte(m.rng.Uint32())
		}
		b.Marks = append(b.Marks, mark)
	}
	key := fmt.Sprintf("row%d", m.rng.IntN(5))
	if m.rng.IntN(4) == 0 {
		b.Rows = append(b.Rows, storage.Row{Key: key})
	} else {
		b.Rows = append(b.Rows, storage.Row{Key: key, Value: []byte(fmt.Sprint("v", b.ID))})
	}
	if err := m.store.Commit(b); err != nil {
		return err
	}
	m.apply(b)
	return nil
}

func (m *model) apply(b *storage.Batch) {
	m.id = b.ID
	for _, a := range b.Admit {
		m.alive[a.Seq] = entry{a.Queue, a.Due, string(a.Body)}
		m.inLog[a.Seq] = true
		if a.HasMark {
			m.marks[a.Mark] = true
			m.fresh = append(m.fresh, a.Mark)
		}
	}
	for _, x := range b.Marks {
		m.marks[x] = true
		m.fresh = append(m.fresh, x)
	}
	for _, c := range b.Finish {
		delete(m.alive, c.Seq)
		delete(m.inLog, c.Seq)
		if c.Block != 0 {
			m.finish(c)
		}
		delete(m.at, c.Seq)
	}
	for _, d := range b.Drop {
		delete(m.dead, d)
		delete(m.size, d)
		delete(m.change, d)
	}
	for _, r := range b.Rows {
		if r.Value == nil {
			delete(m.rows, r.Key)
		} else {
			m.rows[r.Key] = string(r.Value)
		}
	}
}

func (m *model) finish(c storage.Completion) {
	m.size[c.Block]--
	bits := m.dead[c.Block]
	for len(bits) <= int(c.Pos/8) {
		bits = append(bits, 0)
	}
	bits[c.Pos/8] |= 1 << (c.Pos % 8)
	m.dead[c.Block] = bits
	m.change[c.Block] = true
}

// runs are the records of the log, by queue.
func (m *model) runs() []storage.Run {
	by := map[storage.Queue][]storage.Record{}
	for _, seq := range slices.Sorted(maps.Keys(m.inLog)) {
		if e := m.alive[seq]; e.due == 0 {
			by[e.queue] = append(by[e.queue], storage.Record{Seq: seq, Body: []byte(e.body)})
		}
	}
	var runs []storage.Run
	for q, rs := range by {
		runs = append(runs, storage.Run{Queue: q, Records: rs})
	}
	slices.SortFunc(runs, func(a, b storage.Run) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Host, b.Host),
			cmp.Compare(a.Crawl, b.Crawl), cmp.Compare(a.Records[0].Seq, b.Records[0].Seq))
	})
	return runs
}

// timed are the records of the log that have a due time, in order of that.
func (m *model) timed() []storage.TimedRecord {
	var rs []storage.TimedRecord
	for _, seq := range slices.Sorted(maps.Keys(m.inLog)) {
		if e := m.alive[seq]; e.due != 0 {
			rs = append(rs, storage.TimedRecord{Queue: e.queue, Record: storage.Record{Seq: seq, Due: e.due, Body: []byte(e.body)}})
		}
	}
	slices.SortStableFunc(rs, func(a, b storage.TimedRecord) int { return cmp.Compare(a.Due, b.Due) })
	return rs
}

// packTimed moves the records of the log that have a due time.
func (m *model) packTimed() error {
	rs := m.timed()
	blocks, err := m.store.PackTimed(m.gen+1, rs)
	if err != nil {
		return err
	}
	for _, b := range blocks {
		if m.used[b.Block] {
			return fmt.Errorf("block number %d is used twice", b.Block)
		}
		if b.Count < 1 || b.Count > len(rs) || b.Due != rs[0].Due {
			return fmt.Errorf("timed block %v; the next of %d records is due at %d", b, len(rs), rs[0].Due)
		}
		m.used[b.Block] = true
		m.heads[b.Block] = b
		for i, r := range rs[:b.Count] {
			m.at[r.Seq] = place{b.Block, uint16(i)}
			delete(m.inLog, r.Seq)
		}
		m.size[b.Block] = b.Count
		rs = rs[b.Count:]
	}
	if len(rs) > 0 {
		return fmt.Errorf("%d timed records are in no block", len(rs))
	}
	return nil
}

// pack moves the log to blocks and returns the checkpoint that ends the round.
func (m *model) pack() (*storage.Checkpoint, error) {
	if err := m.store.PackMarks(m.gen+1, slices.Clone(m.fresh)); err != nil {
		return nil, err
	}
	if err := m.packTimed(); err != nil {
		return nil, err
	}
	runs := m.runs()
	parts, err := m.store.Pack(m.gen+1, runs)
	if err != nil {
		return nil, err
	}
	made := map[uint32]bool{}
	for i, r := range runs {
		n := 0
		for _, p := range parts[i] {
			if m.used[p.Block] {
				return nil, fmt.Errorf("block number %d is used twice", p.Block)
			}
			made[p.Block] = true
			for j := range int(p.Count) {
				m.at[r.Records[n].Seq] = place{p.Block, p.First + uint16(j)}
				delete(m.inLog, r.Records[n].Seq)
				n++
			}
			m.size[p.Block] += int(p.Count)
		}
		if n != len(r.Records) {
			return nil, fmt.Errorf("parts of run %d hold %d of %d records", i, n, len(r.Records))
		}
	}
	maps.Copy(m.used, made)
	c := &storage.Checkpoint{Gen: m.gen + 1, Through: m.id}
	m.fresh = nil
	return c, nil
}

func (m *model) checkpoint(c *storage.Checkpoint) error {
	c.Dead = nil
	for _, b := range slices.Sorted(maps.Keys(m.change)) {
		c.Dead = append(c.Dead, storage.DeadBits{Block: b, Bits: m.dead[b]})
	}
	if err := m.store.Checkpoint(c); err != nil {
		return err
	}
	m.gen = c.Gen
	clear(m.change)
	return nil
}

// clone returns a model that shares nothing that changes.
func (m *model) clone() *model {
	c := *m
	c.alive, c.rows, c.marks = maps.Clone(m.alive), maps.Clone(m.rows), maps.Clone(m.marks)
	c.at, c.inLog, c.size = maps.Clone(m.at), maps.Clone(m.inLog), maps.Clone(m.size)
	return &c
}

// replay is a Recovery that keeps everything, in the order in which it came.
type replay struct {
	stage    int
	disorder bool
	row      func(string) ([]byte, bool, error)
	rows     map[string]string
	last     string // row
	marks    int64
	dead     map[uint32][]byte
	parts    []storage.Part
	queues   []storage.Queue
	timed    []storage.TimedBlock
	batches  []storage.Batch
	fail     error
}

func newReplay() *replay {
	return &replay{rows: map[string]string{}, dead: map[uint32][]byte{}}
}

func (r *replay) at(stage int) error {
	r.disorder = r.disorder || stage < r.stage
	r.stage = stage
	return r.fail
}
func (r *replay) Begin(row func(string) ([]byte, bool, error)) error {
	r.row = row
	return r.at(1)
}
func (r *replay) Row(k string, v []byte) error {
	if r.disorder = r.disorder || k <= r.last; r.row != nil {
		switch got, found, err := r.row(k); {
		case err != nil:
			return err
		case !found || !bytes.Equal(got, v):
			return fmt.Errorf("row %s is read as %q, %v; replayed as %q", k, got, found, v)
		}
	}
	r.rows[k], r.last = string(v), k
	return r.at(6)
}
func (r *replay) Marks(n int64) error              { r.marks = n; return r.at(2) }
func (r *replay) Dead(b uint32, bits []byte) error { r.dead[b] = bytes.Clone(bits); return r.at(3) }
func (r *replay) Part(q storage.Queue, p storage.Part) error {
	r.parts, r.queues = append(r.parts, p), append(r.queues, q)
	return r.at(4)
}
func (r *replay) Timed(b storage.TimedBlock) error {
	if n := len(r.timed); n > 0 && r.timed[n-1].Block >= b.Block {
		r.disorder = true
	}
	r.timed = append(r.timed, b)
	return r.at(5)
}
func (r *replay) Batch(b *storage.Batch) error {
	c := *b
	c.Admit, c.Finish = slices.Clone(b.Admit), slices.Clone(b.Finish)
	c.Rows, c.Drop = slices.Clone(b.Rows), slices.Clone(b.Drop)
	c.Marks = slices.Clone(b.Marks)
	for i := range c.Admit {
		c.Admit[i].Body = bytes.Clone(c.Admit[i].Body)
	}
	for i := range c.Rows {
		c.Rows[i].Value = bytes.Clone(c.Rows[i].Value)
	}
	r.batches = append(r.batches, c)
	return r.at(6)
}

// holds recovers s and returns what differs from the model, if anything.
func (m *model) holds(s storage.Spill) error {
	r := newReplay()
	if err := s.Recover(context.Background(), r); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	defer func() { _ = s.Release() }()
	if r.disorder {
		return fmt.Errorf("calls came out of order")
	}
	if !maps.Equal(r.rows, m.rows) {
		return fmt.Errorf("rows are %v; want %v", r.rows, m.rows)
	}
	marks, err := m.stored(s)
	if err != nil {
		return err
	}
	if r.marks != int64(len(marks)) {
		return fmt.Errorf("%d marks are known; %d were told", len(marks), r.marks)
	}
	if err := m.showsRows(s); err != nil {
		return err
	}
	alive := map[uint64]entry{}
	for i, p := range r.parts {
		n := 0
		err := s.Load(p, 1<<p.Count-1, func(j int, rec storage.Record) {
			n++
			if pos := int(p.First) + j; pos/8 < len(r.dead[p.Block]) && r.dead[p.Block][pos/8]&(1<<(pos%8)) != 0 {
				return
			}
			alive[rec.Seq] = entry{r.queues[i], rec.Due, string(rec.Body)}
		})
		if err != nil {
			return err
		}
		if n != int(p.Count) {
			return fmt.Errorf("part %v gave %d records", p, n)
		}
	}
	for _, b := range r.timed {
		if want, ok := m.heads[b.Block]; ok && b != want {
			return fmt.Errorf("timed block is %v; want %v", b, want)
		}
		n := 0
		err := s.LoadTimed(b.Block, 0, func(pos int, rec storage.TimedRecord) bool {
			n++
			if dead := r.dead[b.Block]; pos/8 >= len(dead) || dead[pos/8]&(1<<(pos%8)) == 0 {
				alive[rec.Seq] = entry{rec.Queue, rec.Due, string(rec.Body)}
			}
			return true
		})
		if err != nil {
			return err
		}
		if n != b.Count {
			return fmt.Errorf("timed block %v gave %d records", b, n)
		}
	}
	for _, b := range r.batches {
		for _, a := range b.Admit {
			if _, ok := alive[a.Seq]; ok {
				return fmt.Errorf("record %d is both in a block and in the log", a.Seq)
			}
			alive[a.Seq] = entry{a.Queue, a.Due, string(a.Body)}
			if a.HasMark {
				marks[a.Mark] = true
			}
		}
		for _, x := range b.Marks {
			marks[x] = true
		}
		for _, c := range b.Finish {
			delete(alive, c.Seq)
		}
	}
	if !maps.Equal(alive, m.alive) {
		for seq := range alive {
			if _, ok := m.alive[seq]; !ok {
				return fmt.Errorf("record %d came back", seq)
			}
		}
		for seq, want := range m.alive {
			if got, ok := alive[seq]; !ok {
				return fmt.Errorf("record %d is lost", seq)
			} else if got != want {
				return fmt.Errorf("record %d is %v; want %v", seq, got, want)
			}
		}
	}
	if !maps.Equal(marks, m.marks) {
		return fmt.Errorf("there are %d marks; want %d", len(marks), len(m.marks))
	}
	return nil
}

// stored asks s for all marks of the model, and as many others, and returns those
// that it has.
func (m *model) stored(s storage.Spill) (map[storage.Mark]bool, error) {
	var ask []storage.Mark
	for mark := range m.marks {
		other := mark
		other[m.rng.IntN(len(mark))] ^= 1 << m.rng.IntN(8)
		ask = append(ask, mark, other)
	}
	known := make([]bool, len(ask))
	if err := s.Known(ask, known); err != nil {
		return nil, err
	}
	marks := map[storage.Mark]bool{}
	for i, mark := range ask {
		if known[i] && !m.marks[mark] {
			return nil, fmt.Errorf("mark %x is known; it never was", mark)
		}
		if known[i] {
			marks[mark] = true
		}
	}
	return marks, nil
}

// showsRows reads each row by its key, and one that is not there.
func (m *model) showsRows(s storage.Spill) error {
	for i := range 6 {
		key := fmt.Sprintf("row%d", i)
		want, there := m.rows[key]
		got, found, err := s.Row(key)
		if err != nil {
			return err
		}
		if found != there || string(got) != want {
			return fmt.Errorf("%s is %q, %v; want %q, %v", key, got, found, want, there)
		}
	}
	return nil
}

// reboot takes a store into use as a frontier does that knows nothing but what
// the recovery says. Block numbers in later completions come from there.
func (m *model) reboot(t require.TestingT, s storage.Spill) {
	r := newReplay()
	require.NoError(t, s.Recover(context.Background(), r))
	m.store, m.id, m.gen = s, 0, 0
	m.fresh = nil
	clear(m.at)
	clear(m.inLog)
	clear(m.size)
	clear(m.change)
	m.dead = r.dead
	for _, p := range r.parts {
		require.NoError(t, s.Load(p, 1<<p.Count-1, func(i int, rec storage.Record) {
			if _, ok := m.alive[rec.Seq]; ok {
				m.at[rec.Seq] = place{p.Block, p.First + uint16(i)}
				m.size[p.Block]++
			}
		}))
	}
	for _, b := range r.timed {
		for first := 0; first < b.Count; first += storage.MaxPart { // a range may be loaded as a part
			p := storage.Part{Block: b.Block, First: uint16(first), Count: uint8(min(storage.MaxPart, b.Count-first))}
			require.NoError(t, s.Load(p, 1<<p.Count-1, func(i int, rec storage.Record) {
				if _, ok := m.alive[rec.Seq]; ok {
					m.at[rec.Seq] = place{p.Block, p.First + uint16(i)}
					m.size[p.Block]++
				}
			}))
		}
	}
	for _, b := range r.batches {
		m.id = b.ID
		m.fresh = append(m.fresh, b.Marks...)
		for _, a := range b.Admit {
			if a.HasMark {
				m.fresh = append(m.fresh, a.Mark)
			}
			if _, ok := m.alive[a.Seq]; ok {
				m.inLog[a.Seq] = true
			}
		}
		for _, c := range b.Finish {
			if c.Block != 0 {
				m.size[c.Block]++ // finish takes it again
				m.finish(c)
			}
		}
	}
	for b := range m.dead {
		if m.size[b] == 0 {
			delete(m.size, b)
		}
	}
}

// start recovers an empty store and returns a model of it.
func start(t testing.TB, seed uint64, s storage.Spill) *model {
	t.Helper()
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	return newModel(seed, s)
}
