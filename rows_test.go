// This file tests that rows and exports keep every field, and fixes the bytes of what
// is stored: a changed byte is a changed format.

package frontier

import (
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hint"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/limit"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// What is kept of a host's failures is in its row.
func TestRowsHaveAllOfATrouble(t *testing.T) {
	notStored := map[string]bool{
		"Raised": true, "Counted": true, "good": true, "run": true, "short": true, // of leases that are out, or soon learned again
		"Listed": true, "Kept": true, // of what is under way
	}
	typ := reflect.TypeOf(trouble.State{})
	n := 0
	for i := range typ.NumField() {
		n += btoi(!notStored[typ.Field(i).Name])
	}
	require.Equal(t, reflect.TypeOf(row.Trouble{}).NumField(), n, "a new field must be stored, and exported, too")
}

// Rows and lines know all kinds of clocks, failures and results by their numbers.
func TestKindsInRows(t *testing.T) {
	require.EqualValues(t, row.Clocks, mercator.Whys)
	require.EqualValues(t, row.Failures, failures)
	var names []string
	for k := Failure(0); int(k) < failures; k++ {
		names = append(names, k.String())
	}
	require.Equal(t, names, dump.Failures[:])
	names = nil
	for r := Visited; r <= Denied; r++ {
		names = append(names, r.String())
	}
	require.Equal(t, names, dump.Results[:])
}

var makeGolden = flag.Bool("frontier.golden", false, "write testdata/*.golden anew")

// requireGolden compares text with a file in testdata.
func requireGolden(t *testing.T, name, text string) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	if *makeGolden {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func goldenMark() (m storage.Mark) {
	for i := range m {
		m[i] = byte(i + 1)
	}
	return m
}

var goldenLimits = scope.Limits{Waiting: 10, Served: 20, Bytes: 1 << 40, Errors: 30, Depth: 4, Period: 36 * time.Hour}

func goldenRules() []Rule {
	r := Rule{Delay: FactorDelay(2.5, time.Second, time.Minute), Concurrency: 1000, Paused: scope.On, Held: true, BlockedUntil: time.UnixMilli(1e12), Priority: 7, Limits: goldenLimits, HostLimits: scope.Limits{Bytes: 300}}
	r.Priorities[2], r.Priorities[6] = 3, 64
	return []Rule{r, {Delay: FixedDelay(0)}, {Delay: FixedDelay(1500 * time.Millisecond)}, {Paused: scope.Off}, {HostLimits: goldenLimits}}
}

// Each kind of row has the bytes that it had.
func TestGoldenRows(t *testing.T) {
	var b strings.Builder
	put := func(kind string, r storage.Row) {
		fmt.Fprintf(&b, "%s %s %s\n", kind, hex.EncodeToString([]byte(r.Key)), hex.EncodeToString(r.Value))
	}
	for i, r := range goldenRules() {
		for _, s := range []scope.Scope{scope.All(), scope.Domain("example.org"), scope.Host("www.example.org"), scope.Host("10.0.0.1")} {
			stored := r.stored()
			stored.Ended = int64(btoi(i == 4)) * 1e12
			put("rule", stored.Row(s.Hosts().Key()))
		}
	}
	group := func(s GroupSettings, due int64) {
		g := s.stored()
		g.Due = due
		put("group", g.Row("group \xff"))
	}
	group(GroupSettings{}, 1e12)
	group(GroupSettings{Delay: FactorDelay(10, 0, time.Hour), Concurrency: 1024}, 5)
	group(GroupSettings{Concurrency: 2}, 0)
	group(GroupSettings{}, 0)
	for _, c := range []row.CrawlSettings{{Weight: 1}, {Weight: 300, Paused: true}, {Weight: 1, Limits: quota.Limits(goldenLimits)}} {
		put("crawl", (&row.Crawl{ID: 70000, CrawlSettings: c}).Row())
	}
	put("usage", (&row.Usage{Since: 1e12, Served: 1, Bytes: math.MaxInt64 - 1, Errors: 3}).Row(limit.OfCrawl(70000).RowKey()))
	put("usage", (&row.Usage{Since: 5, Bytes: 200}).Row(subjectOf(scope.Domain("example.org")).RowKey()))
	for _, d := range []row.Deletion{{Seq: 1, Block: 300}, {Seq: 1 << 40, Scope: scope.Domain("example.org").Hosts()}, {Seq: 3, Scope: scope.Host("www.example.org").Hosts(), Block: 1<<32 - 1}, {Seq: 4, OfCrawl: true, Crawl: 70000}} {
		put("deletion", d.Row())
	}
	put("count", (&row.Count{Seq: 1 << 40, Total: 300, Finished: 7}).Row(row.CountOf(70000, "www.example.org")))
	put("count", (&row.Count{Seq: 5}).Row(row.CountOf(0, "10.0.0.1")))
	put("count sum", (&row.CountSum{Total: 300, Finished: 7, Hosts: 5, Active: 2}).Row(70000))
	put("counted", row.Counted(true))
	put("outdated", (&row.Outdated{Mark: goldenMark(), Seq: 1 << 40, Block: 300}).Row())
	hinted := hint.Hint{Depth: 3, Weight: 1.5, Meta: []byte("meta"), NotBefore: time.UnixMilli(1e12)}
	put("hint", hinted.Row(goldenMark()))
	put("hint", new(hint.Hint).Row(goldenMark()))
	put("meta", row.Meta{Key: [2]uint64{1<<63 + 5, 7}, Epoch: 300, Clean: true, Seq: 1 << 40, Gen: 200, Held: 1e12, Hosts: 1 << 63}.Row())
	put("meta", row.Meta{}.Row())
	goldenHosts(t, put)
	requireGolden(t, "rows", b.String())
}

// goldenHosts are rows of hosts as a frontier has them in memory. They have times of
// the wall clock.
func goldenHosts(t *testing.T, put func(string, storage.Row)) {
	f, err := Open(t.Context(), Options{Clock: standingClock{}})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.NoError(t, f.UpdateRule(scope.All(), func(r *Rule) { r.HostLimits = goldenLimits }))
	_, err = f.Add(t.Context(), Entry{URL: "http://www.example.org/"})
	require.NoError(t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.core
	id := c.Lookup(f.core.HashOf("www.example.org"), "www.example.org")
	host := c.Hosts.At(id)
	due := int64(time.Hour)
	put("host", f.core.HostRow(id, due, mercator.WhyRetryAfter))
	host.CrawlDelay = 1500
	put("host", f.core.HostRow(id, due, mercator.WhyCrawlDelay))
	c.Detach(id)
	c.MoveHost(id, c.GroupOf("group \xff"), 0)
	c.Detach(id)
	host.Set(mercator.Assigned)
	c.SetTrouble(id, trouble.State{
		Quiet: int64(time.Second), Free: int64(time.Minute), Fails: 300, Lanes: 700, Step: 1, From: 2, Search: 3, Relapses: 4, Eased: true,
		Probes: 5, Usual: 6, Kind: uint8(FailureTooMany),
	})
	put("host", f.core.HostRow(id, due, mercator.WhyQuarantine))
	c.Book(f.token).RestoreHost(id, row.Usage{Since: instant.Millis(f.clock.Day(c.Date(0))), Served: 200, Bytes: 1 << 40, Errors: 3}, c.Date(0))
	host.Set(mercator.Counted)
	put("host", f.core.HostRow(id, due, mercator.WhyQuarantine))
	c.Limits.Forget(id)
	host.Clear(mercator.Counted)
	c.SetTrouble(id, trouble.State{})
	c.Settle(id, f.last)
}

// standingClock always shows the same time, and never rings.
type standingClock struct{}

func (standingClock) Now() time.Time { return time.UnixMilli(1_700_000_000_000) }

func (standingClock) Elapsed() time.Duration { return 0 }

func (standingClock) AfterFunc(time.Duration, func()) Timer { return standingTimer{} }

type standingTimer struct{}

func (standingTimer) Reset(time.Duration) bool { return true }

func (standingTimer) Stop() bool { return true }
