// This file replays blocks and the log.

package spill

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/journal"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

var (
	errNoBatch = errors.New("a batch before it is missing")
	errNoPiece = errors.New("a piece of the batch is missing")
)

// logEntry is one batch of the log, by its keys.
type logEntry struct {
	id     uint64
	gen    uint32
	head   bool // piece 0 exists
	pieces []uint16
}

func (e logEntry) keys() [][]byte {
	var all [][]byte
	for _, p := range e.pieces {
		all = append(all, keys.Log(e.gen, e.id, p))
	}
	return all
}

// compare orders batches by number, and those of one number by generation.
func (e logEntry) compare(o logEntry) int {
	return cmp.Or(cmp.Compare(e.id, o.id), cmp.Compare(e.gen, o.gen))
}

// withPiece adds a piece, whose key is behind those before it, to the last batch of a log or to a new one.
func withPiece(log []logEntry, id uint64, gen uint32, piece uint16) []logEntry {
	n := len(log)
	if n == 0 || log[n-1].id != id || log[n-1].gen != gen {
		log = append(log, logEntry{id: id, gen: gen})
		n++
	}
	e := &log[n-1]
	e.head = e.head || piece == 0
	e.pieces = append(e.pieces, piece)
	return log
}

// surveyLog finds the batches behind the checkpoint, and reads the last one.
func (rc *recovery) surveyLog() error {
	for _, g := range rc.gens {
		if g < rc.state.floor {
			continue
		}
		err := rc.db.Iterate(keys.Prefix(g, keys.KindLog), keys.After(g, keys.KindLog), func(key []byte, _ func() ([]byte, error)) error {
			id, piece, ok := keys.LogName(key)
			if !ok {
				return keys.Corrupt(key, errBadKey)
			}
			if id <= rc.state.through || id > rc.upTo {
				return nil // discardLog deletes it
			}
			rc.log = withPiece(rc.log, id, g, piece)
			return rc.ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(rc.log, logEntry.compare)
	rc.log = slices.DeleteFunc(rc.log, func(e logEntry) bool {
		if !e.head {
			rc.headless = append(rc.headless, e.keys()...)
		}
		return !e.head
	})
	n := len(rc.log)
	if n == 0 {
		return nil
	}
	// The rows and dropped blocks of the last batch may not have been applied yet.
	raw, _, err := readLog(rc.db, nil, rc.log[n-1])
	if err != nil {
		return err
	}
	if err := journal.ReadBatch(&rc.tail, raw); err != nil {
		return keys.Corrupt(keys.Log(rc.log[n-1].gen, rc.log[n-1].id, 0), err)
	}
	drop := slices.Sorted(slices.Values(rc.tail.Drop)) // of a deleted crawl, this may be most blocks
	rc.blocks = slices.DeleteFunc(rc.blocks, func(b uint32) bool {
		_, dropped := slices.BinarySearch(drop, b)
		if dropped {
			rc.spans[spanAt(rc.spans, b)].live--
		}
		return dropped
	})
	return nil
}

// discardLog deletes what the last checkpoint made obsolete, and pieces of incomplete batches.
func (rc *recovery) discardLog() error {
	var b kv.Batch
	for _, g := range rc.gens {
		if g < rc.state.floor {
			continue
		}
		err := rc.db.Iterate(keys.Prefix(g, keys.KindLog), keys.Log(g, rc.state.through+1, 0), func(key []byte, _ func() ([]byte, error)) error {
			b.Delete(append([]byte(nil), key...))
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, k := range rc.headless {
		b.Delete(k)
	}
	return rc.s.putChunks(&b, false)
}

// readLog reads the encoded batch of e into raw, and the ID of the batch before.
func readLog(db kv.Reader, raw []byte, e logEntry) (_ []byte, before uint64, err error) {
	raw = raw[:0]
	more := 0
	for i := 0; i <= more; i++ {
		key := keys.Log(e.gen, e.id, uint16(i))
		err := must(db, key, errNoPiece, func(v []byte) (err error) {
			if i == 0 {
				raw, more, before, err = journal.ReadHead(raw, key, v)
			} else {
				raw, err = journal.ReadPiece(raw, key, v)
			}
			return err
		})
		if err != nil {
			return raw, 0, err
		}
	}
	return raw, before, nil
}

// parts replays the directories of the blocks.
func (rc *recovery) parts() error {
	return rc.values(keys.KindBlock, func(_ uint32, key, v []byte) error {
		block, _ := keys.Number(key)
		if !rc.has(block) {
			return nil // the last batch dropped it
		}
		err := blocks.Parts(key, v, func(q storage.Queue, first uint16, count uint8) error {
			return rc.tell(rc.to.Part(q, storage.Part{Block: block, First: first, Count: count}))
		})
		if err != nil && rc.theirs == nil {
			return keys.Corrupt(key, err)
		}
		return err
	})
}

// timed replays the heads of the timed blocks without reading the blocks.
func (rc *recovery) timed() error {
	return rc.values(keys.KindHead, func(_ uint32, key, v []byte) error {
		block, _ := keys.Number(key)
		if !rc.has(block) {
			return nil // the last batch dropped it
		}
		b, err := blocks.ReadTimedHead(key, v)
		if err != nil {
			return keys.Corrupt(key, err)
		}
		return rc.tell(rc.to.Timed(b))
	})
}

// batches replays the log. Each batch names the one before it, which distinguishes a missing batch
// from one that was never committed.
func (rc *recovery) batches() error {
	var (
		b         storage.Batch
		raw       [2][]byte
		held      *logEntry // read, but not yet known to be valid
		delivered = rc.state.through
		highest   uint32
	)
	deliver := func(e *logEntry, raw []byte) error {
		if err := journal.ReadBatch(&b, raw); err != nil {
			return keys.Corrupt(keys.Log(e.gen, e.id, 0), err)
		}
		b.ID, delivered = e.id, e.id
		for _, d := range b.Drop {
			highest = max(highest, d)
		}
		for _, c := range b.Finish {
			highest = max(highest, c.Block)
		}
		return rc.tell(rc.to.Batch(&b))
	}
	for i := range rc.log {
		if err := rc.ctx.Err(); err != nil {
			return err
		}
		e := &rc.log[i]
		var before uint64
		var err error
		if raw[1], before, err = readLog(rc.db, raw[1], *e); err != nil {
			return err
		}
		follows := before == delivered || before < delivered && delivered == rc.state.through
		switch {
		case held != nil && before == held.id:
			if err := deliver(held, raw[0]); err != nil {
				return err
			}
		case !follows:
			return keys.Corrupt(keys.Log(e.gen, e.id, 0), fmt.Errorf("%w: batch %d follows %d", errNoBatch, e.id, before))
		case held != nil: // its Commit failed and was not taken back
			rc.failed = append(rc.failed, held.keys()...)
		}
		held = e
		raw[0], raw[1] = raw[1], raw[0]
	}
	if held != nil {
		if err := deliver(held, raw[0]); err != nil {
			return err
		}
	}
	rc.next = max(rc.next, highest+1)
	return nil
}
