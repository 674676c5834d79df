// This file replays a store.
//
// It first determines what is valid: the state, the generations up to the adopted one, and the log
// behind it. Everything else is deleted when all of that was read, before anything is written, so
// that no number is ever used for two things. If the replay fails nothing was changed.

package spill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

var (
	errNoSegment = errors.New("dead bits are missing")
	errBadKey    = errors.New("key is malformed")
	errNoEnd     = errors.New("the end of the log is missing")
)

// Recover starts using the store and replays it into r.
func (s *Store) Recover(ctx context.Context, r storage.Recovery) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return fmt.Errorf("spill: recover: %w", storage.ErrClosed)
	}
	s.tidier.wait()
	s.merger.stop()
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	if s.inUse {
		s.mu.Unlock()
		return fmt.Errorf("spill: recover: %w", storage.ErrInUse)
	}
	s.inUse = true
	s.mu.Unlock()
	rc := recovery{s: s, db: s.db, ctx: ctx, to: r, upTo: math.MaxUint64}
	if err := rc.run(); err != nil {
		s.blocks.Clear()
		s.mu.Lock()
		s.inUse = false
		s.mu.Unlock()
		if rc.theirs != nil {
			return rc.theirs
		}
		return fmt.Errorf("spill: recover: %w", err)
	}
	if err := s.view.complete(); err != nil {
		s.opts.Logger.Warn("spill: release the lock of a viewed folder", "error", err)
	}
	return nil
}

// recovery is one call of Recover.
type recovery struct {
	s      *Store
	db     kv.Reader
	upTo   uint64 // last batch
	ctx    context.Context
	to     storage.Recovery
	theirs error // error returned by to

	state  state
	gens   []uint32 // generations that have keys
	blocks []uint32 // ascending; valid blocks
	spans  []span
	dead   map[uint32]uint32
	log    []logEntry
	tail   storage.Batch // the last batch, whose effects may not be applied yet
	next   uint32

	headless [][]byte // log keys of batches that were never complete
	dropped  []uint32 // deleted blocks that still have dead bits
	failed   [][]byte // log keys of batches whose Commit failed and was not reverted
}

func (rc *recovery) run() error {
	return inOrder(rc.ctx,
		rc.loadState, rc.survey, rc.surveyLog, rc.complete, rc.openRuns, rc.install,
		rc.begin, rc.marks, rc.deadBits, rc.parts, rc.timed, rc.batches, rc.continued, rc.rows, rc.discard, rc.sweepRuns,
	)
}

// inOrder takes steps until one fails or ctx ends.
func inOrder(ctx context.Context, steps ...func() error) error {
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// tell keeps the frontier's error, to return it unchanged.
func (rc *recovery) tell(err error) error {
	if err != nil {
		rc.theirs = err
	}
	return err
}

func (rc *recovery) loadState() (err error) {
	rc.state, err = loadState(rc.db)
	return err
}

// survey finds the generations, their blocks and their dead bits, by keys alone.
func (rc *recovery) survey() error {
	rc.next = rc.state.next
	for gen := uint64(1); gen < keys.Fixed; {
		found := false
		err := rc.db.Iterate(keys.Prefix(uint32(gen), 0), keys.Prefix(keys.Fixed, 0), func(key []byte, _ func() ([]byte, error)) error {
			if len(key) <= keys.HeadLen {
				return keys.Corrupt(key, errBadKey)
			}
			gen, found = uint64(key[0])<<24|uint64(key[1])<<16|uint64(key[2])<<8|uint64(key[3]), true
			return kv.ErrStop
		})
		if err != nil && err != kv.ErrStop {
			return err
		}
		if !found {
			break
		}
		rc.gens = append(rc.gens, uint32(gen))
		gen++
	}
	rc.dead = map[uint32]uint32{}
	for _, g := range rc.gens {
		if err := rc.surveyBlocks(g); err != nil {
			return err
		}
		if g > rc.state.adopted {
			continue
		}
		if err := rc.numbers(g, keys.KindDead, func(n uint32) { rc.dead[n] = g }); err != nil {
			return err
		}
	}
	return nil
}

// surveyBlocks finds the blocks of a generation. They have higher numbers than those of all earlier
// generations.
func (rc *recovery) surveyBlocks(gen uint32) error {
	var spans []span
	for _, k := range []keys.Kind{keys.KindBlock, keys.KindHead} {
		as := k
		if k == keys.KindHead {
			as = keys.KindTimed
		}
		err := rc.numbers(gen, k, func(n uint32) { spans = append(spans, span{first: n, gen: gen, kind: as}) })
		if err != nil {
			return err
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	for _, x := range spans {
		rc.next = max(rc.next, x.first+1)
		if gen > rc.state.adopted {
			continue
		}
		rc.blocks = append(rc.blocks, x.first)
		if n := len(rc.spans); n == 0 || rc.spans[n-1].gen != gen || rc.spans[n-1].kind != x.kind {
			rc.spans = append(rc.spans, x)
		}
		rc.spans[len(rc.spans)-1].live++
	}
	return nil
}

// numbers calls fn with the numbers in the keys of a kind.
func (rc *recovery) numbers(gen uint32, k keys.Kind, fn func(uint32)) error {
	return rc.db.Iterate(keys.Prefix(gen, k), keys.After(gen, k), func(key []byte, _ func() ([]byte, error)) error {
		n, ok := keys.Number(key)
		if !ok {
			return keys.Corrupt(key, errBadKey)
		}
		fn(n)
		return rc.ctx.Err()
	})
}

// has reports whether a block is valid.
func (rc *recovery) has(block uint32) bool {
	_, ok := slices.BinarySearch(rc.blocks, block)
	return ok
}

// discard deletes what is not valid. First it stores the highest block number used, which the
// deleted blocks can no longer show.
func (rc *recovery) discard() error {
	stale := slices.ContainsFunc(rc.gens, func(g uint32) bool { return g > rc.state.adopted })
	if stale && rc.next > rc.state.next {
		t := rc.state
		t.next = rc.next
		b := kv.Batch{Spare: true}
		key := keys.Prefix(keys.Fixed, keys.KindState)
		b.Set(key, t.value(key))
		if err := rc.s.put(&b, rc.s.opts.Sync); err != nil {
			return err
		}
		rc.s.state = t
	}
	for _, g := range rc.gens {
		if g > rc.state.adopted {
			if err := rc.s.deleteGeneration(g, keys.KindBlock, keys.KindHead, keys.KindTimed, keys.KindDead); err != nil {
				return err
			}
			continue
		}
		var b kv.Batch
		err := rc.numbers(g, keys.KindDead, func(n uint32) {
			if rc.dead[n] != g {
				b.Delete(keys.Dead(g, n))
			}
		})
		if err != nil {
			return err
		}
		if err := rc.s.putChunks(&b, false); err != nil {
			return err
		}
	}
	return rc.discardLog()
}

// complete reports that the end of the log is missing.
func (rc *recovery) complete() error {
	last := rc.state.through
	for _, e := range rc.log {
		if e.head {
			last = max(last, e.id)
		}
	}
	if n := rc.s.db.Confirmed(); last < n {
		return keys.Corrupt(keys.Log(keys.Fixed, last+1, 0), fmt.Errorf("%w: the log ends with batch %d, and %d was confirmed", errNoEnd, last, n))
	}
	return nil
}

// install makes the store ready for work.
func (rc *recovery) install() error {
	s := rc.s
	s.state = rc.state
	s.last, s.offset, s.aligned = rc.state.through, 0, false
	if n := len(rc.log); n > 0 {
		s.last, s.aligned = rc.log[n-1].id, true
	}
	s.setPending(copyEffects(&rc.tail))
	s.undo = undo{}
	s.deadGen = rc.dead
	s.dropped = slices.Clone(s.pending.drop)
	s.dropping = slices.DeleteFunc(slices.Clone(s.pending.drop), func(b uint32) bool { return !rc.has(b) }) // the others are gone, and were not counted
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gens = map[uint32]uint32{}
	s.newest = rc.state.adopted
	s.next = rc.next
	s.orphans = nil
	s.floor = max(rc.state.floor, 1)
	s.spans = rc.spans
	return nil
}

// begin lets the frontier read the rows that it needs before all others.
func (rc *recovery) begin() error { return rc.tell(rc.to.Begin(rc.s.row)) }

func (rc *recovery) openRuns() error { return rc.s.marks.Open(rc.s.db, rc.state.runs) }

func (rc *recovery) sweepRuns() error { return rc.s.sweepRuns(rc.state.runs) }

// marks reports the number of marks in all runs.
func (rc *recovery) marks() error {
	var n int64
	for _, r := range rc.state.runs {
		n += int64(r.Count)
	}
	return rc.tell(rc.to.Marks(n))
}

// values calls fn with the valid values of a kind, in order.
func (rc *recovery) values(k keys.Kind, fn func(gen uint32, key, v []byte) error) error {
	for _, g := range rc.gens {
		if g > rc.state.adopted {
			break
		}
		err := rc.db.Iterate(keys.Prefix(g, k), keys.After(g, k), func(key []byte, value func() ([]byte, error)) error {
			if err := rc.ctx.Err(); err != nil {
				return err
			}
			v, err := value()
			if err != nil {
				return damaged(key, err)
			}
			return fn(g, key, v)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// continued passes the numbers in use and the failed writes, as found in the log, to the store.
func (rc *recovery) continued() error {
	s := rc.s
	s.undo.logs = append(s.undo.logs, rc.failed...)
	s.dropped = append(s.dropped, rc.dropped...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, rc.next)
	return nil
}

// deadBits replays the finished positions of blocks that still exist.
func (rc *recovery) deadBits() error {
	for _, n := range slices.Sorted(maps.Keys(rc.dead)) {
		g, err := loadSegment(rc.db, rc.dead, n)
		if err != nil {
			return err
		}
		for _, block := range slices.Sorted(maps.Keys(g)) {
			if !rc.has(block) {
				rc.dropped = append(rc.dropped, block)
				continue
			}
			if err := rc.tell(rc.to.Dead(block, g[block])); err != nil {
				return err
			}
		}
	}
	return nil
}
