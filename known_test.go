package frontier_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

func (w *world) knows(urls ...string) {
	w.Helper()
	var entries []frontier.Entry
	for _, u := range urls {
		entries = append(entries, frontier.Entry{URL: u})
	}
	n, err := w.f.Add(w.Context(), entries...)
	require.NoError(w, err)
	require.Zero(w, n)
}

// URLs are known wherever their marks are: in the log, in a round that is under
// way, on disk, and after a reopening or a crash.
func TestKnownWhereverTheMarksAre(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	var all []string
	more := func(n int) {
		for i := range n {
			all = append(all, fmt.Sprintf("http://h%d.example/%d", i%7, len(all)))
		}
		w.add(all[len(all)-n:]...)
		w.knows(all...)
		require.EqualValues(t, len(all), w.f.Stats().Known)
	}
	more(200)
	require.NoError(t, w.f.MoveNow(true))
	w.knows(all...)
	more(300)
	w.machine.Faults.FailFrom(spilltest.Write, 2, errDisk)
	require.ErrorIs(t, w.f.MoveNow(true), errDisk)
	w.machine.Faults.Heal()
	w.knows(all...) // the round that failed dropped nothing
	more(50)
	w.machine.Faults.Before(spilltest.Write, 1, func() { w.knows(all...) })
	require.NoError(t, w.f.MoveNow(true))
	w.knows(all...)
	more(100)
	w.reopen()
	w.knows(all...)
	more(100)
	w = w.killed()
	w.knows(all...)
	require.EqualValues(t, len(all), w.f.Stats().Known)
	require.Len(t, w.rest(), len(all))
	w.knows(all...)
}

// answering calls then after each answer about known URLs.
type answering struct {
	frontier.Spill
	then func()
}

func (s *answering) Known(marks []frontier.Mark, known []bool) error {
	err := s.Spill.Known(marks, known)
	s.then()
	return err
}

// A URL that was known in memory when the Spill was asked for others is known still
// when the answer comes, although a checkpoint has taken it out of memory meanwhile.
func TestCheckpointDuringALookUp(t *testing.T) {
	machine := spilltest.OpenMemory(t, spill.Options{})
	s := &answering{machine.Store, func() {}}
	w := newWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Spill: s})
	w.add(urlsOf("a.example", 40)...)
	require.NoError(t, w.f.MoveNow(false))
	w.reopen() // nothing is popular yet
	w.add("http://b.example/young")
	meanwhile := 0
	s.then = func() {
		if meanwhile++; meanwhile == 1 {
			require.NoError(t, w.f.MoveNow(false))
		}
	}
	w.knows("http://a.example/1", "http://b.example/young")
	require.Positive(t, meanwhile)
	require.EqualValues(t, 41, w.f.Stats().Known)
}

// What the disk holds costs no memory, and none is asked for more than once of
// what is popular.
func TestKnownURLsLeaveMemory(t *testing.T) {
	const n = 150_000
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), MemoryBudget: 24 << 20}, spill.Options{})
	entries := make([]frontier.Entry, 1000)
	known := func(from int) int {
		for i := range entries {
			entries[i].URL = fmt.Sprintf("http://h%d.example/%d", i%10, from+i)
		}
		fresh, err := w.f.Add(t.Context(), entries...)
		require.NoError(t, err)
		return fresh
	}
	for from := 0; from < n; from += len(entries) {
		require.Equal(t, len(entries), known(from))
		for range entries {
			l, _, err := w.f.TryNext()
			require.NoError(t, err)
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		if from%10_000 == 0 {
			require.NoError(t, w.f.MoveNow(true))
		}
	}
	require.NoError(t, w.f.MoveNow(true))
	s := w.f.Stats()
	require.EqualValues(t, n, s.Known)
	require.Less(t, s.MemoryBytes, int64(12<<20), "of which the marks would take %d", n*12)
	for from := 0; from < n; from += len(entries) {
		require.Zero(t, known(from))
	}
	require.Zero(t, known(0))
	reads := w.machine.Faults.Calls(spilltest.Read)
	require.Zero(t, known(0))
	require.Equal(t, reads, w.machine.Faults.Calls(spilltest.Read))
}

// If it cannot be found out whether URLs are known, nothing is admitted and
// nothing lost.
func TestMarksThatCannotBeRead(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.add(urlsOf("a.example", 40)...)
	require.NoError(t, w.f.MoveNow(false))
	w.reopen() // nothing is popular yet
	w.fetched(w.nextIs(0, "http://a.example/1"), 0, frontier.Outcome{})
	l := w.nextIs(0, "http://a.example/2")

	w.machine.Faults.FailFrom(spilltest.Read, 1, errDisk)
	before := w.f.Stats()
	n, err := w.f.Add(t.Context(), entriesOf("a.example", 40)...)
	require.ErrorIs(t, err, errDisk)
	require.Zero(t, n)
	require.Equal(t, before.Waiting, w.f.Stats().Waiting)
	require.ErrorIs(t, w.f.Done(l, frontier.Outcome{Add: entriesOf("a.example", 40)}), errDisk)
	require.EqualValues(t, 0, w.f.Stats().Leased, "the lease has ended all the same")
	w.machine.Faults.Heal()

	w.knows(urlsOf("a.example", 40)...)
	require.Equal(t, urlsOf("a.example", 40)[2:], w.rest())
}

// After an opening of a large store, what is popular need not be read one by one.
func TestKnownURLsAreRecalled(t *testing.T) {
	const n = 120_000
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		entries := make([]frontier.Entry, n)
		for i := range entries {
			entries[i].URL = fmt.Sprintf("http://h%d.example/%d", i%10, i)
		}
		fresh, err := w.f.Add(t.Context(), entries...)
		require.NoError(t, err)
		require.Equal(t, n, fresh)
		require.NoError(t, w.f.MoveNow(true))
		w.reopen()
		synctest.Wait()
		reads := w.machine.Faults.Calls(spilltest.Read)
		fresh, err = w.f.Add(t.Context(), entries[:1000]...)
		require.NoError(t, err)
		require.Zero(t, fresh)
		require.Less(t, w.machine.Faults.Calls(spilltest.Read)-reads, 100, "there was no room for a few")
	})
}
