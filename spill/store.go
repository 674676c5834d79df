// This file holds a store's life: opening it on an engine, one user at a time, closing it. What it
// stores is the business of commit.go, pack.go, load.go, checkpoint.go and recover.go.

package spill

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
)

var errIdle = errors.New("store is not in use; call Recover first")

// Store is a storage.Spill. Make one with Open.
//
// Lock order: life, turn, pack, mu; write is held for one write only.
type Store struct {
	db      kv.DB
	opts    Options // read-only
	tidyNow bool    // tidy and merge inside Checkpoint; read-only
	view    *view   // nil but of OpenView

	life   sync.RWMutex // held for reading by every call
	closed bool         // guarded by life

	turn     sync.Mutex        // Recover, Commit, Checkpoint and Release
	state    state             // guarded by turn; as last stored, except floor and next
	last     uint64            // guarded by turn; ID of the last batch
	offset   uint64            // guarded by turn; from the frontier's batch IDs to ours
	aligned  bool              // guarded by turn; offset is known
	pending  effects           // guarded by turn; of the last batch, not yet applied; see setPending
	dropping []uint32          // guarded by turn; blocks of pending that spans still count
	undo     undo              // guarded by turn
	deadGen  map[uint32]uint32 // guarded by turn; generation of each segment of dead bits

	dropped []uint32 // guarded by turn; blocks whose dead bits may be deleted
	raw     []byte   // guarded by turn; scratch

	pack   sync.Mutex
	writer blocks.Writer // guarded by pack

	mu        sync.Mutex
	inUse     bool              // guarded by mu
	gens      map[uint32]uint32 // guarded by mu; the frontier's generations of this use to ours
	newest    uint32            // guarded by mu; highest generation in use
	spans     []span            // guarded by mu; ascending
	next      uint32            // guarded by mu; number of the next block
	snapshots []*snapshot       // guarded by mu; snapshots in use
	orphans   [][]byte          // guarded by mu; keys of blocks of a failed Pack
	floor     uint32            // guarded by mu; see state

	latest atomic.Pointer[latestRows] // the rows in pending; nil: none

	write sync.Mutex // one write at a time, with its sync

	blocks    blocks.Cache
	places    blocks.Places
	marks     marks.Set
	tidier    tidier
	merger    merger
	reclaimer reclaimer
}

// span records which generation wrote the blocks from first on, and of which kind they are.
type span struct {
	first, gen uint32
	live       uint32 // blocks that are not dropped
	kind       keys.Kind
}

// OpenOn opens a store on an engine of this module; Close closes the engine. It is for tests:
// background work is done inside Checkpoint, which makes the order of writes deterministic, and
// runs of marks are merged in pairs, so that short tests cover merges.
func OpenOn(db kv.DB, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("spill: options: %w", err)
	}
	s, err := newStore(db, o, true)
	if err == nil {
		s.marks.Policy.FanOut = 2
	}
	return s, err
}

func newStore(db kv.DB, o Options, tidyNow bool) (*Store, error) {
	if err := checkVersion(db); err != nil {
		return nil, err
	}
	s := &Store{db: db, opts: o, tidyNow: tidyNow}
	s.places.Most = o.MemoryBudget / 32
	s.marks.Init(max(min(o.MemoryBudget/2, o.MemoryBudget-db.Footprint()), leastFilters))
	s.tidier.halt = make(chan struct{})
	if t, err := loadState(db); err == nil { // Recover reports errors
		s.marks.Expect(t.runs)
	}
	if !tidyNow {
		s.startReclaimer()
	}
	return s, nil
}

// Close closes the store; committed data stays. Close its frontier first: one that still uses
// the store gets ErrClosed from then on, also in its own Close. Close waits for background work that cannot be
// interrupted. Closing twice is not an error.
func (s *Store) Close() error {
	s.tidier.stop()
	s.merger.stop()
	s.reclaimer.stop()
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.endSnapshots()
	s.closed = true
	if err := errors.Join(s.marks.Close(), s.db.Close(), s.view.close()); err != nil {
		return fmt.Errorf("spill: close: %w", err)
	}
	return nil
}

// Footprint returns an upper bound, in bytes, of the memory that the store takes until the next
// checkpoint: the engine, and the filters and indexes of marks on disk.
func (s *Store) Footprint() int64 {
	return s.db.Footprint() + s.marks.Bytes() + s.blocks.Bytes() + s.places.Bytes()
}

// Release ends the use that Recover began. Recover may be called again.
func (s *Store) Release() error {
	s.life.RLock()
	defer s.life.RUnlock()
	s.tidier.wait()
	s.merger.stop()
	s.endSnapshots()
	s.blocks.Clear()
	s.places.Clear()
	s.turn.Lock()
	defer s.turn.Unlock()
	if !s.closed && (len(s.undo.logs) > 0 || s.undo.state) { // the last chance to revert them
		if err := s.settle(false); err != nil {
			s.opts.Logger.Warn("spill: failed write not reverted", "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inUse = false
	return nil
}

// enter begins a call that needs a store in use; leave ends it.
func (s *Store) enter() error {
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return storage.ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inUse {
		s.life.RUnlock()
		return errIdle
	}
	return nil
}

func (s *Store) leave() { s.life.RUnlock() }

// during makes a call that needs a store in use; its error says what it was doing.
func (s *Store) during(what string, call func() error) error {
	err := s.enter()
	if err == nil {
		defer s.leave()
		err = call()
	}
	if err != nil {
		return fmt.Errorf("spill: %s: %w", what, err)
	}
	return nil
}

// put is the only way to the engine's Write.
func (s *Store) put(b *kv.Batch, sync bool) error {
	if len(b.Ops) == 0 && !sync {
		return nil
	}
	s.write.Lock()
	err := s.db.Write(b, sync)
	s.write.Unlock()
	if s.db.Wasteful() {
		s.reclaimer.wake()
	}
	return err
}

// generation returns the store's number for the frontier's generation gen. The frontier does not
// know how many generations there were before it was opened.
func (s *Store) generation(gen uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.gens[gen]
	if !ok {
		s.newest++
		g = s.newest
		s.gens[gen] = g
	}
	return g
}

// keyOf returns the key of a block.
func (s *Store) keyOf(block uint32) ([]byte, bool) {
	x, ok := s.spanOf(block)
	if x.kind == keys.KindTimed {
		return keys.Timed(x.gen, block), ok
	}
	return keys.Block(x.gen, block), ok
}

// keysOf returns all keys of a block.
func (s *Store) keysOf(block uint32) [][]byte {
	switch x, ok := s.spanOf(block); {
	case !ok:
		return nil
	case x.kind == keys.KindTimed:
		return [][]byte{keys.Timed(x.gen, block), keys.Head(x.gen, block)}
	default:
		return [][]byte{keys.Block(x.gen, block)}
	}
}

func (s *Store) spanOf(block uint32) (span, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := spanAt(s.spans, block)
	if i < 0 || block >= s.next {
		return span{}, false
	}
	return s.spans[i], true
}

// forgetBlocks notes that blocks are dropped. What is known of a round goes with its last block.
func (s *Store) forgetBlocks(blocks []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	empty := false
	for _, b := range blocks {
		s.places.Forget(b)
		if i := spanAt(s.spans, b); i >= 0 && s.spans[i].live > 0 {
			s.spans[i].live--
			empty = empty || s.spans[i].live == 0
		}
	}
	if empty {
		last := s.spans[len(s.spans)-1] // may still get more
		s.spans = slices.DeleteFunc(s.spans, func(x span) bool { return x.live == 0 && x != last })
	}
}

// spanAt returns the index of the last span that begins at block or before; -1: there is none.
func spanAt(spans []span, block uint32) int {
	return sort.Search(len(spans), func(i int) bool { return spans[i].first > block }) - 1
}

// get reads a value. What the engine cannot read is a *storage.CorruptError.
func get(db kv.Reader, key []byte, fn func(value []byte) error) (bool, error) {
	found, err := db.Get(key, fn)
	return found, damaged(key, err)
}

// must reads a value with fn, whose error is one of damage; so is missing, if there is none.
func must(db kv.Reader, key []byte, missing error, fn func(value []byte) error) error {
	found, err := get(db, key, func(value []byte) error { return keys.Corrupt(key, fn(value)) })
	if err == nil && !found {
		err = keys.Corrupt(key, missing)
	}
	return err
}

func damaged(key []byte, err error) error {
	if _, already := errors.AsType[*storage.CorruptError](err); errors.Is(err, kv.ErrDamaged) && !already {
		return keys.Corrupt(key, err)
	}
	return err
}
