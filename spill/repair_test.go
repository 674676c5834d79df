// This file repairs folders that were damaged at random: everything that was not
// hit is there, and what is not there was reported.

package spill_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

var repairs = flag.Int("frontier.repairs", 10, "how many damaged folders are repaired, of each kind of folder")

// contents is what a store holds.
type contents struct {
	alive map[uint64]entry
	rows  map[string]string
	marks map[storage.Mark]bool
}

// contentsOf reads a store, which must be whole.
func (m *model) contentsOf(t testing.TB, s storage.Spill) contents {
	t.Helper()
	r := newReplay()
	require.NoError(t, s.Recover(context.Background(), r))
	defer func() { require.NoError(t, s.Release()) }()
	c := contents{alive: map[uint64]entry{}, rows: r.rows}
	var err error
	c.marks, err = m.stored(s)
	require.NoError(t, err)
	finished := func(block uint32, pos int) bool {
		bits := r.dead[block]
		return pos/8 < len(bits) && bits[pos/8]&(1<<(pos%8)) != 0
	}
	put := func(seq uint64, e entry) {
		require.NotContains(t, c.alive, seq, "record %d is there twice", seq)
		c.alive[seq] = e
	}
	for i, p := range r.parts {
		require.NoError(t, s.Load(p, 1<<p.Count-1, func(j int, rec storage.Record) {
			if !finished(p.Block, int(p.First)+j) {
				put(rec.Seq, entry{r.queues[i], rec.Due, string(rec.Body)})
			}
		}))
	}
	for _, b := range r.timed {
		require.NoError(t, s.LoadTimed(b.Block, 0, func(pos int, rec storage.TimedRecord) bool {
			if !finished(b.Block, pos) {
				put(rec.Seq, entry{rec.Queue, rec.Due, string(rec.Body)})
			}
			return true
		}))
	}
	for _, b := range r.batches {
		for _, a := range b.Admit {
			put(a.Seq, entry{a.Queue, a.Due, string(a.Body)})
			if a.HasMark {
				c.marks[a.Mark] = true
			}
		}
		for _, x := range b.Marks {
			c.marks[x] = true
		}
		for _, x := range b.Finish {
			delete(c.alive, x.Seq)
		}
	}
	delete(c.rows, "m") // the frontier's own: a repair makes one
	return c
}

// losses are what a repair reported.
type losses struct {
	blocks               map[uint32]bool
	log, marks, finished bool
	file, own            bool // of the engine; of the frontier's own row
}

func lossesOf(x *spill.Repaired) losses {
	l := losses{blocks: map[uint32]bool{}}
	for _, y := range x.Lost {
		switch y.What {
		case "block", "timed block":
			l.blocks[binary.BigEndian.Uint32(y.Key[5:])] = true
		case "batch":
			l.log = true
		case "known URLs":
			l.marks = true
		case "finished marks":
			l.finished = true
		case "row":
			l.own = true
		default:
			l.file = true
		}
	}
	return l
}

func TestRepair(t *testing.T) {
	r := newRand(t)
	closed, died, m := livedIn(t)
	for state, dir := range map[string]string{"closed": closed, "died": died} {
		t.Run(state, func(t *testing.T) {
			tries := trycount.Of(t)
			lost, back := 0, 0
			for range *repairs {
				bad, good := copied(t, dir), filepath.Join(t.TempDir(), "good")
				what := hurt(t, r, bad)
				before := filesOf(t, bad)
				x, err := spill.Repair(context.Background(), bad, good, small)
				require.NoError(t, err, what)
				require.Equal(t, before, filesOf(t, bad), "%s: the damaged folder was changed", what)
				s, err := spill.Open(good, small)
				require.NoError(t, err, what)
				got, hit := m.contentsOf(t, s), lossesOf(x)
				require.NoError(t, s.Close())
				for seq, want := range m.alive {
					e, ok := got.alive[seq]
					if !ok {
						p := m.at[seq]
						require.True(t, hit.file || p.block != 0 && hit.blocks[p.block] || p.block == 0 && hit.log,
							"%s: record %d, at %v, is lost, and only this is reported: %v", what, seq, p, x.Lost)
						lost++
						continue
					}
					require.Equal(t, want, e, what)
				}
				for seq := range got.alive {
					if _, ok := m.alive[seq]; !ok {
						require.True(t, seq <= m.seq && (hit.file || hit.log || hit.finished), "%s: record %d came back: %v", what, seq, x.Lost)
						back++
					}
				}
				if !hit.file && !hit.log {
					require.Equal(t, m.rows, got.rows, what)
				}
				if !hit.file && !hit.log && !hit.marks {
					require.True(t, maps.Equal(m.marks, got.marks), "%s: %d marks, want %d: %v", what, len(got.marks), len(m.marks), x.Lost)
				}
				require.NoError(t, os.RemoveAll(bad))
				require.NoError(t, os.RemoveAll(good))
				tries.Tried(1)
			}
			t.Logf("of %d records %d were lost per repair, %d came back", len(m.alive), lost / *repairs, back / *repairs)
		})
	}
}

// A file of marks that the state names is missing: files that it does not name have what
// was in it.
func TestRepairFindsMarksThatTheStateDoesNotName(t *testing.T) {
	closed, _, m := livedIn(t)
	bad := copied(t, closed)
	files, err := filepath.Glob(filepath.Join(bad, "marks", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	spill.WriteRun(t, bad, 0xfff0, slices.Collect(maps.Keys(m.marks))) // as a merge does before its state counts
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
	good := filepath.Join(t.TempDir(), "good")
	x, err := spill.Repair(t.Context(), bad, good, small)
	require.NoError(t, err)
	require.EqualValues(t, len(m.marks), x.Marks)
	for _, l := range x.Lost {
		require.Zero(t, l.URLs, "%v", l)
	}
	require.True(t, lossesOf(x).marks, "it is told all the same")
	s := open(t, good, small)
	got := m.contentsOf(t, s)
	require.NoError(t, s.Close())
	require.True(t, maps.Equal(m.marks, got.marks), "%d marks, want %d", len(got.marks), len(m.marks))
}

func TestRepairRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := spill.Repair(t.Context(), filepath.Join(dir, "none"), filepath.Join(dir, "to"), small)
	require.ErrorIs(t, err, os.ErrNotExist)
	s := open(t, filepath.Join(dir, "store"), small)
	_, err = spill.Repair(t.Context(), filepath.Join(dir, "store"), dir, small)
	require.ErrorContains(t, err, "not empty")
	_, err = spill.Repair(t.Context(), filepath.Join(dir, "store"), filepath.Join(dir, "to"), small)
	require.ErrorIs(t, err, storage.ErrInUse)
	require.NoError(t, s.Close())
	x, err := spill.Repair(t.Context(), filepath.Join(dir, "store"), filepath.Join(dir, "to"), small)
	require.NoError(t, err)
	require.Len(t, x.Lost, 1, "there never was a frontier")
	require.True(t, strings.HasPrefix(x.Lost[0].String(), "row "))
}

// An earlier version cut logs after a loss of power whose end was needed: files had been removed
// because of it. What the cut part pointed to is still in the files of values, with its keys.
func TestRepairFindsTheEndOfALogThatWasCut(t *testing.T) {
	for kind, files := range map[string]string{"values": "blobs/*3.brief", "marks": "marks/*"} {
		t.Run(kind, func(t *testing.T) { findsTheEnd(t, files) })
	}
}

// findsTheEnd lacks files beside the end of the log.
func findsTheEnd(t *testing.T, files string) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := spilltest.OpenSmall(dir, small)
	require.NoError(t, err)
	m := start(t, 5, s)
	const batches = 60
	var firstOfLast uint64
	for i := range batches {
		if i == batches*2/3 {
			firstOfLast = m.seq + 1
		}
		require.NoError(t, m.commit(40, 15))
		if i == batches/6 {
			c, err := m.pack()
			require.NoError(t, err)
			require.NoError(t, m.checkpoint(c))
		}
	}
	died := imaged(t, dir)
	require.NoError(t, s.Release())
	require.NoError(t, s.Close())
	logs, err := filepath.Glob(filepath.Join(died, "*.mem"))
	require.NoError(t, err)
	log, err := os.ReadFile(logs[0])
	require.NoError(t, err)
	n := 0
	end := badgerfiles.LogTransactions(log, badgerfiles.LogHead, func([]badgerfiles.Cell) bool { n++; return n < batches/2 })
	require.NoError(t, os.WriteFile(logs[0], log[:end], 0o600))
	removed, err := filepath.Glob(filepath.Join(died, files))
	require.NoError(t, err)
	require.NotEmpty(t, removed)
	for _, name := range removed {
		require.NoError(t, os.Remove(name))
	}

	to := filepath.Join(t.TempDir(), "repaired")
	report, err := spill.Repair(context.Background(), died, to, small)
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(report.Lost), "the end of the log is missing")
	repaired, err := spill.Open(to, small)
	require.NoError(t, err)
	left := m.contentsOf(t, repaired)
	require.NoError(t, repaired.Close())
	found := 0
	for seq, e := range m.alive {
		if seq >= firstOfLast {
			require.Equal(t, e, left.alive[seq])
			found++
		}
	}
	require.Positive(t, found)
}
