package limit

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
)

func TestRowKeys(t *testing.T) {
	for _, of := range []Subject{OfScope(all), OfScope(example), OfScope(hostA), OfCrawl(0), OfCrawl(70000)} {
		got, err := ParseRowKey(of.RowKey())
		require.NoError(t, err)
		require.Equal(t, of, got)
	}
	for _, name := range []string{"", "x", "c", "c1234x", "rno end"} {
		_, err := ParseRowKey(row.UsageKey + name)
		require.Error(t, err, "%q", name)
	}
}

// A row is written once after what it says changed, again if that failed, and not after
// its limits were taken back.
func TestRowsThatAreOutOfDate(t *testing.T) {
	var none *Book
	require.Empty(t, none.Rows())
	w := newWorld()
	w.SetScope(example, quota.Limits{Served: 5}, quota.Limits{}, 0, 0)
	w.SetCrawl(7, quota.Limits{Served: 5}, 0, 0)
	require.False(t, w.Dirty())
	w.Use(1, []byte("a.example"), served, 1, int64(time.Second))
	w.Use(1, []byte("a.example"), served, 2, int64(time.Second))
	w.UseCrawl(7, served, 2, int64(time.Second))
	require.True(t, w.Dirty())
	rows := w.Rows()
	require.Len(t, rows, 2)
	require.Equal(t, OfScope(example).RowKey(), rows[0].Key)
	s, err := row.ParseUsage(rows[0].Key, rows[0].Value)
	require.NoError(t, err)
	require.Equal(t, row.Usage{Since: 1000, Served: 2}, s)
	require.False(t, w.Dirty())
	w.Saved(errors.New("full"))
	require.Equal(t, rows, w.Rows())
	w.Saved(nil)
	require.False(t, w.Dirty())
	w.UseCrawl(7, served, 3, int64(time.Second))
	w.SetCrawl(7, quota.Limits{}, 3, 0)
	require.Empty(t, w.Rows())

	// Another book restores it.
	x := newWorld()
	require.False(t, x.Restore(OfScope(example), s, 0))
	x.SetScope(example, quota.Limits{Served: 2}, quota.Limits{}, 2, 0)
	require.True(t, x.Restore(OfScope(example), s, int64(2*time.Second)))
	r, ok := x.Row(OfScope(example))
	require.True(t, ok)
	require.Equal(t, rows[0], r)
	require.NotEqual(t, instant.None, x.HostSpent(1, []byte("a.example"), 0))
	require.Empty(t, x.turns, "it was reached before")
}

func TestHostsOnDisk(t *testing.T) {
	w := newWorld()
	a := []byte("a.example")
	s := row.Usage{Since: 1000, Served: 3}
	w.SetScope(all, quota.Limits{}, quota.Limits{Served: 5, Period: time.Minute}, 0, 0)
	w.RestoreHost(1, s, int64(time.Second))
	require.Equal(t, s, w.HostRow(1, a))
	want := Used{Amount: quota.Amount{Served: 3}, Since: int64(time.Second), Until: int64(time.Second + time.Minute)}
	require.Equal(t, want, w.HostUsed(1, a, int64(time.Second)))
	require.Equal(t, want, w.StoredUsed("b.example", s, int64(time.Second)))
	require.True(t, w.Counts("b.example", s, int64(time.Minute)))
	require.False(t, w.Counts("b.example", s, int64(time.Second+time.Minute)))
	require.Zero(t, w.StoredUsed("b.example", s, int64(time.Second+time.Minute)))
	var none *Book
	require.False(t, none.Counts("b.example", s, 0))
}

func TestImportedUsage(t *testing.T) {
	w := newWorld()
	a, s := []byte("a.example"), row.Usage{Since: 1000, Served: 3}
	now := int64(2 * time.Second)
	require.False(t, w.Merge(OfCrawl(7), s, now))
	w.SetCrawl(7, quota.Limits{Served: 3}, 0, 0)
	require.True(t, w.Merge(OfCrawl(7), s, now))
	require.True(t, w.Dirty())
	require.NotEqual(t, instant.None, w.CrawlSpent(7, now))
	w.MergeHost(1, a, s, now) // without limits
	require.True(t, w.HasHost(1))
	w.SetScope(hostA, quota.Limits{}, quota.Limits{Served: 3}, 0, 0)
	w.RestoreEnded(hostA, 1500)
	w.MergeHost(2, a, s, now)
	require.Equal(t, int64(1501*time.Millisecond), w.HostUsed(2, a, now).Since)
	require.NotEqual(t, instant.None, w.HostSpent(2, a, now))
	w.check(t, true, nil)
}
