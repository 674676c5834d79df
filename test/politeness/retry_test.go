package politeness

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var failureKinds = []frontier.Failure{
	frontier.FailureOther, frontier.FailureDNS, frontier.FailureConnect, frontier.FailureTimeout,
	frontier.FailureServer, frontier.FailureUnavailable, frontier.FailureTooMany,
}

func TestEachKindOfFailureHasItsSchedule(t *testing.T) {
	want := map[frontier.Failure][]time.Duration{
		frontier.FailureOther:       {30 * time.Second, 2 * time.Minute},
		frontier.FailureDNS:         {10 * time.Minute, 40 * time.Minute, 160 * time.Minute},
		frontier.FailureConnect:     {time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute},
		frontier.FailureTimeout:     {time.Minute, 4 * time.Minute},
		frontier.FailureServer:      {time.Minute, 4 * time.Minute},
		frontier.FailureUnavailable: {time.Minute, 4 * time.Minute, 16 * time.Minute, 64 * time.Minute},
	}
	for _, k := range failureKinds {
		for i, wait := range want[k] {
			got, again := frontier.DefaultRetries().Retry(frontier.Entry{}, i+1, frontier.Outcome{Failure: k})
			require.True(t, again, "%v, try %d", k, i+1)
			require.Equal(t, wait, got, "%v, try %d", k, i+1)
		}
		if n := len(want[k]); n > 0 {
			_, again := frontier.DefaultRetries().Retry(frontier.Entry{}, n+1, frontier.Outcome{Failure: k})
			require.False(t, again, "%v", k)
		}
	}
	_, again := frontier.DefaultRetries().Retry(frontier.Entry{}, 7, frontier.Outcome{Failure: frontier.FailureTooMany})
	require.True(t, again)
	_, again = frontier.DefaultRetries().Retry(frontier.Entry{}, 8, frontier.Outcome{Failure: frontier.FailureTooMany})
	require.False(t, again)
}

func TestURLsGivenUpTellTheKindOfFailure(t *testing.T) {
	for _, k := range failureKinds {
		var told []frontier.Outcome
		o := frontier.Options{
			Retry:    frontier.RetriesByKind(frontier.Retries(2, time.Hour), map[frontier.Failure]frontier.RetryPolicy{k: frontier.Retries(1, 0)}),
			OnGiveUp: func(_ frontier.Entry, o frontier.Outcome) { told = append(told, o) },
		}
		t.Run(k.String(), func(t *testing.T) {
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				told = nil
				w.Add("http://a.example/1")
				w.Fetched(w.Next(), time.Second, frontier.Outcome{Result: frontier.Failed, Failure: k})
				w.Over()
				require.Len(t, told, 1)
				require.Equal(t, k, told[0].Failure)
			})
		})
	}
}

func TestBadFailuresAreRefused(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		require.ErrorContains(t, w.F.Done(l, frontier.Outcome{Result: frontier.Failed, Failure: 7}), "Failure is 7; want 0 to 6")
		require.ErrorContains(t, w.F.Done(l, frontier.Outcome{Failure: frontier.FailureDNS}), "visited with Failure dns; want failed")
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		w.Over()
	})
}

func TestBadSchedulesAreRefused(t *testing.T) {
	open := func(p frontier.RetryPolicy) error {
		_, err := frontier.Open(t.Context(), frontier.Options{Retry: p})
		return err
	}
	kind := func(p frontier.RetryPolicy) map[frontier.Failure]frontier.RetryPolicy {
		return map[frontier.Failure]frontier.RetryPolicy{frontier.FailureDNS: p}
	}
	require.ErrorContains(t, open(frontier.RetriesByKind(frontier.Retries(1, 0), kind(frontier.Retries(0, 0)))), `Retry for "dns" is Retries(0, 0s); want tries >= 1`)
	require.ErrorContains(t, open(frontier.RetriesByKind(nil, kind(frontier.Retries(1, 0)))), `Retry for "timeout" is nil; want a policy`)
	require.ErrorContains(t, open(frontier.Retries(1, 721*time.Hour)), "want tries >= 1 and a wait of at most 720h0m0s")
	require.Equal(t, "invalid failure", fmt.Sprint(frontier.Failure(7)))
}
