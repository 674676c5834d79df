// This file makes a partition's log the truth: a batch is in the log before the local store has it.
//
// Blocks, known URLs and checkpoints are the store's own; only batches are logged. The store is at every
// moment what a prefix of the log makes of a copy, and a position row in each batch says which prefix.

package fleet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
)

// positionKey is the row with the number of the last change that the store has.
const positionKey = "fleet:position"

// rest is the pause between two attempts to reach the engine.
const rest = 100 * time.Millisecond

// errFenced says that the log belongs to a later owner.
var errFenced = errors.New("fleet: another node has taken over")

// store is what a partition needs of a spill.Store.
type store interface {
	storage.Spill
	CopyTo(ctx context.Context, dir string) error
	Close() error
}

// logged is a storage.Spill whose batches are in the log first. After the first error that leaves open
// whether the log has a batch, it takes no more.
type logged struct {
	store
	engine    Engine
	partition int
	epoch     uint64
	ctx       context.Context // ends when the partition is given up
	failed    func(error)     // called once

	turn slot  // of Commit; guards err
	err  error // why nothing is taken any more

	mu     sync.Mutex
	last   uint64 // guarded by mu; number of the log's last record
	change uint64 // guarded by mu; the last whole one
	whole  uint64 // guarded by mu; number of its last record, or of a later fence
	size   int64  // guarded by mu; bytes of changes since the last copy
}

// Commit logs b and then stores it. Batches of the store's own checkpoints are stored only.
func (s *logged) Commit(b *storage.Batch) error {
	s.turn.take()
	defer s.turn.release()
	if s.err != nil {
		return s.err
	}
	if b.Local {
		return s.store.Commit(b)
	}
	if err := s.log(kindBatch, spill.AppendBatch(nil, b)); err != nil {
		return s.poison(err)
	}
	if err := s.store.Commit(positioned(b, s.change)); err != nil {
		return s.poison(err)
	}
	return nil
}

// positioned returns b with the row that says which change it is.
func positioned(b *storage.Batch, change uint64) *storage.Batch {
	x := *b
	x.Rows = append(slices.Clip(b.Rows), storage.Row{Key: positionKey, Value: binary.AppendUvarint(nil, change)})
	return &x
}

// poison ends the use of the store: the log may have what the store has not.
func (s *logged) poison(err error) error {
	s.err = fmt.Errorf("%w, for %w: partition %d: %w", storage.ErrReopen, storage.ErrMoved, s.partition, err)
	go s.failed(s.err)
	return s.err
}

// log appends the next change to the log.
func (s *logged) log(k kind, data []byte) error {
	pieces := uint64(max(1, (len(data)+pieceBytes-1)/pieceBytes))
	for i := range pieces {
		part := data[i*pieceBytes : min(len(data), int(i+1)*pieceBytes)]
		r := record{kind: k, epoch: s.epoch, change: s.change + 1, piece: i, pieces: pieces, data: part}
		if err := s.append(r.append(nil)); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change, s.whole = s.change+1, s.last
	s.size += int64(len(data))
	return nil
}

// append appends a record, and tries again until it is there or another owner's is.
func (s *logged) append(data []byte) error {
	unknown := false // an attempt before may have been successful
	for {
		number, err := s.engine.Append(s.ctx, s.partition, s.last, data)
		if err != nil && errors.Is(err, ErrConflict) {
			if !unknown {
				return errFenced
			}
			var found []byte
			if number, found, err = s.engine.Last(s.ctx, s.partition); err == nil && !bytes.Equal(found, data) {
				return errFenced
			}
		} else if err != nil {
			unknown = true
		}
		if err == nil {
			s.ends(number)
			return nil
		}
		if !pause(s.ctx, rest) {
			return errors.Join(context.Cause(s.ctx), err)
		}
	}
}

// ends notes the end of the log.
func (s *logged) ends(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = number
}

// fence ends what earlier owners may append.
func (s *logged) fence() error {
	for {
		number, data, err := s.engine.Last(s.ctx, s.partition)
		var r record
		if err == nil && len(data) > 0 {
			r, err = readRecord(data)
		}
		if err == nil && r.epoch > s.epoch {
			return errFenced
		}
		if err == nil && r.epoch == s.epoch { // an attempt before was successful
			s.whole = number
			s.ends(number)
			return nil
		}
		if err == nil {
			s.ends(number)
			f := record{kind: kindFence, epoch: s.epoch, pieces: 1}
			number, err = s.engine.Append(s.ctx, s.partition, s.last, f.append(nil))
			if err == nil {
				s.whole = number
				s.ends(number)
				return nil
			}
		}
		if !pause(s.ctx, rest) {
			return errors.Join(context.Cause(s.ctx), err)
		}
	}
}

// release appends what clients still have, as the last change. Nothing is taken after it.
func (s *logged) release(leases []byte) error {
	s.turn.take()
	defer s.turn.release()
	if s.err != nil {
		return s.err
	}
	err := s.log(kindRelease, leases)
	if s.err = err; err == nil {
		s.err = fmt.Errorf("%w, for %w", storage.ErrReopen, storage.ErrMoved)
	}
	return err
}

// grown returns how many bytes were logged since the last copy, and the last whole change with its place in
// the log.
func (s *logged) grown() (bytes int64, last, change uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.whole, s.change
}
