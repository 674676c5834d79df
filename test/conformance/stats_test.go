// This file tests what Stats says beyond counters: rates, waiting times, and its
// forms for logs and monitoring.

package conformance

import (
	"bytes"
	"encoding/json"
	"expvar"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestRatesAreOfTheLastMinute(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		require.Zero(t, w.F.Stats().Rates)
		w.Add(harness.UrlsOf("a.example", 30)...)
		require.Equal(t, frontier.Rates{Added: 30}, w.F.Stats().Rates, "the first second is a whole one")
		w.Until(10 * time.Second)
		for range 20 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		require.Equal(t, frontier.Rates{Added: 3, HandedOut: 2, Done: 2}, w.F.Stats().Rates)
		w.Until(60 * time.Second)
		require.Equal(t, frontier.Rates{Added: 0.5, HandedOut: 20. / 60, Done: 20. / 60}, w.F.Stats().Rates)
		w.Until(61 * time.Second)
		require.Equal(t, frontier.Rates{HandedOut: 20. / 60, Done: 20. / 60}, w.F.Stats().Rates)
		w.Until(time.Hour)
		require.Zero(t, w.F.Stats().Rates)
		for i := range 3600 { // one each second
			w.Until(time.Hour + time.Duration(i)*time.Second)
			w.Add(fmt.Sprintf("http://b.example/%d", i))
		}
		require.InDelta(t, 1, w.F.Stats().Rates.Added, 0.02)
	})
}

func TestWaitingTimes(t *testing.T) {
	o := frontier.Options{Delay: frontier.FixedDelay(time.Second), Prioritizer: frontier.ByDepth(8), Selector: selector.Strict()}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		require.Zero(t, w.F.Stats().Waits)
		w.Add(harness.UrlsOf("a.example", 4)...) // waits of 0, 1, 2, 3 s
		for range 4 {
			w.Fetched(w.Next(), 0, frontier.Outcome{})
		}
		s := w.F.Stats()
		require.Equal(t, int64(4), s.Waits.Count)
		require.Equal(t, 6*time.Second, s.Waits.Sum)
		require.Equal(t, 1500*time.Millisecond, s.Waits.Mean())
		require.Equal(t, s.Waits, s.WaitsBy[7])
		require.Zero(t, s.WaitsBy[0])
		require.Equal(t, time.Millisecond, s.Waits.Quantile(0.25))
		require.Equal(t, 1024*time.Millisecond, s.Waits.Quantile(0.5))
		require.Equal(t, 2048*time.Millisecond, s.Waits.Quantile(0.75))
		require.Equal(t, 4096*time.Millisecond, s.Waits.Quantile(1))
	})
}

// A scheduled URL waits from its due time on, not from its Add, even if no call asked at that time.
func TestScheduledURLsWaitFromTheirTime(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(time.Hour)})
		require.NoError(t, err)
		w.Until(time.Hour + 3*time.Second)
		w.Next()
		require.Equal(t, int64(1), w.F.Stats().Waits.Count)
		require.Equal(t, 3*time.Second, w.F.Stats().Waits.Sum)
	})
}

// A lease handed back did not end the wait a second time.
func TestHandedBackURLsAreCountedOnce(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		w.Until(time.Second)
		for range 3 {
			require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
			w.Until(time.Minute)
		}
		require.Equal(t, int64(1), w.F.Stats().Waits.Count)
		require.Equal(t, time.Second, w.F.Stats().Waits.Sum)
	})
}

// Of many URLs a sample is kept, and stands for all of them.
func TestWaitingTimesOfMany(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
	const n = 100_000
	for i := range 100 {
		w.Add(harness.UrlsOf(fmt.Sprintf("h%d.example", i), n/100)...)
	}
	require.NoError(t, w.F.Check())
	for i := range n {
		if i%1000 == 0 {
			w.Until(time.Duration(i/1000) * time.Second)
		}
		w.Fetched(w.Next(), 0, frontier.Outcome{})
	}
	s := w.F.Stats()
	require.InEpsilon(t, n, s.Waits.Count, 0.1)
	require.InEpsilon(t, 49.5, s.Waits.Mean().Seconds(), 0.1)
	require.Equal(t, 65536*time.Millisecond, s.Waits.Quantile(0.5))

	w.Add(harness.UrlsOf("new.example", 10)...) // few again: each counts
	for range 10 {
		w.Fetched(w.Next(), 0, frontier.Outcome{})
	}
	require.Equal(t, s.Waits.Count+10, w.F.Stats().Waits.Count)
}

// What dashboards are built on stays.
func TestStatsKeys(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{Priorities: 2})
	w.Add(harness.UrlsOf("a.example", 3)...)
	l := w.Next()
	w.Fetched(l, time.Second, frontier.Outcome{Result: frontier.Gone})

	v := expvar.Func(func() any { return w.F.Stats() })
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(v.String()), &got), "%s", v)
	for key, want := range map[string]any{
		"waiting": 2., "waiting_by": map[string]any{"1": 0., "2": 2.}, "scheduled": 0., "leased": 0., "hosts": 1.,
		"bound": 1., "groups": 0., "known": 3., "added": 3., "duplicates": 0., "handed_out": 1., "retried": 0., "given_up": 0.,
		"expired": 0., "unreadable": 0., "events_lost": 0.,
		"done":  map[string]any{"visited": 0., "changed": 0., "unchanged": 0., "gone": 1., "failed": 0., "denied": 0., "requeue": 0., "put_off": 0.},
		"rates": map[string]any{"added": 3., "handed_out": 1., "done": 1.},
		"waits": map[string]any{"count": 1., "mean_s": 0., "p50_s": 0.001, "p90_s": 0.001, "p99_s": 0.001},
	} {
		require.Equal(t, want, got[key], "%s", key)
	}
	require.Contains(t, got, "waits_by")
	require.Contains(t, got, "resident")
	require.Contains(t, got, "memory_bytes")

	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("now", "stats", w.F.Stats())
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	require.Equal(t, got, record["stats"], "both forms have the same keys and values")
}
