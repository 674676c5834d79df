// This file tests URLs that are kept when they are done.

package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var keepOptions = frontier.Options{Keep: true, Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, time.Second)}

// isFinished requires that a URL is finished, and returns its status.
func isFinished(t *testing.T, w *harness.World, url string) inspect.Status {
	t.Helper()
	w.IsState(inspect.URLFinished, url)
	s := w.Status(url)
	require.True(t, s.Entry.Finished)
	require.Zero(t, s.Until)
	return s
}

// eachPlace calls test with finished URLs in memory, in the log, on disk, and in a store that was
// opened again.
func eachPlace(t *testing.T, test func(t *testing.T, w *harness.World, settle func())) {
	harness.InBothWorlds(t, keepOptions, func(t *testing.T, w *harness.World) { test(t, w, func() {}) })
	for name, settle := range map[string]func(*harness.World){
		"moved":  func(w *harness.World) { w.Moves(true) },
		"reopen": func(w *harness.World) { w.Moves(true); w.Reopen() },
		"kill":   func(w *harness.World) { *w = *w.Killed() },
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewStoredWorld(t, keepOptions, spill.Options{})
			test(t, w, func() { settle(w) })
		})
	}
}

func TestEndedURLsAreKept(t *testing.T) {
	eachPlace(t, func(t *testing.T, w *harness.World, settle func()) {
		ends := map[frontier.Result]string{}
		for r := frontier.Visited; r <= frontier.Denied; r++ {
			ends[r] = fmt.Sprintf("http://%v.example/", r)
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: ends[r], Depth: 3, Weight: 1.5, Meta: []byte("meta")})
			require.NoError(t, err)
			l := w.LeaseOf(t)
			w.IsState(inspect.URLLeased, ends[r])
			require.NoError(t, w.F.Done(l, frontier.Outcome{Result: r}))
		}
		settle()
		for r, url := range ends {
			s := isFinished(t, w, url)
			require.Equal(t, r, s.History.Last)
			require.Equal(t, harness.Btoi(r <= frontier.Gone), s.History.Visits)
			require.Equal(t, frontier.Entry{URL: url, Depth: 3, Weight: 1.5, Meta: []byte("meta"), Finished: true}, s.Entry)
		}
		n := 0
		for u, err := range inspect.New(w.F).Scan(t.Context(), scope.All()) {
			require.NoError(t, err)
			require.Equal(t, frontier.Entry{URL: ends[u.History.Last], Depth: 3, Weight: 1.5, Meta: []byte("meta"), Finished: true}, u.Entry)
			n++
		}
		require.Len(t, ends, n)
		st := w.F.Stats()
		require.EqualValues(t, len(ends), st.Finished)
		require.Zero(t, st.Scheduled)
		_, _, err := w.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrExhausted)
		require.NoError(t, w.F.Check())
	})
}

func TestFinishedEntries(t *testing.T) {
	eachPlace(t, func(t *testing.T, w *harness.World, settle func()) {
		ctx := context.Background()
		w.Add("http://a.example/waits", "http://b.example/leased")
		_, err := w.F.Add(ctx, frontier.Entry{URL: "http://c.example/scheduled", NotBefore: w.Clock.Now().Add(time.Hour)})
		require.NoError(t, err)
		var l frontier.Lease
		for l.Host != "b.example" { // whichever comes first
			if l.Host != "" {
				require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
			}
			l = w.LeaseOf(t)
		}
		urls := []string{"http://a.example/waits", "http://b.example/leased", "http://c.example/scheduled", "http://d.example/new"}
		for i, url := range urls {
			n, err := w.F.Add(ctx, frontier.Entry{URL: url, Finished: true})
			require.NoError(t, err)
			require.Equal(t, harness.Btoi(i == 3), n, "known URLs do not change without Force")
			n, err = w.F.Add(ctx, frontier.Entry{URL: url, Finished: true, Force: true, Meta: []byte{byte(i)}})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		w.IsState(inspect.URLLeased, urls[1])
		require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Failed}))
		settle()
		for i, url := range urls {
			require.Equal(t, []byte{byte(i)}, isFinished(t, w, url).Entry.Meta)
		}
		require.Empty(t, w.LeaseAll())

		for _, e := range []frontier.Entry{{URL: urls[0], Hint: true}, {URL: urls[0]}} {
			n, err := w.F.Add(ctx, e)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		isFinished(t, w, urls[0])
		w.CrawlNow(frontier.Entry{URL: urls[0]})
		_, err = w.F.Add(ctx, frontier.Entry{URL: urls[1], Force: true})
		require.NoError(t, err)
		require.Equal(t, urls[:2], w.LeaseAll(), "Force brings them back")
		_, err = w.F.Delete(ctx, scope.All())
		require.NoError(t, err)
		for _, url := range urls[2:] {
			w.IsState(inspect.URLKnown, url)
		}
		require.NoError(t, w.F.Check())
	})
}

func TestFinishedEntriesThatAreRefused(t *testing.T) {
	ctx := context.Background()
	for want, o := range map[string]frontier.Options{"with Options.Keep": {}, "either Finished or Hint": {Keep: true}} {
		w := harness.NewWorld(t, o)
		_, err := w.F.Add(ctx, frontier.Entry{URL: "http://a.example/", Finished: true, Hint: true})
		require.ErrorContains(t, err, want)
	}
	w := harness.NewWorld(t, keepOptions)
	_, err := w.F.CrawlNow(ctx, frontier.Entry{URL: "http://a.example/", Finished: true})
	require.ErrorContains(t, err, "not in CrawlNow: Finished")
	_, err = frontier.Open(ctx, frontier.Options{Keep: true, NoDedup: true})
	require.ErrorContains(t, err, "Keep is set with NoDedup")
}

// URLs that are given up with their host are kept, too.
func TestURLsOfLostHostsAreKept(t *testing.T) {
	o := keepOptions
	o.Quarantine = frontier.Quarantine{After: 3, Probes: 1}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.AddMany("dead.example", 100)
		for n := 0; w.F.Stats().GivenUp < 100; n++ {
			require.Less(t, n, 10_000, "%+v", w.F.Stats())
			l, _, err := w.F.TryNext()
			if err != nil {
				w.Clock.Advance(time.Minute)
				continue
			}
			require.NoError(t, w.F.Done(l, harness.Failing(frontier.FailureConnect)))
		}
		require.EqualValues(t, 100, w.F.Stats().Finished)
	})
}

// On disk finished URLs and hosts take no memory, their blocks are not read at an opening, and notes
// and deletions that concern them go.
func TestFinishedURLsOnDisk(t *testing.T) {
	const n = 20_000
	w := harness.NewStoredWorld(t, keepOptions, spill.Options{})
	ctx := context.Background()
	for i := 0; i < n; i += 1000 {
		var es []frontier.Entry
		for k := range 1000 {
			es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", (i+k)%500, i+k), Finished: true})
		}
		_, err := w.F.Add(ctx, es...)
		require.NoError(t, err)
	}
	_, err := w.F.Add(ctx, frontier.Entry{URL: "http://later.example/", NotBefore: w.Clock.Now().Add(time.Hour)})
	require.NoError(t, err)
	w.Moves(true)
	w.F.Stats()
	require.Zero(t, w.F.Stats().Resident)
	require.Zero(t, w.F.Stats().Hosts)
	w.Reopen()
	require.Zero(t, w.F.Stats().Resident)
	require.EqualValues(t, n, w.F.Stats().Finished)
	require.EqualValues(t, 1, w.F.Stats().Scheduled)
	_, at, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.Equal(t, time.Hour, at.Sub(w.Clock.Now()).Round(time.Second))

	for i := range 300 {
		_, err := w.F.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i, i), Force: true, Finished: true})
		require.NoError(t, err)
	}
	require.NotZero(t, rows(w, "x:"))
	hook.Of(w.F).ReadTimed()
	require.EqualValues(t, n, w.F.Stats().Finished)
	w.Moves(true)
	w.Moves(true)
	require.Zero(t, rows(w, "x:"), "all blocks were searched")

	_, err = w.F.Delete(ctx, scope.Host("h7.example"))
	require.NoError(t, err)
	hook.Of(w.F).ReadTimed()
	require.EqualValues(t, n-n/500, w.F.Stats().Finished)
	w.Moves(true)
	w.Moves(true)
	require.Zero(t, rows(w, "e:"), "no block has any")
	w.Reopen()
	require.EqualValues(t, n-n/500, w.F.Stats().Finished)
	w.IsState(inspect.URLKnown, "http://h7.example/7")
	isFinished(t, w, "http://h8.example/8")
	require.NoError(t, w.F.Check())
}

func TestFinishedURLsAreExported(t *testing.T) {
	w := harness.NewStoredWorld(t, keepOptions, spill.Options{})
	w.Add("http://a.example/1")
	require.NoError(t, w.F.Done(w.LeaseOf(t), frontier.Outcome{Result: frontier.Changed, Meta: []byte("x")}))
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/2", NotBefore: w.Clock.Now().Add(time.Hour)}, frontier.Entry{URL: "http://a.example/3"})
	require.NoError(t, err)
	text := w.Export()
	lines := harness.LinesOf(text, "url")
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[2], `{"url":"http://a.example/1","priority":8,"finished":1,"last":"changed"`), lines[2])

	other := harness.NewStoredWorld(t, keepOptions, spill.Options{})
	require.EqualValues(t, 3, other.Imported(text).URLs)
	require.Equal(t, harness.Timeless(text), harness.Timeless(other.Export()))
	require.Equal(t, w.Status("http://a.example/1"), other.Status("http://a.example/1"))

	without := keepOptions
	without.Keep = false
	plain := harness.NewWorld(t, without)
	require.EqualValues(t, 2, plain.Imported(text).URLs)
	plain.IsState(inspect.URLKnown, "http://a.example/1")
	require.Zero(t, plain.F.Stats().Finished)
}

// rows counts the rows of a kind on the disk of a frontier that was just closed or moved.
func rows(w *harness.World, kind string) (found int) {
	w.Machine.Damage(func(k, v []byte) []byte {
		if len(k) > 7 && string(k[5:7]) == kind {
			found++
		}
		return v
	})
	return found
}
