// This file opens what an earlier program stored and exported: testdata/format1 is of
// the first format. A program that changes a format gets a folder of its own, and
// goes on to read the others, or refuses them with ErrVersion.

package frontier_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/simclock"
	"github.com/seed-7440039f/frontier/spill"
)

var makeFixture = flag.Bool("frontier.fixture", false, "write testdata/format1 anew")

const fixture = "testdata/format1"

// storedKinds counts what a store holds, by kind.
type storedKinds map[string]int

func (s storedKinds) Begin(func(string) ([]byte, bool, error)) error { return nil }
func (s storedKinds) Marks(n int64) error                            { s["marks"] += int(n); return nil }
func (s storedKinds) Dead(uint32, []byte) error                      { s["finished"]++; return nil }
func (s storedKinds) Part(frontier.Queue, frontier.Part) error       { s["parts"]++; return nil }
func (s storedKinds) Timed(frontier.TimedBlock) error                { s["timed blocks"]++; return nil }
func (s storedKinds) Batch(*frontier.Batch) error                    { s["batches"]++; return nil }
func (s storedKinds) Row(key string, _ []byte) error                 { s["rows "+key[:min(2, len(key))]]++; return nil }

func (w *world) openFolder(dir string) *spill.Store {
	w.Helper()
	s, err := spill.Open(dir, spill.Options{})
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, s.Close()) })
	w.opts.Spill = s
	return s
}

func newFixtureWorld(t *testing.T, now time.Time) *world {
	w := &world{TB: t, clk: simclock.New(now), opts: frontier.Options{Retry: frontier.Retries(5, time.Hour), HoldHints: true}}
	w.opts.Clock = w.clk
	return w
}

// writeFixture makes a store with something of every kind, and tells what it is.
func writeFixture(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newFixtureWorld(t, dawn)
	s := w.openFolder(dir)
	w.open()
	w.varied()
	ctx := context.Background()
	require.NoError(t, w.f.SetCrawl(70000, frontier.CrawlSettings{Weight: 3, Limits: frontier.Limits{Served: 5000}}))
	require.NoError(t, w.f.SetRule(frontier.Host("limited.example"), frontier.Rule{Limits: frontier.Limits{Waiting: 50}, HostLimits: frontier.Limits{Served: 100, Period: 24 * time.Hour}}))
	require.NoError(t, w.f.SetGroup("group1", frontier.GroupSettings{Delay: frontier.FixedDelay(3 * time.Second), Concurrency: 2}))
	now := func(urls ...string) {
		for _, u := range urls {
			_, err := w.f.CrawlNow(ctx, frontier.Entry{URL: u, Crawl: 70000})
			require.NoError(t, err)
		}
	}
	now("http://limited.example/1", "http://limited.example/2")
	for range 2 {
		w.fetched(w.next(), time.Second, frontier.Outcome{Bytes: 1000})
	}
	for _, u := range []string{"http://s.example/1", "http://s.example/2", "http://s.example/3"} {
		_, err := w.f.Add(ctx, frontier.Entry{URL: u, NotBefore: w.clk.Now().Add(500 * time.Hour)})
		require.NoError(t, err)
	}
	require.NoError(t, w.f.MoveNow(true))
	w.fetched(w.next(), time.Second, frontier.Outcome{})
	require.NoError(t, w.f.MoveNow(true))
	now("http://s.example/1")
	_, err := w.f.Add(ctx, frontier.Entry{URL: "http://s.example/2", Hint: true, Weight: 2, NotBefore: w.clk.Now().Add(time.Hour)})
	require.NoError(t, err)
	_, err = w.f.Delete(ctx, frontier.Host("b.a.example"))
	require.NoError(t, err)
	w.add("http://late.example/1", "http://late.example/2")
	ended(t, w.f)
	require.NoError(t, s.Close())

	require.NoError(t, os.RemoveAll(fixture))
	require.NoError(t, os.CopyFS(filepath.Join(fixture, "store"), os.DirFS(dir)))
	require.NoError(t, os.Remove(filepath.Join(fixture, "store", "DISCARD"))) // a megabyte, made anew if it is missing
	text, kinds := readFixture(t, w.clk.Now())
	require.NoError(t, os.WriteFile(filepath.Join(fixture, "export.jsonl"), []byte(text), 0o600))
	counts, err := json.MarshalIndent(kinds, "", "\t")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(fixture, "kinds.json"), append(counts, '\n'), 0o600))
}

// readFixture opens a copy of the stored folder.
func readFixture(t *testing.T, now time.Time) (text string, kinds storedKinds) {
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(fixture, "store"))))
	w := newFixtureWorld(t, now)
	s := w.openFolder(dir)
	kinds = storedKinds{}
	require.NoError(t, s.Recover(t.Context(), kinds))
	require.NoError(t, s.Release())
	w.open()
	text = w.export()
	ended(t, w.f)
	require.NoError(t, s.Close())
	return text, kinds
}

// A store and an export of the first format have what they had.
func TestStoredFormat(t *testing.T) {
	if *makeFixture {
		writeFixture(t)
	}
	want, err := os.ReadFile(filepath.Join(fixture, "export.jsonl"))
	require.NoError(t, err)
	var header struct{ Time time.Time }
	first, _, _ := strings.Cut(string(want), "\n")
	require.NoError(t, json.Unmarshal([]byte(first), &header))
	text, kinds := readFixture(t, header.Time)
	require.Equal(t, string(want), text)

	counts, err := os.ReadFile(filepath.Join(fixture, "kinds.json"))
	require.NoError(t, err)
	had := storedKinds{}
	require.NoError(t, json.Unmarshal(counts, &had))
	require.Equal(t, had, kinds)
	for _, kind := range []string{"marks", "finished", "parts", "timed blocks", "batches", "rows m", "rows h:", "rows g:", "rows r:", "rows e:", "rows i:", "rows u:", "rows c:"} {
		require.Contains(t, kinds, kind)
	}

	w := newFixtureWorld(t, header.Time)
	w.open()
	done := w.imported(string(want))
	require.Zero(t, done.Bad+done.KnownURLs+done.ForeignMarks)
	require.Equal(t, timeless(string(want)), timeless(w.export()))

	report, err := spill.Repair(t.Context(), filepath.Join(fixture, "store"), filepath.Join(t.TempDir(), "repaired"), spill.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Lost)
}
