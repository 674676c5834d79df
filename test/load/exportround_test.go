// This file tests that what Export writes and Import reads is the same, and all.

package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// Export, import into an empty frontier, export again: the same bytes except for the time of the
// export. Importing it again changes nothing.
func TestExportImportExport(t *testing.T) {
	for _, from := range []string{"memory", "store", "moved", "reopened", "killed"} {
		for _, to := range []string{"memory", "store"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				o := frontier.Options{Retry: frontier.Retries(5, time.Hour)}
				w := harness.NewWorld(t, o)
				if from != "memory" {
					w = harness.NewStoredWorld(t, o, spill.Options{})
				}
				w.Varied()
				switch from {
				case "moved":
					require.NoError(t, hook.Of(w.F).MoveNow(true))
					w.Add("http://late.example/")
					l := w.Next()
					require.NoError(t, w.F.Done(l, frontier.Outcome{}))
				case "reopened":
					w.Reopen()
				case "killed":
					w = w.Killed()
				}
				first := w.Export()
				require.Equal(t, first, w.Export(), "nothing has changed")
				x := harness.NewWorld(t, o)
				if to == "store" {
					x = harness.NewStoredWorld(t, o, spill.Options{})
				}
				x.Clock.Set(w.Clock.Now())
				done := x.Imported(first)
				assert.Zero(t, done.Bad+done.KnownURLs+done.ForeignMarks)
				assert.EqualValues(t, strings.Count(first, "\n"), done.Lines)
				assert.EqualValues(t, len(harness.LinesOf(first, "url"))+len(harness.LinesOf(first, "url64")), done.URLs)
				require.NoError(t, x.F.Check())
				require.Equal(t, harness.Timeless(first), harness.Timeless(x.Export()))
				again := x.Imported(first)
				assert.Zero(t, again.URLs+again.Marks+again.ForeignMarks)
				require.Equal(t, harness.Timeless(first), harness.Timeless(x.Export()), "importing is idempotent")
				if to == "store" {
					x.Reopen()
					require.Equal(t, harness.Timeless(first), harness.Timeless(x.Export()), "and durable")
				}
			})
		}
	}
}

// An imported crawl continues politely: no host is contacted before it was due in the original, and
// one that was leased counts as contacted.
func TestImportedHostsKeepTheirClocks(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Minute)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2", "http://c.example/")
		w.Fetched(w.Next(), time.Second, frontier.Outcome{RetryAfter: time.Hour}) // some host rests
		rests := harness.LinesOf(w.Export(), "host")
		require.Len(t, rests, 1)
		l := w.Next() // another is leased
		first := w.Export()
		o := frontier.Options{Delay: frontier.FixedDelay(time.Minute)}
		x := harness.NewWorld(t, o)
		if w.Machine != nil {
			x = harness.NewStoredWorld(t, o, spill.Options{})
		}
		x.Clock.Set(w.Clock.Now())
		x.Imported(first)
		again := map[string]time.Duration{}
		for range 5 - 1 {
			y := x.Next()
			if _, ok := again[y.Host]; !ok {
				again[y.Host] = x.At()
			}
			x.Fetched(y, 0, frontier.Outcome{})
		}
		assert.Equal(t, time.Second+time.Minute, again[l.Host], "it was leased")
		assert.Contains(t, again, "c.example")
		delete(again, l.Host)
		for host, at := range again {
			if strings.Contains(rests[0], host) {
				assert.Equal(t, time.Second+time.Hour, at, "%s rests", host)
			}
		}
	})
}

// An export shows one moment: in chains in which each page links to the next, exactly one URL each
// is not done, however many workers run meanwhile.
func TestExportShowsOneMoment(t *testing.T) {
	const chains = 40
	test := func(t *testing.T, s storage.Spill, move bool) {
		ctx, cancel := context.WithCancel(t.Context())
		f, err := frontier.Open(ctx, frontier.Options{Spill: s, Delay: frontier.FixedDelay(0), KeepOpen: true})
		require.NoError(t, err)
		t.Cleanup(func() { harness.Ended(t, f) })
		var es []frontier.Entry
		for i := range chains {
			es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/0", i)})
		}
		_, err = f.Add(ctx, es...)
		require.NoError(t, err)
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				for l, err := range f.Leases(ctx) {
					if err != nil {
						return
					}
					var chain, n int
					_, err := fmt.Sscanf(l.Entry.URL, "http://h%d.example/%d", &chain, &n)
					assert.NoError(t, err)
					assert.NoError(t, f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: fmt.Sprintf("http://h%d.example/%d", chain, n+1)}}}))
				}
			})
		}
		for range 10 {
			if move {
				require.NoError(t, hook.Of(f).MoveNow(true))
			}
			var b bytes.Buffer
			require.NoError(t, transfer.Export(ctx, f, &b, transfer.ExportOptions{}))
			urls := harness.LinesOf(b.String(), "url")
			require.Len(t, urls, chains)
			done, known := 0, 0
			for _, u := range urls {
				var chain, n int
				_, err := fmt.Sscanf(u, `{"url":"http://h%d.example/%d"`, &chain, &n)
				require.NoError(t, err)
				done += n
			}
			for _, m := range harness.LinesOf(b.String(), "marks") {
				known += (len(m) - len(`{"marks":""}`)) / 16
			}
			require.Equal(t, done+chains, known, "the URLs that are known are those of the chains so far")
		}
		cancel()
		wait.Wait()
	}
	t.Run("in memory", func(t *testing.T) { test(t, nil, false) })
	t.Run("on a store", func(t *testing.T) { test(t, spilltest.OpenMemory(t, spill.Options{}).Store, true) })
	t.Run("on badger", func(t *testing.T) {
		s, err := spill.Open(t.TempDir(), spill.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		test(t, s, true)
	})
}

// What was imported is there after the death of the process.
func TestImportIsDurable(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Varied()
	first := w.Export()
	x := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	x.Clock.Set(w.Clock.Now())
	x.Imported(first)
	y := x.Killed()
	for _, kind := range []string{"rule", "url", "url64", "marks"} {
		require.Equal(t, harness.LinesOf(first, kind), harness.LinesOf(y.Export(), kind), kind)
	}
	last := y.Export()
	header, _, _ := strings.Cut(last, "\n")
	_, held, _ := strings.Cut(header, `"held":"`)
	held, _, _ = strings.Cut(held, `"`) // of all hosts, without the rest of each
	require.NotEmpty(t, held)
	after := map[string]string{}
	for _, line := range harness.LinesOf(last, "host") {
		after[hostOf(line)] = dueOf(line)
	}
	for _, line := range harness.LinesOf(first, "host") { // held back, never earlier
		require.GreaterOrEqual(t, max(held, after[hostOf(line)]), dueOf(line), line)
	}
}

// writeHook is a writer that calls back before each write.
type writeHook struct{ do func() error }

func (h writeHook) Write(p []byte) (int, error) { return len(p), h.do() }

func TestExportEndsEarly(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Varied()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, transfer.Export(ctx, w.F, io.Discard, transfer.ExportOptions{}), context.Canceled)
		full := errors.New("no room")
		require.ErrorIs(t, transfer.Export(t.Context(), w.F, writeHook{func() error { return full }}, transfer.ExportOptions{}), full)
		require.Error(t, transfer.Export(t.Context(), w.F, io.Discard, transfer.ExportOptions{Memory: 1}))
		if w.Machine != nil {
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			w.Machine.Faults.FailFrom(spilltest.Read, 3, full)
			var b bytes.Buffer
			require.ErrorIs(t, transfer.Export(t.Context(), w.F, &b, transfer.ExportOptions{}), full)
			assert.NotContains(t, b.String(), `{"end"`)
			w.Machine.Faults.Heal()
		}
		require.NoError(t, w.F.Check())
		require.NoError(t, w.F.Close())
		require.ErrorIs(t, transfer.Export(t.Context(), w.F, io.Discard, transfer.ExportOptions{}), frontier.ErrClosed)
		_, err := transfer.Import(t.Context(), w.F, strings.NewReader("http://a.example/"), transfer.ImportOptions{})
		require.ErrorIs(t, err, frontier.ErrClosed)
	})
}

// A frontier that is closed while it exports does not wait for the rest.
func TestCloseEndsAnExport(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	es := make([]frontier.Entry, 3000)
	for i := range es {
		es[i].URL = fmt.Sprintf("http://h%d.example/%d", i%100, i)
	}
	_, err := w.F.Add(t.Context(), es...)
	require.NoError(t, err)
	begun, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() { <-begun; _ = w.F.Close(); close(closed) }()
	err = transfer.Export(t.Context(), w.F, writeHook{func() error {
		once.Do(func() { close(begun); <-w.Closing() })
		return nil
	}}, transfer.ExportOptions{})
	require.ErrorIs(t, err, frontier.ErrClosed)
	<-closed
}

// hostOf and dueOf are what a line says.
func hostOf(line string) string { return strings.Split(line, `"`)[3] }

func dueOf(line string) string {
	_, after, _ := strings.Cut(line, `"due":"`)
	due, _, _ := strings.Cut(after, `"`)
	return due
}

// A host that rests has left its group, though its row may still name it: an
// import would not keep that, and an export after it would differ.
func TestExportLeavesTheGroupsOfRestingHostsOut(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.Add("http://a.example/", "http://b.example/1", "http://b.example/2")
	for range 2 {
		l := w.Next()
		require.NoError(t, w.F.Join(&l, l.Host))
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	}
	w.Reopen()
	w.Clock.Advance(time.Minute)
	var b bytes.Buffer
	require.NoError(t, transfer.Export(t.Context(), w.F, &b, transfer.ExportOptions{}))
	require.Equal(t, []string{`{"host":"b.example","joined":"b.example"}`}, harness.LinesOf(b.String(), "host"))
}
