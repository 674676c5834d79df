// This file repairs a damaged log: the readable batches are numbered consecutively again, and one
// more batch marks the frontier as not closed.

package spill

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/spill/internal/journal"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/storage"
)

// savedBatch is a batch that can be read.
type savedBatch struct {
	logEntry
	before uint64
	batch  storage.Batch
	raw    []byte // that batch aliases
}

// readLog finds the batches behind the checkpoint.
func (r *repair) readLog() error {
	entries, err := r.logEntries()
	if err != nil {
		return err
	}
	bad := map[uint64]bool{} // reported
	for _, e := range entries {
		if !e.head {
			continue // never complete, or the piece that completed it is lost: a later batch shows which
		}
		s := savedBatch{logEntry: e}
		var err error
		if s.raw, s.before, err = readLog(r.in, nil, e); err == nil {
			err = journal.ReadBatch(&s.batch, s.raw)
		}
		if err != nil {
			r.lostValue("batch", keys.Log(e.gen, e.id, 0), -1, err)
			bad[e.id] = true
			continue
		}
		r.log = append(r.log, s)
	}
	r.chain(bad)
	r.dropped, r.rows = map[uint32]bool{}, map[string]rowFate{}
	for _, s := range r.log {
		r.note(&s.batch)
	}
	return nil
}

func (r *repair) logEntries() ([]logEntry, error) {
	var log []logEntry
	for _, g := range r.found.gens {
		err := r.in.Iterate(keys.Prefix(g, keys.KindLog), keys.After(g, keys.KindLog), func(key []byte, _ func() ([]byte, error)) error {
			id, piece, ok := keys.LogName(key)
			if !ok || id <= r.state.through {
				return nil
			}
			log = withPiece(log, id, g, piece)
			return r.ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(log, logEntry.compare)
	return log, nil
}

// chain leaves out the batches whose Commit had failed, and reports those that are missing.
func (r *repair) chain(bad map[uint64]bool) {
	var kept []savedBatch
	before := r.state.through
	for i, s := range r.log {
		if i+1 < len(r.log) && r.log[i+1].before < s.id && r.log[i+1].before >= before {
			continue
		}
		if s.before > before && !(r.guessed && len(kept) == 0) {
			r.missing(before+1, s.before, bad)
		}
		kept, before = append(kept, s), s.id
	}
	r.missing(before+1, r.in.Confirmed(), bad)
	r.log = kept
}

// missing reports batches that are lost completely, unless all were reported.
func (r *repair) missing(from, to uint64, bad map[uint64]bool) {
	for id := from; id <= to; id++ {
		if !bad[id] {
			r.lostValue("batch", keys.Log(keys.Fixed, from, 0), -1, fmt.Errorf("%w: batches %d to %d", errNoBatch, from, to))
			return
		}
	}
}

// note records the changes of a batch to blocks and rows.
func (r *repair) note(b *storage.Batch) {
	for _, d := range b.Drop {
		r.dropped[d] = true
		r.state.next = max(r.state.next, d+1)
	}
	for _, a := range b.Admit {
		r.saw(a.Seq)
	}
	for _, c := range b.Finish {
		r.saw(c.Seq)
		r.state.next = max(r.state.next, c.Block+1)
	}
	for _, row := range b.Rows {
		r.rows[row.Key] = rowFate{row.Value}
	}
}

// inBlock notes a record that is in a block. If it is unknown how far the log was moved, the record
// may also be in the log.
func (r *repair) inBlock(seq uint64) {
	r.saw(seq)
	if !r.guessed {
		return
	}
	for i := range r.log {
		b := &r.log[i].batch
		n := len(b.Admit)
		b.Admit = slices.DeleteFunc(b.Admit, func(a storage.Admission) bool {
			if a.Seq == seq && a.HasMark {
				b.Marks = append(b.Marks, a.Mark)
			}
			return a.Seq == seq
		})
		if len(b.Admit) < n {
			r.log[i].raw = nil
		}
	}
}

// writeLog writes the batches, and one more.
func (r *repair) writeLog() error {
	before, gen := r.state.through, r.state.adopted+1
	for i := range r.log {
		s := &r.log[i]
		if s.raw == nil {
			s.raw = journal.AppendBatch(nil, &s.batch)
		}
		if err := r.writeBatch(s.gen, s.id, before, s.raw); err != nil {
			return err
		}
		r.report.Batches++
		before, gen = s.id, max(gen, s.gen)
	}
	id := max(before, r.in.Confirmed()) + 1
	meta, err := r.meta()
	if err != nil {
		return err
	}
	last := storage.Batch{ID: id, Rows: []storage.Row{{Key: row.MetaKey, Value: meta}}}
	if n := len(r.log); n > 0 {
		last.Time = r.log[n-1].batch.Time
		last.Drop = r.log[n-1].batch.Drop
		before := slices.DeleteFunc(slices.Clone(r.log[n-1].batch.Rows), func(x storage.Row) bool { return counts(x.Key) })
		last.Rows = append(before, last.Rows...)
	}
	if err := r.writeBatch(gen, id, before, journal.AppendBatch(nil, &last)); err != nil {
		return err
	}
	r.out.Confirm(id)
	return nil
}

func (r *repair) writeBatch(gen uint32, id, before uint64, raw []byte) error {
	pieces, err := journal.AppendPieces(nil, gen, id, before, raw)
	if err != nil {
		return err
	}
	for _, p := range pieces {
		if err := r.set(p.Key, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// meta is the frontier's own row, as a crash leaves it. Rows of another version are no damage.
func (r *repair) meta() ([]byte, error) {
	var v []byte
	if fate, ok := r.rows[row.MetaKey]; ok {
		v = fate.value
	} else if _, err := r.in.Get(keys.Row(row.MetaKey), func(b []byte) error { v = append(v, b...); return nil }); err != nil {
		v = nil
	}
	m, err := row.ParseMeta(v)
	if errors.Is(err, storage.ErrVersion) {
		return nil, err
	}
	if err != nil {
		r.lostValue("row", keys.Row(row.MetaKey), 0, fmt.Errorf("%w: the key of known URLs is lost", row.ErrMalformed))
		var key [16]byte
		_, _ = rand.Read(key[:]) // never fails
		m = row.Meta{Key: [2]uint64{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}, Epoch: 1 << 20}
	}
	m.Clean = false
	m.Epoch++ // tokens of leases do not repeat
	m.Seq = max(m.Seq, r.highest)
	return m.Row().Value, nil
}

// copyRows copies the rows, including those that are only in the log.
func (r *repair) copyRows() error {
	there := map[string]bool{}
	err := r.in.Iterate(keys.Row(""), afterPrefix(keys.Row("")), func(key []byte, value func() ([]byte, error)) error {
		v, err := value()
		if err != nil {
			r.lostValue("row", key, 0, err)
			return nil
		}
		if counts(string(key[keys.HeadLen:])) {
			return nil
		}
		there[string(key[keys.HeadLen:])] = true
		r.report.Rows++
		return r.set(key, v)
	})
	if err != nil || len(r.report.Lost) == 0 {
		return err
	}
	for name, fate := range r.rows {
		if !there[name] && fate.value != nil && !counts(name) && !strings.HasPrefix(name, row.MetaKey+"\x00") {
			r.report.Rows++
			if err := r.set(keys.Row(name), fate.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// counts reports whether a row has numbers of URLs, which may be wrong if some are lost: the frontier
// counts them anew.
func counts(name string) bool {
	return strings.HasPrefix(name, row.CountKey) || strings.HasPrefix(name, row.SumKey)
}
