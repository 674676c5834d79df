// This file tests that what Export writes and Import reads is the same, and all.

package frontier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
)

func (w *world) export() string {
	w.Helper()
	var b bytes.Buffer
	require.NoError(w, w.f.Export(context.Background(), &b, frontier.ExportOptions{TempDir: w.TempDir(), Memory: 64 << 10}))
	return b.String()
}

func (w *world) imported(text string) frontier.Imported {
	w.Helper()
	done, err := w.f.Import(context.Background(), strings.NewReader(text), frontier.ImportOptions{})
	require.NoError(w, err)
	return done
}

var exportTime = regexp.MustCompile(`"(time|since)":"[^"]*",`)

// timeless is an export without what tells when it was made, and when periods began:
// an import moves them if its rules have just changed.
func timeless(text string) string { return exportTime.ReplaceAllString(text, "") }

// lines returns the lines of an export of a kind.
func linesOf(text, kind string) (out []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, `{"`+kind+`"`) {
			out = append(out, strings.TrimSuffix(line, "\n"))
		}
	}
	return out
}

// varied makes a frontier that has some of everything.
func (w *world) varied() {
	w.Helper()
	ctx := context.Background()
	var es []frontier.Entry
	for i := range 300 {
		host := []string{"a.example", "b.a.example", "example", "z.test", "10.0.0.1", "a-b.example"}[i%6]
		e := frontier.Entry{URL: fmt.Sprintf("http://%s/%d?q=\"\\<&ü", host, i), Depth: i % 5, Weight: float64(i%3) / 3, Crawl: uint32(i%2) * 70000}
		switch {
		case i%7 == 0:
			e.NotBefore = w.clk.Now().Add(time.Duration(i+1) * time.Hour)
		case i%11 == 0:
			e.NotBefore = w.clk.Now().Add(time.Duration(i) * time.Second)
		}
		if i%5 == 0 {
			e.Meta = []byte{0, 1, 255, byte(i)}
		}
		es = append(es, e)
	}
	es = append(es, frontier.Entry{URL: "http://example/\xff\xfe"})
	n, err := w.f.Add(ctx, es...)
	require.NoError(w, err)
	require.Equal(w, len(es), n)
	require.NoError(w, w.f.SetRule(frontier.All(), frontier.Rule{Delay: frontier.FixedDelay(time.Second)}))
	require.NoError(w, w.f.SetRule(frontier.Domain("a.example"), frontier.Rule{Delay: frontier.FactorDelay(0.1, time.Millisecond, 7*time.Second)}))
	require.NoError(w, w.f.SetConcurrency(frontier.Domain("nobody.test"), 2))
	require.NoError(w, w.f.SetRule(frontier.Host("z\xff"), frontier.Rule{Paused: frontier.On, BlockedUntil: w.clk.Now().Add(1000 * time.Hour)}))
	require.NoError(w, w.f.SetCrawl(70000, frontier.CrawlSettings{Weight: 3}))
	require.NoError(w, w.f.SetCrawl(8, frontier.CrawlSettings{Paused: true}))
	for i := range 60 {
		l := w.next()
		if i%4 == 0 {
			if err := w.f.Join(&l, fmt.Sprint("group", i%3)); errors.Is(err, frontier.ErrGroupBusy) {
				require.NoError(w, w.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
				continue
			}
		}
		o := frontier.Outcome{Result: frontier.Result(i % 6), CrawlDelay: time.Duration(i%5) * time.Second, Modified: dawn.Add(time.Duration(i) * time.Millisecond)}
		if o.Result == frontier.Failed {
			o.Failure = frontier.FailureUnavailable
		}
		if i%9 == 0 {
			o.RetryAfter = 100 * 24 * time.Hour
		}
		if i%6 == 2 {
			o.Next = w.clk.Now().Add(time.Duration(i) * 24 * time.Hour)
		}
		w.fetched(l, 10*time.Millisecond, o)
	}
	w.next() // and one stays leased
}

// Export, import into an empty frontier, export again: the same bytes but for the
// time of the export. Importing it again changes nothing.
func TestExportImportExport(t *testing.T) {
	for _, from := range []string{"memory", "store", "moved", "reopened", "killed"} {
		for _, to := range []string{"memory", "store"} {
			t.Run(from+" to "+to, func(t *testing.T) {
				o := frontier.Options{Retry: frontier.Retries(5, time.Hour)}
				w := newWorld(t, o)
				if from != "memory" {
					w = newStoredWorld(t, o, spill.Options{})
				}
				w.varied()
				switch from {
				case "moved":
					require.NoError(t, w.f.MoveNow(true))
					w.add("http://late.example/")
					l := w.next()
					require.NoError(t, w.f.Done(l, frontier.Outcome{}))
				case "reopened":
					w.reopen()
				case "killed":
					w = w.killed()
				}
				first := w.export()
				require.Equal(t, first, w.export(), "nothing has changed")
				x := newWorld(t, o)
				if to == "store" {
					x = newStoredWorld(t, o, spill.Options{})
				}
				x.clk.Set(w.clk.Now())
				done := x.imported(first)
				assert.Zero(t, done.Bad+done.KnownURLs+done.ForeignMarks)
				assert.EqualValues(t, strings.Count(first, "\n"), done.Lines)
				assert.EqualValues(t, len(linesOf(first, "url"))+len(linesOf(first, "url64")), done.URLs)
				require.NoError(t, x.f.Check())
				require.Equal(t, timeless(first), timeless(x.export()))
				again := x.imported(first)
				assert.Zero(t, again.URLs+again.Marks+again.ForeignMarks)
				require.Equal(t, timeless(first), timeless(x.export()), "importing is idempotent")
				if to == "store" {
					x.reopen()
					require.Equal(t, timeless(first), timeless(x.export()), "and durable")
				}
			})
		}
	}
}

// What was imported goes on politely: no host is contacted before it was due where
// it comes from, and one that was leased counts as contacted.
func TestImportedHostsKeepTheirClocks(t *testing.T) {
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Minute)}, func(t *testing.T, w *world) {
		w.add("http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2", "http://c.example/")
		w.fetched(w.next(), time.Second, frontier.Outcome{RetryAfter: time.Hour}) // some host rests
		rests := linesOf(w.export(), "host")
		require.Len(t, rests, 1)
		l := w.next() // another is leased
		first := w.export()
		o := frontier.Options{Delay: frontier.FixedDelay(time.Minute)}
		x := newWorld(t, o)
		if w.machine != nil {
			x = newStoredWorld(t, o, spill.Options{})
		}
		x.clk.Set(w.clk.Now())
		x.imported(first)
		again := map[string]time.Duration{}
		for range 5 - 1 {
			y := x.next()
			if _, ok := again[y.Host]; !ok {
				again[y.Host] = x.at()
			}
			x.fetched(y, 0, frontier.Outcome{})
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

// An export shows one moment: of chains in which each page leads to the next, each
// has exactly one URL that is not done, however many workers go on meanwhile.
func TestExportShowsOneMoment(t *testing.T) {
	const chains = 40
	test := func(t *testing.T, s frontier.Spill, move bool) {
		ctx, cancel := context.WithCancel(t.Context())
		f, err := frontier.Open(ctx, frontier.Options{Spill: s, Delay: frontier.FixedDelay(0), KeepOpen: true})
		require.NoError(t, err)
		t.Cleanup(func() { ended(t, f) })
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
				require.NoError(t, f.MoveNow(true))
			}
			var b bytes.Buffer
			require.NoError(t, f.Export(ctx, &b, frontier.ExportOptions{}))
			urls := linesOf(b.String(), "url")
			require.Len(t, urls, chains)
			done, known := 0, 0
			for _, u := range urls {
				var chain, n int
				_, err := fmt.Sscanf(u, `{"url":"http://h%d.example/%d"`, &chain, &n)
				require.NoError(t, err)
				done += n
			}
			for _, m := range linesOf(b.String(), "marks") {
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
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	w.varied()
	first := w.export()
	x := newStoredWorld(t, frontier.Options{}, spill.Options{})
	x.clk.Set(w.clk.Now())
	x.imported(first)
	y := x.killed()
	for _, kind := range []string{"rule", "url", "url64", "marks"} {
		require.Equal(t, linesOf(first, kind), linesOf(y.export(), kind), kind)
	}
	last := y.export()
	header, _, _ := strings.Cut(last, "\n")
	_, held, _ := strings.Cut(header, `"held":"`)
	held, _, _ = strings.Cut(held, `"`) // of all hosts, and not told of each
	require.NotEmpty(t, held)
	after := map[string]string{}
	for _, line := range linesOf(last, "host") {
		after[hostOf(line)] = dueOf(line)
	}
	for _, line := range linesOf(first, "host") { // held back, never earlier
		require.GreaterOrEqual(t, max(held, after[hostOf(line)]), dueOf(line), line)
	}
}

// writeHook is a writer that calls back before each write.
type writeHook struct{ do func() error }

func (h writeHook) Write(p []byte) (int, error) { return len(p), h.do() }

func TestExportEndsEarly(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		w.varied()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, w.f.Export(ctx, io.Discard, frontier.ExportOptions{}), context.Canceled)
		full := errors.New("no room")
		require.ErrorIs(t, w.f.Export(t.Context(), writeHook{func() error { return full }}, frontier.ExportOptions{}), full)
		require.Error(t, w.f.Export(t.Context(), io.Discard, frontier.ExportOptions{Memory: 1}))
		if w.machine != nil {
			require.NoError(t, w.f.MoveNow(true))
			w.machine.Faults.FailFrom(spilltest.Read, 3, full)
			var b bytes.Buffer
			require.ErrorIs(t, w.f.Export(t.Context(), &b, frontier.ExportOptions{}), full)
			assert.NotContains(t, b.String(), `{"end"`)
			w.machine.Faults.Heal()
		}
		require.NoError(t, w.f.Check())
		require.NoError(t, w.f.Close())
		require.ErrorIs(t, w.f.Export(t.Context(), io.Discard, frontier.ExportOptions{}), frontier.ErrClosed)
		_, err := w.f.Import(t.Context(), strings.NewReader("http://a.example/"), frontier.ImportOptions{})
		require.ErrorIs(t, err, frontier.ErrClosed)
	})
}

// A frontier that is closed while it exports does not wait for the rest.
func TestCloseEndsAnExport(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{}, spill.Options{})
	es := make([]frontier.Entry, 3000)
	for i := range es {
		es[i].URL = fmt.Sprintf("http://h%d.example/%d", i%100, i)
	}
	_, err := w.f.Add(t.Context(), es...)
	require.NoError(t, err)
	begun, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	go func() { <-begun; _ = w.f.Close(); close(closed) }()
	err = w.f.Export(t.Context(), writeHook{func() error {
		once.Do(func() { close(begun); <-w.closing() })
		return nil
	}}, frontier.ExportOptions{})
	require.ErrorIs(t, err, frontier.ErrClosed)
	<-closed
}

// closing is closed when Close has begun.
func (w *world) closing() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := w.f.TryNext(); errors.Is(err, frontier.ErrClosed) {
				return
			} else if err != nil {
				runtime.Gosched()
			}
		}
	}()
	return done
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
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, spill.Options{})
	w.add("http://a.example/", "http://b.example/1", "http://b.example/2")
	for range 2 {
		l := w.next()
		require.NoError(t, w.f.Join(&l, l.Host))
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	}
	w.reopen()
	w.clk.Advance(time.Minute)
	var b bytes.Buffer
	require.NoError(t, w.f.Export(t.Context(), &b, frontier.ExportOptions{}))
	require.Equal(t, []string{`{"host":"b.example","joined":"b.example"}`}, linesOf(b.String(), "host"))
}
