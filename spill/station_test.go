// This file is a store on a disk in memory whose marks tests follow.

package spill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// station is a store on a disk in memory, and the marks of its checkpoints.
type station struct {
	*Store
	disk   *kvtest.Disk
	faults *kvtest.Faulty
	gen    uint32
	seed   uint32
	has    []storage.Mark
}

// newStation opens a store that merges runs by two, inside Checkpoint if now is
// set, otherwise in the background.
func newStation(t require.TestingT, now bool) *station {
	x := &station{disk: kvtest.NewDisk()}
	x.boot(t, now)
	return x
}

func (x *station) boot(t require.TestingT, now bool) {
	x.faults = &kvtest.Faulty{DB: x.disk}
	s, err := newStore(x.faults, Options{}.withDefaults(), now)
	require.NoError(t, err)
	s.marks.Policy.FanOut = 2
	x.Store, x.gen = s, 0
	require.NoError(t, s.Recover(ctx(), nothing{}))
}

func ctx() context.Context { return context.Background() }

// end closes the store: no file is left open.
func (x *station) end(t require.TestingT) {
	require.NoError(t, x.Close())
	require.Zero(t, x.disk.OpenFiles())
}

// checkpoint adds n new marks.
func (x *station) checkpoint(n int) error {
	x.seed++
	return x.checkpointOf(spread(x.seed, n))
}

func (x *station) checkpointOf(ms []storage.Mark) error {
	x.gen++
	err := x.PackMarks(x.gen, slices.Clone(ms))
	if err == nil {
		err = x.Checkpoint(&storage.Checkpoint{Gen: x.gen})
	}
	if err == nil {
		x.has = append(x.has, ms...)
	}
	return err
}

// check asks for all marks, and as many new ones.
func (x *station) check() error {
	ask := append(slices.Clone(x.has), spread(1<<31, len(x.has))...)
	known := make([]bool, len(ask))
	if err := x.Known(ask, known); err != nil {
		return err
	}
	for i, k := range known {
		if k != (i < len(x.has)) {
			return fmt.Errorf("known is %t for mark %d of %d", k, i, len(x.has))
		}
	}
	return nil
}

// files returns the names of the runs on disk.
func (x *station) files(t require.TestingT) []string {
	names, err := x.disk.ListFiles(marks.Folder)
	require.NoError(t, err)
	slices.Sort(names)
	return names
}

// settled waits for the merges in the background.
func (x *station) settled() {
	x.merger.mu.Lock()
	running, done := x.merger.running, x.merger.done
	x.merger.mu.Unlock()
	if running {
		<-done
	}
}

// reads returns how many reads a checkpoint of n marks makes.
func reads(t *testing.T, n int) int {
	t.Helper()
	x := newStation(t, true)
	defer x.end(t)
	before := x.faults.Calls(kvtest.Read)
	require.NoError(t, x.checkpoint(n))
	return x.faults.Calls(kvtest.Read) - before
}

// content returns the bytes of a file.
func content(t require.TestingT, db kv.DB, name string) []byte {
	f, err := db.OpenFile(name)
	require.NoError(t, err)
	b := make([]byte, f.Size())
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return b
}

// spread returns n different, uniformly distributed marks, like those of a frontier.
func spread(seed uint32, n int) []storage.Mark {
	ms := make([]storage.Mark, n)
	for i := range ms {
		h := uint64(seed)<<32 | uint64(i)
		for j := range ms[i] {
			h ^= h >> 29
			h *= 0xbf58476d1ce4e5b9
			h ^= h >> 32
			ms[i][j] = byte(h)
		}
	}
	return ms
}

// WriteRun writes a file of marks that no state names.
func WriteRun(t *testing.T, dir string, id uint32, ms []storage.Mark) {
	t.Helper()
	disk := kvtest.NewDisk()
	w, err := marks.Create(disk, id, uint64(len(ms)))
	require.NoError(t, err)
	require.NoError(t, w.AddAll(ms))
	_, err = w.Finish(1)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(marks.NameOf(id))), content(t, disk, marks.NameOf(id)), 0o666))
}
