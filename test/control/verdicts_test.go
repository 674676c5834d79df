// This file tests the verdicts of AddVerdicts.

package control

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestVerdictsSayWhatBecameOfEachEntry(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/known")
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/later", NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err)
		require.NoError(t, w.F.UpdateRule(frontier.Host("full.example"), func(r *frontier.Rule) { r.Limits = frontier.Limits{Waiting: 1} }))
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
		w.IsState(frontier.URLUnknown, "http://a.example/3")
	})
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
