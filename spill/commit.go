// This file makes batches durable.
//
// A batch becomes valid by one small write of its log value. Its effects on rows and blocks are written
// together with the next batch, or before the next checkpoint; until then Recover takes them from the
// log. So a batch of any size is atomic, and a batch whose write failed has touched only its log key.

package spill

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/journal"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	chunkBytes = 256 << 10 // per write of a long operation
	chunkOps   = 1 << 10
	keepRaw    = 8 << 20 // scratch memory kept between batches
)

// effects are the changes of a batch to rows and blocks.
type effects struct {
	rows []storage.Row
	drop []uint32
}

func copyEffects(b *storage.Batch) effects {
	e := effects{drop: append([]uint32(nil), b.Drop...)}
	for _, r := range b.Rows {
		r.Value = bytes.Clone(r.Value)
		e.rows = append(e.rows, r)
	}
	return e
}

// undo collects writes whose outcome is unknown, to revert them. The zero value is empty.
type undo struct {
	logs  [][]byte // log keys of failed batches
	state bool     // the state must be written again
	told  bool     // reverting has failed, and the failure was reported
}

// log adds the key of a failed batch. The next batch may have the same key.
func (u *undo) log(key []byte) {
	if !slices.ContainsFunc(u.logs, func(k []byte) bool { return bytes.Equal(k, key) }) {
		u.logs = append(u.logs, key)
	}
}

// Commit makes b durable, completely or not at all.
func (s *Store) Commit(b *storage.Batch) error {
	return s.during("commit", func() error {
		s.turn.Lock()
		defer s.turn.Unlock()
		return s.commitLocked(b)
	})
}

func (s *Store) commitLocked(b *storage.Batch) error {
	if err := checkBatch(b); err != nil {
		return err
	}
	if !s.aligned {
		s.offset, s.aligned = s.last+1-b.ID, true
	}
	id := b.ID + s.offset
	if id <= s.last {
		return fmt.Errorf("batch %d comes after %d", b.ID, s.last-s.offset)
	}
	s.raw = journal.AppendBatch(s.raw[:0], b)
	pieces, err := journal.AppendPieces(nil, s.state.adopted+1, id, s.last, s.raw)
	if cap(s.raw) > keepRaw {
		s.raw = nil
	}
	if err != nil {
		return err
	}
	if err := s.putPieces(pieces, len(b.Admit) == 0); err != nil {
		for _, p := range pieces {
			s.undo.log(p.Key)
		}
		s.takeBack()
		return err
	}
	s.last = id
	s.db.Confirm(id)
	s.forgetBlocks(s.dropping) // this batch deletes them
	e := copyEffects(b)
	s.setPending(e)
	s.dropping = e.drop
	s.dropped = append(s.dropped, b.Drop...)
	return nil
}

// takeBack reverts a write that failed. If that fails too, the next write reverts it; so the
// failure is reported only once.
func (s *Store) takeBack() {
	if err := s.settle(false); err != nil && !s.undo.told {
		s.undo.told = true
		s.opts.Logger.Warn("spill: a failed write is not reverted yet; the next successful write reverts it", "error", err)
	}
}

func checkBatch(b *storage.Batch) error {
	for i := range b.Admit {
		if n := len(b.Admit[i].Host); n == 0 || n > 255 {
			return fmt.Errorf("admission %d has a host key of %d bytes; want 1 to 255", i, n)
		}
		if n := len(b.Admit[i].Body); n > blocks.MaxBody {
			return fmt.Errorf("admission %d has a body of %d bytes; want at most %d", i, n, blocks.MaxBody)
		}
	}
	return nil
}

// putPieces writes a batch: its pieces, and last piece 0 together with other pending changes. With
// spare it may use the volume's reserve.
func (s *Store) putPieces(pieces []journal.Piece, spare bool) error {
	b := kv.Batch{Spare: spare}
	s.addEffects(&b)
	s.addUndo(&b)
	b.Set(pieces[0].Key, pieces[0].Value)
	if !s.db.Fits(&b) || len(pieces) > 1 {
		if err := s.settle(true); err != nil {
			return err
		}
		for _, p := range pieces[1:] {
			b.Reset()
			b.Spare = spare
			b.Set(p.Key, p.Value)
			if err := s.put(&b, false); err != nil {
				return err
			}
		}
		b.Reset()
		b.Spare = spare
		b.Set(pieces[0].Key, pieces[0].Value)
	}
	if err := s.put(&b, s.opts.Sync); err != nil {
		return err
	}
	s.settled(true)
	return nil
}

// settle writes what is pending, in chunks: what failed writes left and, if effects is set, the
// effects of the last batch.
func (s *Store) settle(effects bool) error {
	b := kv.Batch{Spare: true}
	s.addUndo(&b)
	if effects {
		s.addEffects(&b)
	}
	if err := s.putChunks(&b, s.opts.Sync && !effects); err != nil {
		return err
	}
	s.settled(effects)
	return nil
}

func (s *Store) settled(all bool) {
	s.undo = undo{}
	if all {
		s.setPending(effects{})
	}
}

func (s *Store) addUndo(b *kv.Batch) {
	for _, k := range s.undo.logs {
		b.Delete(k)
	}
	if s.undo.state {
		key := keys.Prefix(keys.Fixed, keys.KindState)
		b.Set(key, s.current().value(key))
	}
}

func (s *Store) addEffects(b *kv.Batch) {
	for _, r := range s.pending.rows {
		if r.Value == nil {
			b.Delete(keys.Row(r.Key))
		} else {
			b.Set(keys.Row(r.Key), r.Value)
		}
	}
	for _, d := range s.pending.drop {
		for _, key := range s.keysOf(d) {
			b.Delete(key)
		}
	}
}

// putChunks writes b in several steps of bounded size, the last with sync.
func (s *Store) putChunks(b *kv.Batch, sync bool) error {
	part := kv.Batch{Spare: b.Spare}
	for i, o := range b.Ops {
		part.Ops = append(part.Ops, o)
		part.Bytes += len(o.Key) + len(o.Value)
		if i < len(b.Ops)-1 && (part.Bytes >= chunkBytes || len(part.Ops) >= chunkOps || !s.db.Fits(&part)) {
			if err := s.putFitting(&part, false); err != nil {
				return err
			}
			part.Reset()
			part.Spare = b.Spare
		}
	}
	return s.putFitting(&part, sync)
}

// putFitting writes b, splitting it in halves until the engine accepts them.
func (s *Store) putFitting(b *kv.Batch, sync bool) error {
	if s.db.Fits(b) {
		return s.put(b, sync)
	}
	if len(b.Ops) < 2 {
		return errors.New("one value is too large")
	}
	head, tail := kv.Batch{Spare: b.Spare}, kv.Batch{Spare: b.Spare}
	for i, o := range b.Ops {
		half := &head
		if i >= len(b.Ops)/2 {
			half = &tail
		}
		half.Ops = append(half.Ops, o)
		half.Bytes += len(o.Key) + len(o.Value)
	}
	if err := s.putFitting(&head, false); err != nil {
		return err
	}
	return s.putFitting(&tail, sync)
}
