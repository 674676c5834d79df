// This file opens what an earlier program stored and exported: testdata/format2 is of the
// present format, testdata/format1 of one that is refused. A program that changes a format
// gets its own folder, and reads the others or refuses them with ErrVersion.

package durability

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

var makeFixture = flag.Bool("frontier.fixture", false, "write testdata/format2 anew")

const fixture = "testdata/format2"

// storedKinds counts what a store holds, by kind.
type storedKinds map[string]int

func (s storedKinds) Begin(func(string) ([]byte, bool, error)) error { return nil }

func (s storedKinds) Marks(n int64) error { s["marks"] += int(n); return nil }

func (s storedKinds) Dead(uint32, []byte) error { s["finished"]++; return nil }

func (s storedKinds) Part(storage.Queue, storage.Part) error { s["parts"]++; return nil }

func (s storedKinds) Timed(storage.TimedBlock) error { s["timed blocks"]++; return nil }

func (s storedKinds) Batch(*storage.Batch) error { s["batches"]++; return nil }

func (s storedKinds) Row(key string, _ []byte) error { s["rows "+key[:min(2, len(key))]]++; return nil }

func newFixtureWorld(t *testing.T, now time.Time) *harness.World {
	w := &harness.World{TB: t, Clock: simclock.New(now), Options: frontier.Options{Retry: frontier.Retries(5, time.Hour), DeferHints: true}}
	w.Options.Clock = w.Clock
	return w
}

// writeFixture makes a store with something of every kind, and returns what it is.
func writeFixture(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newFixtureWorld(t, harness.Dawn)
	s := w.OpenFolder(dir)
	w.Open()
	w.Varied()
	ctx := context.Background()
	require.NoError(t, w.F.UpdateRule(scope.Crawl(70000), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 3, Limits: scope.Limits{Served: 5000}} }))
	require.NoError(t, w.F.UpdateRule(scope.Host("limited.example"), func(rule *frontier.Rule) {
		*rule = frontier.Rule{Limits: scope.Limits{Waiting: 50}, HostLimits: scope.Limits{Served: 100, Period: 24 * time.Hour}}
	}))
	require.NoError(t, w.F.SetGroup("group1", frontier.GroupSettings{Delay: frontier.FixedDelay(3 * time.Second), Concurrency: 2}))
	now := func(urls ...string) {
		for _, u := range urls {
			_, err := w.F.CrawlNow(ctx, frontier.Entry{URL: u, Crawl: 70000})
			require.NoError(t, err)
		}
	}
	now("http://limited.example/1", "http://limited.example/2")
	for range 2 {
		w.Fetched(w.Next(), time.Second, frontier.Outcome{Bytes: 1000})
	}
	for _, u := range []string{"http://s.example/1", "http://s.example/2", "http://s.example/3"} {
		_, err := w.F.Add(ctx, frontier.Entry{URL: u, NotBefore: w.Clock.Now().Add(500 * time.Hour)})
		require.NoError(t, err)
	}
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	w.Fetched(w.Next(), time.Second, frontier.Outcome{})
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	now("http://s.example/1")
	_, err := w.F.Add(ctx, frontier.Entry{URL: "http://s.example/2", Hint: true, Weight: 2, NotBefore: w.Clock.Now().Add(time.Hour)})
	require.NoError(t, err)
	_, err = w.F.Delete(ctx, scope.Host("b.a.example"))
	require.NoError(t, err)
	w.Add("http://late.example/1", "http://late.example/2")
	harness.Ended(t, w.F)
	require.NoError(t, s.Close())

	require.NoError(t, os.RemoveAll(fixture))
	require.NoError(t, os.CopyFS(filepath.Join(fixture, "store"), os.DirFS(dir)))
	require.NoError(t, os.Remove(filepath.Join(fixture, "store", "DISCARD"))) // a megabyte, made anew if it is missing
	text, kinds := readFixture(t, w.Clock.Now())
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
	s := w.OpenFolder(dir)
	kinds = storedKinds{}
	require.NoError(t, s.Recover(t.Context(), kinds))
	require.NoError(t, s.Release())
	w.Open()
	text = w.Export()
	harness.Ended(t, w.F)
	require.NoError(t, s.Close())
	return text, kinds
}

// A store and an export of the present format have what they had.
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
	w.Open()
	done := w.Imported(string(want))
	require.Zero(t, done.Bad+done.KnownURLs+done.ForeignMarks)
	require.Equal(t, harness.Timeless(string(want)), harness.Timeless(w.Export()))

	report, err := spill.Repair(t.Context(), filepath.Join(fixture, "store"), filepath.Join(t.TempDir(), "repaired"), spill.Options{})
	require.NoError(t, err)
	require.Empty(t, report.Lost)
}

// A store of an earlier format is refused, and is no damage.
func TestStoreOfAnEarlierFormat(t *testing.T) {
	const earlier = "testdata/format1/store"
	dir := filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.CopyFS(dir, os.DirFS(earlier)))
	s, err := spill.Open(dir, spill.Options{})
	require.NoError(t, err)
	_, err = frontier.Open(t.Context(), frontier.Options{Spill: s})
	require.ErrorIs(t, err, frontier.ErrVersion)
	var corrupt *frontier.CorruptError
	require.False(t, errors.As(err, &corrupt))
	require.NoError(t, s.Close())
	_, err = spill.Repair(t.Context(), earlier, filepath.Join(t.TempDir(), "repaired"), spill.Options{})
	require.ErrorIs(t, err, frontier.ErrVersion)
}
