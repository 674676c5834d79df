// This file compares snapshots with what the model held when they were taken.

package spill_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// photo is a snapshot and the model of that moment.
type photo struct {
	storage.Snapshot
	m *model
}

func (m *model) photo(t require.TestingT) photo {
	x, err := m.store.Snapshot()
	require.NoError(t, err)
	return photo{x, m.clone()}
}

// agrees reads all of the snapshot and returns what differs, if anything.
func (p photo) agrees() error {
	dead := map[uint32][]byte{}
	err := p.Dead(func(b uint32, bits []byte) error { dead[b] = bytes.Clone(bits); return nil })
	if err != nil {
		return err
	}
	alive := map[uint64]entry{}
	take := func(block uint32, pos int, r *storage.TimedRecord) error {
		if bits := dead[block]; pos/8 >= len(bits) || bits[pos/8]&(1<<(pos%8)) == 0 {
			if _, twice := alive[r.Seq]; twice {
				return fmt.Errorf("record %d comes twice", r.Seq)
			}
			alive[r.Seq] = entry{r.Queue, r.Due, string(r.Body)}
		}
		return nil
	}
	if err := errors.Join(p.Records(take), p.Timed(take)); err != nil {
		return err
	}
	marks := map[storage.Mark]bool{}
	var last []byte
	err = p.Marks(func(ms []storage.Mark) error {
		for _, x := range ms {
			if last != nil && bytes.Compare(last, x[:]) >= 0 {
				return fmt.Errorf("mark %x comes after %x", x, last)
			}
			last = bytes.Clone(x[:])
			marks[x] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.Batches(func(b *storage.Batch) error {
		for _, a := range b.Admit {
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
		return nil
	})
	if err != nil {
		return err
	}
	if !maps.Equal(alive, p.m.alive) {
		return fmt.Errorf("%d records are alive; want %d", len(alive), len(p.m.alive))
	}
	if !maps.Equal(marks, p.m.marks) {
		return fmt.Errorf("%d marks; want %d", len(marks), len(p.m.marks))
	}
	for _, prefix := range []string{"", "row", "row3", "rox", "row\xff"} {
		want := maps.Clone(p.m.rows)
		maps.DeleteFunc(want, func(k, _ string) bool { return !strings.HasPrefix(k, prefix) })
		got := map[string]string{}
		if err := p.Rows(prefix, func(k string, v []byte) error { got[k] = string(v); return nil }); err != nil {
			return err
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("rows under %q are %v; want %v", prefix, got, want)
		}
	}
	return nil
}

// Snapshots keep showing what they were taken of, whatever happens to the store.
func TestSnapshotsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mach := spilltest.OpenMemory(t, spill.Options{})
		mach.Disk.MaxOps = rapid.SampledFrom([]int{0, 1, 10}).Draw(rt, "ops")
		m := start(t, rapid.Uint64().Draw(rt, "seed"), mach.Store)
		var open []photo
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				require.NoError(rt, m.commit(rapid.IntRange(0, 60).Draw(rt, "n"), rapid.IntRange(0, 60).Draw(rt, "k")))
			},
			"move": func(rt *rapid.T) {
				c, err := m.pack()
				require.NoError(rt, err)
				if rapid.Bool().Draw(rt, "between") {
					open = append(open, m.photo(rt))
				}
				require.NoError(rt, m.checkpoint(c))
			},
			"fault": func(rt *rapid.T) { // a batch that may have been written, and must not be seen
				mach.Faults.FailNth(spilltest.Sync, 1, errDisk)
				mach.Faults.FailNth(spilltest.Write, 2, errDisk)
				require.ErrorIs(rt, m.commit(10, 10), errDisk)
				open = append(open, m.photo(rt))
				mach.Faults.Heal()
			},
			"snapshot": func(rt *rapid.T) { open = append(open, m.photo(rt)) },
			"release": func(rt *rapid.T) {
				if len(open) > 0 {
					open[0].Release()
					open = open[1:]
				}
			},
			"": func(rt *rapid.T) {
				for _, p := range open {
					require.NoError(rt, p.agrees())
				}
			},
		})
		require.NoError(rt, mach.Store.Release())
		for _, p := range open {
			require.ErrorIs(rt, p.Marks(func([]storage.Mark) error { return nil }), storage.ErrClosed)
			p.Release()
		}
		require.NoError(rt, mach.Store.Close())
		require.Zero(rt, mach.Disk.OpenFiles(), "runs that a snapshot kept are closed")
	})
}

// On badger the files that a snapshot reads stay although nothing else needs them.
func TestSnapshotOfAFolder(t *testing.T) {
	s := open(t, t.TempDir(), small)
	m := start(t, 3, s)
	var photos []photo
	for range 3 {
		script(m, func(step string, err error) { require.NoError(t, err, step) })
		require.NoError(t, m.commit(3000, 0))
		photos = append(photos, m.photo(t))
	}
	script(m, func(step string, err error) { require.NoError(t, err, step) })
	require.NoError(t, m.commit(0, len(m.alive))) // blocks are dropped
	c, err := m.pack()
	require.NoError(t, err)
	require.NoError(t, m.checkpoint(c))
	for _, p := range photos {
		require.NoError(t, p.agrees())
		p.Release()
	}
	require.NoError(t, s.Release())
	require.NoError(t, m.holds(s))
}

func TestSnapshotReportsDamageAndErrors(t *testing.T) {
	mach := spilltest.OpenMemory(t, spill.Options{})
	m := start(t, 4, mach.Store)
	script(m, func(step string, err error) { require.NoError(t, err, step) })
	require.NoError(t, m.commit(50, 0))
	c, err := m.pack()
	require.NoError(t, err)
	require.NoError(t, m.checkpoint(c))
	mine := errors.New("mine")
	p := m.photo(t)
	require.Equal(t, mine, p.Records(func(uint32, int, *storage.TimedRecord) error { return mine }))
	require.Equal(t, mine, p.Timed(func(uint32, int, *storage.TimedRecord) error { return mine }))
	require.Equal(t, mine, p.Marks(func([]storage.Mark) error { return mine }))
	require.Equal(t, mine, p.Rows("", func(string, []byte) error { return mine }))
	p.Release()
	mach.Damage(func(key, value []byte) []byte {
		if len(key) == 9 && (key[4] == 'B' || key[4] == 'T') {
			value[len(value)-1] ^= 1
		}
		return value
	})
	p = m.photo(t)
	var corrupt *storage.CorruptError
	require.ErrorAs(t, p.Records(func(uint32, int, *storage.TimedRecord) error { return nil }), &corrupt)
	require.ErrorAs(t, p.Timed(func(uint32, int, *storage.TimedRecord) error { return nil }), &corrupt)
	p.Release()
	mach.Faults.FailFrom(spilltest.Read, 1, errDisk)
	_, err = m.store.Snapshot()
	require.ErrorIs(t, err, errDisk)
}
