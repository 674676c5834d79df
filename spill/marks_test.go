// This file follows the marks of a store through checkpoints and merges.

package spill

import (
	"errors"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever the sizes of checkpoints, what is known is what they had, through
// merges, reopenings and faults, and no file is left that is of no use.
func TestMarksAgainstASet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := newStation(rt, rapid.Bool().Draw(rt, "now"))
		defer func() { x.end(rt) }()
		in := map[storage.Mark]bool{}
		tidy := true // nothing failed since the last reopening
		rt.Repeat(map[string]func(*rapid.T){
			"checkpoint": func(rt *rapid.T) {
				ms := spread(rapid.Uint32Max(20).Draw(rt, "seed"), rapid.IntRange(0, 500).Draw(rt, "n"))
				if rapid.Bool().Draw(rt, "fault") {
					point := rapid.SampledFrom([]kvtest.Point{kvtest.Write, kvtest.Sync, kvtest.Read}).Draw(rt, "point")
					x.faults.FailNth(point, rapid.IntRange(1, 12).Draw(rt, "at"), errors.New("disk fault"))
					tidy = false
				}
				err := x.checkpointOf(ms)
				x.settled()
				x.faults.Heal()
				if err != nil {
					require.NoError(rt, x.checkpointOf(ms))
				}
				for _, m := range ms {
					in[m] = true
				}
			},
			"reopen": func(rt *rapid.T) {
				x.settled()
				x.end(rt)
				x.boot(rt, rapid.Bool().Draw(rt, "now"))
				tidy = true
			},
			"use again": func(rt *rapid.T) {
				require.NoError(rt, x.Release())
				require.NoError(rt, x.Recover(ctx(), nothing{}))
				x.gen = 0
			},
			"": func(rt *rapid.T) {
				x.settled()
				ask := slices.Collect(maps.Keys(in))
				for seed := range uint32(22) {
					ask = append(ask, spread(seed, 40)...)
				}
				known := make([]bool, len(ask))
				require.NoError(rt, x.Known(ask, known))
				for i, m := range ask {
					if in[m] != known[i] {
						rt.Fatalf("known is %t for mark %x; want %t", known[i], m, in[m])
					}
				}
				if tidy {
					require.Len(rt, x.files(rt), len(x.marks.List()))
				}
			},
		})
	})
}

// Runs are merged until each level has few, and their marks are kept once.
func TestMergesLeaveFewRuns(t *testing.T) {
	x := newStation(t, true)
	for i := range 64 {
		require.NoError(t, x.checkpoint(1000))
		require.LessOrEqual(t, len(x.marks.List()), 6, "after %d checkpoints", i+1)
	}
	require.Len(t, x.marks.List(), 1)
	require.EqualValues(t, 64_000, x.marks.List()[0].Count)
	require.Len(t, x.files(t), 1)
	again := slices.Clone(x.has)
	for range 64 {
		require.NoError(t, x.checkpointOf(again[:1000]))
	}
	require.Len(t, x.marks.List(), 1)
	require.EqualValues(t, 64_000, x.marks.List()[0].Count)
	require.NoError(t, x.check())
	x.end(t)
}

// All runs but the largest hold less than half as much as that, or little.
func TestLargestRunTakesTheRest(t *testing.T) {
	x := newStation(t, true)
	x.marks.Policy = marks.Policy{FanOut: 6, Top: 2500}
	for range 100 {
		require.NoError(t, x.checkpoint(1000))
		runs := x.marks.List()
		rest := uint64(0)
		for _, r := range runs[1:] {
			rest += r.Count
		}
		require.Less(t, rest, max(2500, runs[0].Count/2))
	}
	require.NoError(t, x.check())
	x.end(t)
}

// A store takes at most 16 bytes of disk per mark when it is at rest.
func TestDiskPerMark(t *testing.T) {
	for _, n := range []int{10_000, 300_000} {
		x := newStation(t, true)
		for range 7 {
			require.NoError(t, x.checkpoint(n/7+1))
		}
		size := 0
		for _, name := range x.files(t) {
			size += len(content(t, x.disk, name))
		}
		assert.LessOrEqual(t, float64(size)/float64(len(x.has)), 16.0, "%d marks", n)
		x.end(t)
	}
	for _, n := range []uint64{1 << 23, 1e8, 1e9} {
		foot := marks.Footer{Blocks: marks.FilterBlocks(n), FilterAt: marks.PagesFor(n) * marks.PageSize}
		assert.LessOrEqual(t, float64(foot.IndexAt()+marks.PagesFor(n)*marks.IndexEntry)/float64(n), 14.0, "%d marks", n)
	}
}

// A merge that waits for the disk delays neither Checkpoint nor Known nor Commit, and a merge in
// progress is given up when the store is released.
func TestMergeHoldsNobodyUp(t *testing.T) {
	x := newStation(t, false)
	require.NoError(t, x.checkpoint(marks.MergeStep))
	began, gate := make(chan struct{}), make(chan struct{})
	x.faults.Before(kvtest.Read, reads(t, marks.MergeStep)+1, func() { // the merge's first
		close(began)
		<-gate
	})
	require.NoError(t, x.checkpoint(marks.MergeStep))
	<-began
	require.NoError(t, x.checkpoint(100))
	require.NoError(t, x.Commit(&storage.Batch{ID: 1}))
	require.NoError(t, x.check())
	require.Len(t, x.marks.List(), 3)

	released := make(chan error)
	go func() { released <- x.Release() }()
	for { // until the merge is reported
		x.merger.mu.Lock()
		told := halted(x.merger.halt)
		x.merger.mu.Unlock()
		if told {
			break
		}
		runtime.Gosched()
	}
	close(gate)
	require.NoError(t, <-released)
	require.Len(t, x.marks.List(), 3, "merged although the store was released")
	require.Len(t, x.files(t), 3, "what was given up is left")
	require.NoError(t, x.Recover(t.Context(), nothing{}))
	require.NoError(t, x.check())
	x.gen = 0
	require.NoError(t, x.checkpoint(100))
	x.settled()
	require.Len(t, x.marks.List(), 1)
	require.NoError(t, x.check())
	x.end(t)
}

// Known and Checkpoint run concurrently with merges, on a real folder.
func TestKnownBesideMerges(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "s"), Options{DiskReserve: 1})
	require.NoError(t, err)
	s.marks.Policy.FanOut = 2
	require.NoError(t, s.Recover(t.Context(), nothing{}))
	var done atomic.Uint32 // checkpoints that have returned
	var side sync.WaitGroup
	const rounds, each = 40, 2000
	for g := range 4 {
		side.Go(func() {
			for i := 0; done.Load() < rounds; i++ {
				n := done.Load()
				if n == 0 {
					continue
				}
				ms := append(spread(1+uint32(i*7+g)%n, each), spread(1<<31+uint32(g), each)...)
				known := make([]bool, len(ms))
				if !assert.NoError(t, s.Known(ms, known)) {
					return
				}
				if i := slices.Index(known, false); !assert.Equal(t, each, i, "a mark is lost") {
					return
				}
				if slices.Contains(known[each:], true) {
					t.Error("a mark is known that was never there")
					return
				}
				_ = s.Footprint()
			}
		})
	}
	for gen := uint32(1); gen <= rounds; gen++ {
		require.NoError(t, s.PackMarks(gen, spread(gen, each)))
		require.NoError(t, s.Checkpoint(&storage.Checkpoint{Gen: gen}))
		done.Store(gen)
	}
	side.Wait()
	require.NoError(t, s.Release())
	require.NoError(t, s.Recover(t.Context(), nothing{}))
	require.NoError(t, s.Close())
}

func TestKnownsArguments(t *testing.T) {
	x := newStation(t, true)
	require.NoError(t, x.checkpoint(3))
	require.ErrorContains(t, x.Known(make([]storage.Mark, 2), make([]bool, 1)), "2 marks, room for 1")
	require.NoError(t, x.Known(nil, nil))
	known := []bool{false, true, false}
	require.NoError(t, x.Known([]storage.Mark{x.has[0], {}, {}}, known))
	require.Equal(t, []bool{true, true, false}, known, "what is set stays")
	require.NoError(t, x.Release())
	require.ErrorIs(t, x.Known(x.has, make([]bool, 3)), errIdle)
	x.end(t)
	require.ErrorIs(t, x.Known(x.has, make([]bool, 3)), storage.ErrClosed)
}
