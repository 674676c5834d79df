// This file tests the verdicts of AddVerdicts and DoneAll.

package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestVerdictsSayWhatBecameOfEachEntry(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/known")
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/later", NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err)
		require.NoError(t, w.F.UpdateRule(scope.Host("full.example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 1} }))
		vs, err := w.F.AddVerdicts(t.Context(),
			frontier.Entry{URL: "http://a.example/known"},
			frontier.Entry{URL: "nonsense"},
			frontier.Entry{URL: "http://a.example/new"},
			frontier.Entry{URL: "http://a.example/new"},
			frontier.Entry{URL: "http://a.example/known", Force: true},
			frontier.Entry{URL: "http://a.example/later", Hint: true},
			frontier.Entry{URL: "http://full.example/1"},
			frontier.Entry{URL: "http://full.example/2"},
			frontier.Entry{URL: "http://a.example/new2", Force: true},
		)
		bad := frontier.EntryErrors(err)
		require.Len(t, bad, 2)
		require.Equal(t, 1, bad[0].Index)
		require.Equal(t, 7, bad[1].Index)
		require.ErrorIs(t, bad[1], frontier.ErrLimit)
		require.Equal(t, []frontier.Verdict{
			frontier.EntryKnown, frontier.EntryBad, frontier.EntryNew, frontier.EntryKnown, frontier.EntryForced,
			frontier.EntryHinted, frontier.EntryNew, frontier.EntryRefused, frontier.EntryNew,
		}, vs)
		require.Equal(t, "[known bad new known forced hinted new refused new]", fmt.Sprint(vs))
		require.Equal(t, "invalid verdict", frontier.Verdict(6).String())
		require.EqualValues(t, 2, w.F.Stats().Refused)

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		vs, err = w.F.AddVerdicts(ctx, frontier.Entry{URL: "http://a.example/3"})
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, vs, "no entry was admitted")
		w.IsState(inspect.URLUnknown, "http://a.example/3")
	})
}

func TestDoneAllEndsEachForItself(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1", "http://c.example/1", "http://d.example/1", "http://known.example/")
		require.NoError(t, w.F.UpdateRule(scope.Host("full.example"), func(r *frontier.Rule) { r.Limits = scope.Limits{Waiting: 1} }))
		a, b, c, d := w.Next(), w.Next(), w.Next(), w.Next()
		got := w.F.DoneAll(t.Context(), []frontier.End{
			{Lease: a, Outcome: frontier.Outcome{Add: []frontier.Entry{
				{URL: "http://known.example/"}, {URL: "nonsense"}, {URL: "http://new.example/1"}, {URL: "http://new.example/1"},
				{URL: "http://known.example/", Force: true}, {URL: "http://full.example/1"}, {URL: "http://full.example/2"},
			}}},
			{Lease: b, Outcome: frontier.Outcome{Result: frontier.PutOff}},
			{Lease: a, Outcome: frontier.Outcome{Result: frontier.Gone}},
			{Lease: c, Outcome: frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}},
			{Lease: d, Outcome: frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/1"}, {URL: "http://new.example/2"}}}},
			{Lease: frontier.Lease{}, Outcome: frontier.Outcome{}},
		})
		require.Len(t, got, 6)
		require.NoError(t, got[0].Err)
		require.Equal(t, "[known bad new known forced new refused]", fmt.Sprint(got[0].Verdicts))
		require.Len(t, got[0].Refused, 2)
		require.Equal(t, 1, got[0].Refused[0].Index)
		require.ErrorIs(t, got[0].Refused[1], frontier.ErrLimit)
		require.ErrorContains(t, got[1].Err, "put off without a Next")
		require.ErrorIs(t, got[2].Err, frontier.ErrNotLeased, "it has just ended")
		require.NoError(t, got[3].Err)
		require.NotNil(t, got[3].Verdicts)
		require.Empty(t, got[3].Verdicts)
		require.NoError(t, got[4].Err)
		require.Equal(t, "[known new]", fmt.Sprint(got[4].Verdicts))
		require.ErrorIs(t, got[5].Err, frontier.ErrNotLeased)
		for _, i := range []int{1, 2, 5} {
			require.Nil(t, got[i].Verdicts)
		}
		x := w.F.Stats()
		require.EqualValues(t, 1, x.Leased, "of the faulty outcome")
		require.EqualValues(t, 2, x.Done[frontier.Visited])
		require.Zero(t, x.Done[frontier.Gone])
		w.IsState(inspect.URLWaiting, c.Entry.URL)
		require.NoError(t, w.F.Done(b, frontier.Outcome{}))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := w.Next()
		require.ErrorIs(t, w.F.DoneAll(ctx, []frontier.End{{Lease: l, Outcome: frontier.Outcome{}}})[0].Err, context.Canceled)
		require.NoError(t, w.F.DoneAll(t.Context(), []frontier.End{{Lease: l, Outcome: frontier.Outcome{}}})[0].Err, "it was out still")
		require.Empty(t, w.F.DoneAll(t.Context(), nil))
	})
}

// A full memory refuses outlinks that find no room, and says so of each; their completion stays.
func TestDoneAllInAFullMemory(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{MemoryBudget: 8 << 20, Delay: frontier.FixedDelay(0)})
	w.Add("http://a.example/")
	l := w.Next()
	var big []frontier.Entry
	for i := range 300 {
		big = append(big, frontier.Entry{URL: fmt.Sprintf("http://b.example/%d", i), Meta: make([]byte, frontier.MaxMeta)})
	}
	got := w.F.DoneAll(t.Context(), []frontier.End{{Lease: l, Outcome: frontier.Outcome{Add: append(big, frontier.Entry{URL: "x"})}}})
	require.ErrorIs(t, got[0].Err, frontier.ErrFull)
	require.Len(t, got[0].Verdicts, 301)
	require.Equal(t, frontier.EntryNew, got[0].Verdicts[0], "of a part that finds room")
	require.Equal(t, frontier.EntryRefused, got[0].Verdicts[200], "the memory is full: the last part is smaller")
	require.Equal(t, frontier.EntryBad, got[0].Verdicts[300])
	require.EqualValues(t, 1, w.F.Stats().Done[frontier.Visited])
}

// Verdicts take one allocation for a call, and not one for an entry.
func TestVerdictsTakeOneAllocation(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	es := harness.URLs("a.example", 1000)
	_, err := w.F.Add(t.Context(), es...)
	require.NoError(t, err)
	plain := testing.AllocsPerRun(20, func() { _, _ = w.F.Add(context.Background(), es...) })
	verdicts := testing.AllocsPerRun(20, func() { _, _ = w.F.AddVerdicts(context.Background(), es...) })
	require.InDelta(t, plain, verdicts, 10)
}
