package durability

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// URLs are known wherever their marks are: in the log, in a round in progress, on disk, and after a
// reopening or a crash.
func TestKnownWhereverTheMarksAre(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	var all []string
	more := func(n int) {
		for i := range n {
			all = append(all, fmt.Sprintf("http://h%d.example/%d", i%7, len(all)))
		}
		w.Add(all[len(all)-n:]...)
		w.Knows(all...)
		require.EqualValues(t, len(all), w.F.Stats().Known)
	}
	more(200)
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Knows(all...)
	more(300)
	w.Machine.Faults.FailFrom(spilltest.Write, 2, harness.ErrDisk)
	require.ErrorIs(t, hook.Of(w.F).MoveNow(true), harness.ErrDisk)
	w.Machine.Faults.Heal()
	w.Knows(all...) // the round that failed dropped nothing
	more(50)
	w.Machine.Faults.Before(spilltest.Write, 1, func() { w.Knows(all...) })
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Knows(all...)
	more(100)
	w.Reopen()
	w.Knows(all...)
	more(100)
	w = w.Killed()
	w.Knows(all...)
	require.EqualValues(t, len(all), w.F.Stats().Known)
	require.Len(t, w.Rest(), len(all))
	w.Knows(all...)
}

// answering calls then after each answer about known URLs.
type answering struct {
	storage.Spill
	then func()
}

func (s *answering) Known(marks []storage.Mark, known []bool) error {
	err := s.Spill.Known(marks, known)
	s.then()
	return err
}

// A URL that was known in memory when the Spill was asked for others is known still
// when the answer comes, although a checkpoint has taken it out of memory meanwhile.
func TestCheckpointDuringALookUp(t *testing.T) {
	machine := spilltest.OpenMemory(t, spill.Options{})
	s := &answering{machine.Store, func() {}}
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Spill: s})
	w.Add(harness.UrlsOf("a.example", 40)...)
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	w.Reopen() // nothing is popular yet
	w.Add("http://b.example/young")
	meanwhile := 0
	s.then = func() {
		if meanwhile++; meanwhile == 1 {
			require.NoError(t, hook.Of(w.F).MoveNow(false))
		}
	}
	w.Knows("http://a.example/1", "http://b.example/young")
	require.Positive(t, meanwhile)
	require.EqualValues(t, 41, w.F.Stats().Known)
}

// What the disk holds costs no memory, and none is asked for more than once of
// what is popular.
func TestKnownURLsLeaveMemory(t *testing.T) {
	const n = 150_000
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), MemoryBudget: 24 << 20}, spill.Options{})
	entries := make([]frontier.Entry, 1000)
	known := func(from int) int {
		for i := range entries {
			entries[i].URL = fmt.Sprintf("http://h%d.example/%d", i%10, from+i)
		}
		fresh, err := w.F.Add(t.Context(), entries...)
		require.NoError(t, err)
		return fresh
	}
	for from := 0; from < n; from += len(entries) {
		require.Equal(t, len(entries), known(from))
		for range entries {
			l, _, err := w.F.TryNext()
			require.NoError(t, err)
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		if from%10_000 == 0 {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
		}
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	s := w.F.Stats()
	require.EqualValues(t, n, s.Known)
	require.Less(t, s.MemoryBytes, int64(12<<20), "of which the marks would take %d", n*12)
	for from := 0; from < n; from += len(entries) {
		require.Zero(t, known(from))
	}
	require.Zero(t, known(0))
	reads := w.Machine.Faults.Calls(spilltest.Read)
	require.Zero(t, known(0))
	require.Equal(t, reads, w.Machine.Faults.Calls(spilltest.Read))
}

// If it cannot be found out whether URLs are known, nothing is admitted and
// nothing lost.
func TestMarksThatCannotBeRead(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add(harness.UrlsOf("a.example", 40)...)
	require.NoError(t, hook.Of(w.F).MoveNow(false))
	w.Reopen() // nothing is popular yet
	w.Fetched(w.NextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	l := w.NextIs(0, "http://a.example/2")

	w.Machine.Faults.FailFrom(spilltest.Read, 1, harness.ErrDisk)
	before := w.F.Stats()
	n, err := w.F.Add(t.Context(), harness.EntriesOf("a.example", 40)...)
	require.ErrorIs(t, err, harness.ErrDisk)
	require.Zero(t, n)
	require.Equal(t, before.Waiting, w.F.Stats().Waiting)
	require.ErrorIs(t, w.F.Done(l, frontier.Outcome{Add: harness.EntriesOf("a.example", 40)}), harness.ErrDisk)
	require.EqualValues(t, 0, w.F.Stats().Leased, "the lease has ended all the same")
	w.Machine.Faults.Heal()

	w.Knows(harness.UrlsOf("a.example", 40)...)
	require.Equal(t, harness.UrlsOf("a.example", 40)[2:], w.Rest())
}

// After an opening of a large store, what is popular need not be read one by one.
func TestKnownURLsAreRecalled(t *testing.T) {
	const n = 120_000
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		entries := make([]frontier.Entry, n)
		for i := range entries {
			entries[i].URL = fmt.Sprintf("http://h%d.example/%d", i%10, i)
		}
		fresh, err := w.F.Add(t.Context(), entries...)
		require.NoError(t, err)
		require.Equal(t, n, fresh)
		require.NoError(t, hook.Of(w.F).MoveNow(true))
		w.Reopen()
		synctest.Wait()
		reads := w.Machine.Faults.Calls(spilltest.Read)
		fresh, err = w.F.Add(t.Context(), entries[:1000]...)
		require.NoError(t, err)
		require.Zero(t, fresh)
		require.Less(t, w.Machine.Faults.Calls(spilltest.Read)-reads, 100, "there was no room for a few")
	})
}
