package dump

import (
	"bytes"
	"flag"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

var makeGolden = flag.Bool("dump.golden", false, "write testdata/lines.golden anew")

var goldenLimits = quota.Limits{Waiting: 10, Served: 20, Bytes: 1 << 40, Errors: 30, Depth: 4, Period: 36 * time.Hour}

func goldenRules() []row.Rule {
	r := row.Rule{
		Delay: row.Delay{Kind: row.Factor, Factor: 2.5, Min: time.Second, Max: time.Minute}, Concurrency: 1000, Paused: 1, Held: true, BlockedUntil: 1e12,
		Priority: 7, Priorities: [row.MaxPriorities + 1]uint8{2: 3, 6: 64}, Limits: goldenLimits, HostLimits: quota.Limits{Bytes: 300},
	}
	return []row.Rule{
		r, {Delay: row.Delay{Kind: row.Fixed}}, {Delay: row.Delay{Kind: row.Fixed, Max: 1500 * time.Millisecond}}, {Paused: 2}, {HostLimits: goldenLimits},
	}
}

func goldenMark() (m storage.Mark) {
	for i := range m {
		m[i] = byte(i + 1)
	}
	return m
}

// goldenHost has every field.
var goldenHost = row.Host{
	Due: 1e12, CrawlDelay: 1500, Why: 6, Group: "g", Assigned: true, Standing: -2,
	Trouble: row.Trouble{
		Quiet: 1e12, Free: 1e12 + 1, Fails: 300, Lanes: 700, Step: 1, From: 2, Search: 3, Relapses: 4, Eased: true, Probes: 5, Usual: 6, Failure: 6,
	},
	Used: row.Usage{Since: 1e12, Served: 1, Bytes: 2, Errors: 3},
}

// Each kind of line of an export has the bytes that it had. Of each kind one has every
// member.
func TestGoldenLines(t *testing.T) {
	var b bytes.Buffer
	var l lineWriter
	put := func(line []byte) { b.Write(line) }
	put(l.header(Header{1e12, [2]uint64{1<<63 + 5, 7}, 1e12 + 5}))
	put(l.header(Header{Moment: 1e15}))
	for _, c := range []row.Crawl{{ID: 70000, CrawlSettings: row.DefaultCrawl}, {ID: 70000, CrawlSettings: row.CrawlSettings{Weight: 300, Paused: true, Limits: goldenLimits}}} {
		put(l.crawl(&c))
	}
	for _, r := range goldenRules() {
		for _, s := range []row.Scope{{}, {Name: "example.org", Domain: true, Named: true}, {Name: "z\xff", Named: true}} {
			put(l.rule(s, &r))
		}
	}
	use := row.Usage{Since: 1e12, Served: 1, Bytes: 2, Errors: 3}
	put(l.usedByCrawl(70000, &use))
	put(l.usedByScope(row.Scope{}, &use))
	put(l.usedByScope(row.Scope{Name: "example.org", Domain: true, Named: true}, &row.Usage{}))
	for _, g := range []row.Group{{Due: 1e12}, {Delay: row.Delay{Kind: row.Factor, Factor: 10, Max: time.Hour}, Concurrency: 1024, Due: 5}} {
		put(l.group("a \"group\"\n", &g))
		put(l.group("g\xff", &g))
	}
	for why := range uint8(row.Clocks) {
		put(l.host("www.example.org", &row.Host{Due: 1e12, Why: why}))
	}
	all := goldenHost
	for all.Trouble.Failure = 0; all.Trouble.Failure < row.Failures; all.Trouble.Failure++ {
		put(l.host("www.example.org", &all))
	}
	put(l.host("z\xff", &row.Host{Group: "g\xff"}))
	full := URL{
		URL: "http://www.example.org/ä\x00\\", Crawl: 70000, Priority: 7, Depth: 3, Weight: 1.5, Due: 1e12, Fails: 2, Meta: []byte("meta"),
		History: record.History{
			Visits: 5, Changes: 4, FirstVisit: 1e12, LastVisit: 1e12 + 1, LastChange: 1e12 + 2, LastModified: 1e12 + 3, State: [12]byte{11: 1},
		},
	}
	for full.Last = 0; int(full.Last) < len(Results); full.Last++ {
		put(l.url(&full))
	}
	put(l.url(&URL{URL: "http://\xff/", Weight: math.Inf(-1), Priority: 65}))
	put(l.url(&URL{URL: "http://a/", Weight: math.NaN(), Priority: 1, Due: instant.MaxMillis + 1}))
	put(l.url(&URL{URL: "http://a/done", Priority: 1, Due: instant.KeptMillis, History: record.History{Visits: 1}}))
	put(l.marks([]storage.Mark{goldenMark(), {}}))
	put(l.trailer(1000))
	const file = "testdata/lines.golden"
	if *makeGolden {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// Whatever is known of a host is in its line, and comes back from it.
func TestLinesHaveAllOfAHost(t *testing.T) {
	check := func(field string, want row.Host) {
		var w lineWriter
		text := bytes.TrimSpace(w.host("x.example", &want))
		var got line
		require.NoError(t, new(jsonl.Scanner).Line(text, &got), "%s: %s", field, text)
		h, err := got.host()
		require.NoError(t, err)
		require.Equal(t, want, h, "%s: %s", field, text)
	}
	check("all", goldenHost)
	all := reflect.ValueOf(goldenHost)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		require.False(t, all.Field(i).IsZero(), "goldenHost lacks %s", name)
		var h row.Host
		reflect.ValueOf(&h).Elem().Field(i).Set(all.Field(i))
		if name == "Assigned" {
			h.Group = "g\xff"
		}
		check(name, h)
	}
	trouble := reflect.ValueOf(goldenHost.Trouble)
	for i := range trouble.NumField() {
		name := trouble.Type().Field(i).Name
		require.False(t, trouble.Field(i).IsZero(), "goldenHost lacks %s", name)
		h := row.Host{Trouble: row.Trouble{Step: 1}}
		reflect.ValueOf(&h.Trouble).Elem().Field(i).Set(trouble.Field(i))
		check(name, h)
	}
}
