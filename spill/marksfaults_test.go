// This file damages files of marks, and lets their disk fail.

package spill

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kvtest"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A damaged page is reported only by calls that need it. It is neither merged away nor removed.
func TestDamagedPageIsReportedWhereItIsNeeded(t *testing.T) {
	for _, page := range []int{1, 4} { // of six, which two goroutines read
		t.Run(fmt.Sprint("page=", page), func(t *testing.T) { reportsDamage(t, page) })
	}
}

func reportsDamage(t *testing.T, page int) {
	x := newStation(t, true)
	require.NoError(t, x.checkpoint(2000))
	name := x.files(t)[0]
	x.disk.Damage(func(key, v []byte) []byte {
		if string(key) == name {
			v[page*marks.PageSize+100] ^= 1
		}
		return v
	})
	hurt, fine := 0, 0
	for _, m := range x.has {
		known := []bool{false}
		err := x.Known([]storage.Mark{m}, known)
		var ce *storage.CorruptError
		if errors.As(err, &ce) {
			assert.Equal(t, name, string(ce.Key))
			hurt++
			continue
		}
		require.NoError(t, err)
		require.True(t, known[0])
		fine++
	}
	assert.Equal(t, marks.PageMarks, hurt)
	assert.Equal(t, 2000-marks.PageMarks, fine)
	var ce *storage.CorruptError
	require.ErrorAs(t, x.Known(x.has, make([]bool, len(x.has))), &ce, "all at once")
	require.NoError(t, x.checkpoint(100), "the merge fails, not the checkpoint")
	require.Contains(t, x.files(t), name)
	require.Len(t, x.files(t), 2)
	x.end(t)
}

// A file of a run that cannot be removed is removed later.
func TestFilesThatStayAreRemovedLater(t *testing.T) {
	for n := 1; ; n++ {
		x := newStation(t, true)
		require.NoError(t, x.checkpoint(10))
		before := x.faults.Calls(kvtest.Write)
		x.faults.FailFrom(kvtest.Write, n, errors.New("disk fault"))
		err := x.checkpoint(10)
		calls := x.faults.Calls(kvtest.Write) - before
		x.faults.Heal()
		require.NoError(t, x.checkpoint(10))
		require.NoError(t, x.checkpoint(10))
		require.Len(t, x.files(t), len(x.marks.List()), "fault %d: %v", n, err)
		require.NoError(t, x.check())
		x.end(t)
		if calls < n {
			break
		}
	}
}

// While a state that failed may be the one on disk, the file that it names stays.
func TestFileOfAFailedStateStays(t *testing.T) {
	for n := 1; ; n++ {
		x := newStation(t, true)
		require.NoError(t, x.checkpoint(10))
		before := x.faults.Calls(kvtest.Sync)
		x.faults.Before(kvtest.Sync, n, func() { x.faults.FailNth(kvtest.Write, 1, errors.New("disk fault")) })
		x.faults.FailNth(kvtest.Sync, n, errors.New("disk fault")) // written, and not taken back
		err := x.checkpoint(10)
		hit := x.faults.Calls(kvtest.Sync)-before >= n
		x.faults.Heal()
		dead := &station{disk: x.disk.Copy(), has: x.has}
		dead.boot(t, true)
		require.NoError(t, dead.check(), "fault %d: %v", n, err)
		dead.end(t)
		require.NoError(t, x.checkpoint(10))
		require.NoError(t, x.check())
		require.Len(t, x.files(t), len(x.marks.List()))
		x.end(t)
		if !hit {
			break
		}
	}
}
