// This file is stores that wait, fail, or hold nothing.

package harness

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// ignoring is a Recovery of a store that need not be looked at.
type ignoring struct{ storage.Recovery }

func (ignoring) Begin(func(string) ([]byte, bool, error)) error { return nil }

func (ignoring) Marks(int64) error { return nil }

func (ignoring) Batch(*storage.Batch) error { return nil }

func (ignoring) Row(string, []byte) error { return nil }

// FillWithDormant stores the rows of n hosts that have a Crawl-delay.
func FillWithDormant(tb testing.TB, s storage.Spill, n int) {
	tb.Helper()
	require.NoError(tb, s.Recover(context.Background(), ignoring{}))
	value := append(binary.AppendUvarint([]byte{1 << 1}, uint64(Dawn.UnixMilli())), binary.AppendUvarint([]byte{2 << 1}, uint64(Slow/time.Millisecond))...)
	for id := uint64(1); n > 0; id++ {
		b := &storage.Batch{ID: id}
		for ; n > 0 && len(b.Rows) < 4096; n-- {
			b.Rows = append(b.Rows, storage.Row{Key: "h:" + DormantHost(n), Value: value})
		}
		require.NoError(tb, s.Commit(b))
	}
	require.NoError(tb, s.Release())
}

// ErrDisk is the error of a store that fails.
var ErrDisk = errors.New("disk fault")

// BlockKeys lists the keys of the blocks on a machine's disk, in order.
func BlockKeys(m *spilltest.Machine) (keys []string) {
	m.Damage(func(k, v []byte) []byte {
		if len(k) > 4 && k[4] == 'B' {
			keys = append(keys, string(k))
		}
		return v
	})
	slices.Sort(keys)
	return keys
}

// Hooked is a Spill with hooks.
type Hooked struct {
	storage.Spill
	mu     sync.Mutex
	commit func(*storage.Batch) error // before; an error fails the commit
	loaded func()                     // after a Load
}

// Set sets both hooks.
func (h *Hooked) Set(c func(*storage.Batch) error, l func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.commit, h.loaded = c, l
}

// Commit implements storage.Spill.
func (h *Hooked) Commit(b *storage.Batch) error {
	h.mu.Lock()
	c := h.commit
	h.mu.Unlock()
	if c != nil {
		if err := c(b); err != nil {
			return err
		}
	}
	return h.Spill.Commit(b)
}

// Load implements storage.Spill.
func (h *Hooked) Load(p storage.Part, want uint32, fn func(int, storage.Record)) error {
	err := h.Spill.Load(p, want, fn)
	h.mu.Lock()
	l := h.loaded
	h.mu.Unlock()
	if l != nil {
		l()
	}
	return err
}

// HookedWorld is a world on a store with hooks.
func HookedWorld(t *testing.T, o frontier.Options) (*World, *Hooked) {
	w := NewStoredWorld(t, o, spill.Options{})
	require.NoError(t, w.F.Close())
	h := &Hooked{Spill: w.Machine.Store}
	w.Options.Spill = h
	w.Open()
	return w, h
}

// Fenced is a store that fails for good once it is Lost, as one whose disk broke off, or whose
// owner is another process now.
type Fenced struct {
	storage.Spill
	Lost  atomic.Bool
	Moved bool // the errors say that another process has the store
}

// Commit implements storage.Spill.
func (s *Fenced) Commit(b *storage.Batch) error {
	if s.Lost.Load() {
		if s.Moved {
			return fmt.Errorf("fenced: %w: %w", storage.ErrReopen, storage.ErrMoved)
		}
		return fmt.Errorf("fenced: %w", storage.ErrReopen)
	}
	return s.Spill.Commit(b)
}
