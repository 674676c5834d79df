// This file damages a store and looks for the report.

package spill_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lived returns a machine whose store has everything: blocks, marks, dead bits,
// rows and a log.
func lived(t *testing.T) (*spilltest.Machine, *model) {
	t.Helper()
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 5, mach.Store)
	script(m, func(step string, err error) { require.NoError(t, err, step) })
	for range 2 {
		require.NoError(t, m.commit(200, 0))
		c, err := m.pack()
		require.NoError(t, err)
		require.NoError(t, m.commit(3, 80))
		require.NoError(t, m.checkpoint(c))
	}
	for range 3 {
		require.NoError(t, m.commit(20, 0))
	}
	return mach, m
}

// use reads everything a store has of what m knows.
func (m *model) use(s storage.Spill) error {
	r := newReplay()
	if err := s.Recover(context.Background(), r); err != nil {
		return err
	}
	defer func() { _ = s.Release() }()
	_, err := m.stored(s)
	errs := []error{err}
	for _, p := range r.parts {
		errs = append(errs, s.Load(p, 1<<p.Count-1, func(int, storage.Record) {}))
	}
	for _, b := range r.timed {
		errs = append(errs, s.LoadTimed(b.Block, 0, func(int, storage.TimedRecord) bool { return true }))
	}
	return errors.Join(errs...)
}

// Each value that is damaged, cut or emptied is reported under its own key, and
// is still there afterwards.
func TestDamageIsReported(t *testing.T) {
	mach, life := lived(t)
	var keys [][]byte
	mach.Kill(t).Damage(func(k, v []byte) []byte { keys = append(keys, k); return v })
	kinds := map[byte]int{}
	for _, key := range keys {
		kind := key[4] // of the file "marks/...": s
		if kind == 'R' || kind == 'V' {
			continue // a row has no shape to lose
		}
		kinds[kind]++
		for name, damage := range map[string]func([]byte) []byte{
			"flip": func(v []byte) []byte { v[len(v)/2] ^= 1; return v },
			"cut":  func(v []byte) []byte { return v[:len(v)-1] },
			"torn": func([]byte) []byte { return []byte{} },
			"zero": func(v []byte) []byte { clear(v); return v },
		} {
			m := mach.Kill(t)
			m.Damage(func(k, v []byte) []byte {
				if bytes.Equal(k, key) {
					return damage(v)
				}
				return v
			})
			var ce *storage.CorruptError
			require.ErrorAs(t, life.use(m.Store), &ce, "%s of %x", name, key)
			assert.Equal(t, key, ce.Key, name)
			var left bool
			m.Damage(func(k, v []byte) []byte { left = left || bytes.Equal(k, key); return v })
			assert.True(t, left, "%s of %x: the evidence is gone", name, key)
		}
	}
	for _, k := range "BDHLSTs" {
		assert.NotZero(t, kinds[byte(k)], "no value of kind %c was damaged", k)
	}
}

func TestMissingBatchIsReported(t *testing.T) {
	mach, m := lived(t)
	r := newReplay()
	require.NoError(t, mach.Kill(t).Store.Recover(t.Context(), r))
	require.Greater(t, len(r.batches), 3)
	for _, b := range r.batches[:len(r.batches)-1] {
		bad := mach.Kill(t)
		bad.Damage(func(k, v []byte) []byte {
			if k[4] == 'L' && binary.BigEndian.Uint64(k[5:]) == b.ID {
				return nil
			}
			return v
		})
		var ce *storage.CorruptError
		require.ErrorAs(t, m.use(bad.Store), &ce, "without batch %d", b.ID)
		assert.ErrorContains(t, ce, "missing")
	}
	require.NoError(t, m.holds(mach.Kill(t).Store))
}

func TestMissingBlockIsReportedByLoad(t *testing.T) {
	mach, _ := lived(t)
	r := newReplay()
	m := mach.Kill(t)
	require.NoError(t, m.Store.Recover(t.Context(), r))
	m.Damage(func(k, v []byte) []byte {
		if k[4] == 'B' {
			return nil
		}
		return v
	})
	var ce *storage.CorruptError
	require.ErrorAs(t, m.Store.Load(r.parts[0], 1, func(int, storage.Record) {}), &ce)
	require.ErrorAs(t, m.Store.Load(storage.Part{Block: 1 << 30, Count: 1}, 1, func(int, storage.Record) {}), &ce)
}

func TestReadFaultsAreReturned(t *testing.T) {
	mach, m := lived(t)
	for n := 1; ; n++ {
		k := mach.Kill(t)
		from := k.Faults.Calls(spilltest.Read)
		k.Faults.FailNth(spilltest.Read, n, errDisk)
		err := m.holds(k.Store)
		if k.Faults.Calls(spilltest.Read)-from < n {
			require.NoError(t, err)
			break
		}
		require.ErrorIs(t, err, errDisk, "read %d", n)
		require.NoError(t, m.holds(k.Store), "after the fault is gone")
	}
}

func TestFrontiersErrorEndsRecover(t *testing.T) {
	mach, m := lived(t)
	mine := errors.New("mine")
	k := mach.Kill(t)
	require.Equal(t, mine, k.Store.Recover(t.Context(), &replay{fail: mine, rows: map[string]string{}}))
	require.NoError(t, m.holds(k.Store), "the store is free again")
}

func TestOneUserAtATime(t *testing.T) {
	s := spilltest.OpenMemory(t, spill.Options{}).Store
	require.Error(t, s.Commit(&storage.Batch{ID: 1}), "before Recover")
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	require.ErrorIs(t, s.Recover(t.Context(), newReplay()), storage.ErrInUse)
	require.NoError(t, s.Release())
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Commit(&storage.Batch{ID: 1}), storage.ErrClosed)
	require.ErrorIs(t, s.Recover(t.Context(), newReplay()), storage.ErrClosed)
}

func TestBadArguments(t *testing.T) {
	s := spilltest.OpenMemory(t, spill.Options{}).Store
	require.NoError(t, s.Recover(t.Context(), newReplay()))
	require.ErrorContains(t, s.Commit(&storage.Batch{ID: 1, Admit: make([]storage.Admission, 1)}), "host key")
	_, err := s.Pack(1, make([]storage.Run, 1))
	require.ErrorContains(t, err, "host key")
	require.NoError(t, s.Commit(&storage.Batch{ID: 1}))
	require.ErrorContains(t, s.Commit(&storage.Batch{ID: 1}), "comes after")
	require.ErrorContains(t, s.Checkpoint(&storage.Checkpoint{Gen: 1, Through: 2}), "not committed")
	require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: 1, Through: 1}))
	require.ErrorContains(t, s.Checkpoint(&storage.Checkpoint{Gen: 1, Through: 1}), "already")
	_, err = spill.Open(t.TempDir(), spill.Options{MemoryBudget: 1, DiskReserve: -1})
	require.ErrorContains(t, err, "MemoryBudget")
	require.ErrorContains(t, err, "DiskReserve")
}
