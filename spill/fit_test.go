// This file watches the memory of filters.

package spill

import (
	"errors"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/stretchr/testify/require"
)

// Filters fold when they would take more than their share of memory. Footprint
// says what there is, before the store is in use, too, and what a merge adds.
func TestFiltersKeepToTheirShare(t *testing.T) {
	x := newStation(t, true)
	x.marks.Policy.FanOut = 6
	x.marks.Share = 64 << 10 // 35,000 marks of 15 bits
	x.marks.Policy.Top = 20_000
	engine := x.Footprint()
	within := func() {
		var filters int64
		for _, r := range x.marks.List() {
			filters += r.Filter.Bytes()
		}
		round := 5000*marks.FilterBits/8 + 16<<10 // a new one is folded last
		least := int64(len(x.has) * marks.FilterBits / 8 / marks.MaxFold)
		require.LessOrEqual(t, filters, max(64<<10, least)+int64(round), "%d marks", len(x.has))
	}
	var always func()
	always = func() { within(); x.faults.Before(kvtest.Read, 1, always) }
	always()
	for range 40 {
		require.NoError(t, x.checkpoint(5000))
		within()
	}
	require.Greater(t, len(x.has)*marks.FilterBits/8, 5*(64<<10), "too few for this test")
	require.NoError(t, x.check())
	was := x.Footprint()
	require.Greater(t, was, engine+64<<10)
	disk := x.disk
	x.end(t)

	s, err := newStore(disk, Options{MemoryBudget: 128 << 10}, true)
	require.NoError(t, err)
	s.marks.Share = 64 << 10 // as before; what a store has is more, at the least
	state, err := loadState(disk)
	require.NoError(t, err)
	s.marks.Expect(state.runs)
	require.Equal(t, was, s.Footprint(), "before Recover")
	require.NoError(t, s.Recover(t.Context(), nothing{}))
	require.Equal(t, was, s.Footprint())
	require.NoError(t, s.Close())
}

func TestFootprintForeseesMerges(t *testing.T) {
	x := newStation(t, false)
	gate := make(chan struct{})
	began := make(chan struct{})
	require.NoError(t, x.checkpoint(50_000))
	before := x.Footprint()
	x.faults.Before(kvtest.Read, reads(t, 50_000)+1, func() { close(began); <-gate })
	require.NoError(t, x.checkpoint(50_000))
	<-began
	// Two runs, and their merged run.
	require.GreaterOrEqual(t, x.Footprint(), before+3*marks.FilterMemory(50_000, 1))
	close(gate)
	x.settled()
	require.Less(t, x.Footprint(), before+2*marks.FilterMemory(50_000, 1))
	x.end(t)
}

// If there is no memory for the filter of a merged run in addition to those of its inputs, the
// latter are freed first.
func TestOldFiltersMakeRoom(t *testing.T) {
	x := newStation(t, true)
	x.marks.Share = 80 << 10
	require.NoError(t, x.checkpoint(20_000))
	least := int64(1 << 30)
	var always func()
	always = func() {
		n := int64(0)
		for _, r := range x.marks.List() {
			n += r.Filter.Bytes()
		}
		least = min(least, n)
		x.faults.Before(kvtest.Read, 1, always)
	}
	always()
	require.NoError(t, x.checkpoint(20_000))
	require.Zero(t, least, "the old filters were there while the new one came")
	require.EqualValues(t, 1, x.marks.List()[0].Filter.Fold)
	x.end(t)
}

// When a merge fails after it has freed the filters of what it merged, they are
// loaded again.
func TestFiltersComeBackAfterAFailedMerge(t *testing.T) {
	for n := 1; ; n++ {
		x := newStation(t, true)
		x.marks.Share = 32 << 10
		require.NoError(t, x.checkpoint(20_000))
		x.faults.FailNth(kvtest.Sync, n, errors.New("disk fault"))
		before := x.faults.Calls(kvtest.Sync)
		err := x.checkpoint(20_000)
		hit := x.faults.Calls(kvtest.Sync)-before >= n
		x.faults.Heal()
		runs := x.marks.List()
		for _, r := range runs {
			require.NotNil(t, r.Filter, "fault %d: %v", n, err)
		}
		require.NoError(t, x.check())
		x.end(t)
		if !hit {
			require.Len(t, runs, 1)
			break
		}
	}
}
