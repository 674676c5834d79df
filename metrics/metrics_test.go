package metrics

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read has what a Source reported, by name and label.
type read map[string]float64

func key(m *Metric, label string) string {
	if m.Label == "" {
		return m.Name
	}
	return fmt.Sprintf("%s{%s=%q}", m.Name, m.Label, label)
}

func (r read) Number(m *Metric, label string, v float64) { r[key(m, label)] = v }

func (r read) Histogram(m *Metric, label string, d *Distribution) {
	r[key(m, label)+" count"], r[key(m, label)+" sum"] = float64(d.Count), d.Sum
	for i, n := range d.Counts {
		r[key(m, label)+" "+strconv.Itoa(i)] = float64(n)
	}
}

// recorded are the durations that Hooks pass on.
type recorded map[*Metric][]float64

func (r recorded) Record(m *Metric, seconds float64) { r[m] = append(r[m], seconds) }

func open(t testing.TB, o frontier.Options) *frontier.Frontier {
	t.Helper()
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// Names follow the conventions of both systems.
func TestNames(t *testing.T) {
	all := append(Frontier(open(t, frontier.Options{}), Options{}).Metrics(), NewHooks().Metrics()...)
	all = append(all, Recorded()...)
	names := map[string]bool{}
	units := map[string]string{"By": "_bytes", "s": "_seconds"}
	for _, m := range all {
		assert.Regexp(t, `^frontier_[a-z_]+$`, m.Name)
		assert.Regexp(t, `^frontier(\.[a-z_]+)+$`, m.OTel)
		assert.False(t, names[m.Name] || names[m.OTel], "%s is there twice", m.Name)
		names[m.Name], names[m.OTel] = true, true
		assert.Equal(t, m.Kind == Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		assert.True(t, strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), units[m.Unit]), m.Name)
		assert.Regexp(t, `^([{][a-z]+[}]|s|By|1)$`, m.Unit, m.Name)
		assert.Regexp(t, `^[A-Z1].*\.$`, m.Help, m.Name)
		assert.Equal(t, m.Kind == Histogram, len(m.Bounds) > 0, m.Name)
		assert.True(t, slices.IsSorted(m.Bounds), m.Name)
	}
}

// Everything in Stats is a figure; a field that is added later must become one.
func TestStatsAreFigures(t *testing.T) {
	without := map[string]string{"Rates": "rate() of the counters is the same", "Waiting": "the sum over the priorities", "Waits": "the sum over the priorities"}
	var s frontier.Stats
	v, unique, wanted := reflect.ValueOf(&s).Elem(), int64(1000), map[int64]string{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if without[name] != "" {
			continue
		}
		switch x := v.Field(i); x.Interface().(type) {
		case int64:
			unique++
			x.SetInt(unique)
			wanted[unique] = name
		case []int64, [8]int64:
			if x.Kind() == reflect.Slice {
				x.Set(reflect.ValueOf(make([]int64, 8)))
			}
			for j := range x.Len() {
				unique++
				x.Index(j).SetInt(unique)
				wanted[unique] = fmt.Sprint(name, j)
			}
		case []frontier.Histogram:
			unique++
			x.Set(reflect.ValueOf([]frontier.Histogram{{Count: unique}}))
			wanted[unique] = name
		default:
			t.Fatalf("Stats.%s has no figure", name)
		}
	}
	got := read{}
	Frontier(open(t, frontier.Options{}), Options{}).ReadStats(&s, got)
	for _, n := range got {
		delete(wanted, int64(n))
	}
	assert.Empty(t, wanted)
}

// The figures of a frontier at work are those of its Stats.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		f := open(t, frontier.Options{Priorities: 3})
		for i := range 40 {
			_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%8, i), Depth: i % 4, Crawl: uint32(i % 2)})
			require.NoError(t, err)
		}
		_, err := f.CrawlNow(ctx, frontier.Entry{URL: "http://now.example/"}, frontier.Entry{URL: "http://now.example/2"})
		require.NoError(t, err)
		for i := range 20 {
			l, err := f.Next(ctx)
			require.NoError(t, err)
			if i%3 == 0 {
				require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer}))
			} else {
				require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Changed}))
			}
		}
		_, err = f.Next(ctx)
		require.NoError(t, err)

		got, s := read{}, f.Stats()
		source := Frontier(f, Options{MemoryBudget: 1 << 20, Dir: t.TempDir(), Disk: func() int64 { return 77 }})
		source.Read(got)
		var waiting, counted, sum float64
		for name, n := range got {
			switch {
			case strings.HasPrefix(name, "frontier_urls_waiting{"):
				waiting += n
			case strings.HasPrefix(name, "frontier_url_wait_seconds{") && strings.HasSuffix(name, "count"):
				counted += n
			case strings.HasPrefix(name, "frontier_url_wait_seconds{") && strings.HasSuffix(name, "sum"):
				sum += n
			}
			assert.False(t, n < 0 || math.IsNaN(n), "%s is %v", name, n)
		}
		assert.EqualValues(t, s.Waiting, waiting)
		assert.EqualValues(t, s.Waits.Count, counted)
		assert.InDelta(t, s.Waits.Sum.Seconds(), sum, 1e-6)
		assert.EqualValues(t, 2, got[`frontier_url_wait_seconds{priority="immediate"} count`]+got[`frontier_urls_waiting{priority="immediate"}`])
		assert.EqualValues(t, 42, got["frontier_urls_added_total"])
		assert.EqualValues(t, 21, got["frontier_leases_total"])
		assert.EqualValues(t, 1, got["frontier_leases_out"])
		assert.EqualValues(t, 7, got[`frontier_outcomes_total{result="failed"}`])
		assert.EqualValues(t, 13, got[`frontier_outcomes_total{result="changed"}`])
		assert.EqualValues(t, 0, got[`frontier_outcomes_total{result="put_off"}`])
		assert.EqualValues(t, 2, got["frontier_crawls"])
		assert.EqualValues(t, 21, got[`frontier_crawl_leases_total{crawl="0"}`]+got[`frontier_crawl_leases_total{crawl="1"}`])
		assert.EqualValues(t, 20, got[`frontier_crawl_urls_added_total{crawl="1"}`])
		assert.EqualValues(t, 1<<20, got["frontier_memory_budget_bytes"])
		assert.EqualValues(t, 77, got["frontier_disk_bytes"])
		assert.Positive(t, got["frontier_disk_free_bytes"])

		listed := map[string]bool{}
		for _, m := range source.Metrics() {
			listed[m.Name] = true
		}
		for name := range got {
			assert.True(t, listed[regexp.MustCompile(`^\w+`).FindString(name)], "Metrics lacks %s", name)
		}
	})
}

// A bucket ends where frontier.Histogram's does.
func TestWaitBounds(t *testing.T) {
	for i, end := range waitBounds() {
		assert.Equal(t, (time.Millisecond << i).Seconds(), end)
	}
}

// The number of time series has a bound, whatever the hosts and crawls.
func TestSeriesAreBounded(t *testing.T) {
	ctx := context.Background()
	f := open(t, frontier.Options{})
	count := func() int {
		got := read{}
		Frontier(f, Options{}).Read(got)
		return len(got)
	}
	few := count()
	for i := range 300 {
		_, err := f.Add(ctx, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i), Crawl: uint32(i)})
		require.NoError(t, err)
	}
	assert.LessOrEqual(t, count(), few+4*maxCrawls)
	got := read{}
	Frontier(f, Options{}).Read(got)
	assert.EqualValues(t, 300, got["frontier_crawls"])
	assert.Contains(t, got, `frontier_crawl_leases_total{crawl="255"}`)
	assert.NotContains(t, got, `frontier_crawl_leases_total{crawl="256"}`)
}

func TestHooks(t *testing.T) {
	durations := recorded{}
	h := NewHooks(durations)
	now := time.Now()
	lease := frontier.Lease{LeasedAt: now, Due: now.Add(-2 * time.Second)}
	h.Done(lease, frontier.Outcome{})
	h.Done(lease, frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany})
	h.Done(lease, frontier.Outcome{Result: frontier.Denied})
	h.Done(frontier.Lease{LeasedAt: now}, frontier.Outcome{})
	h.Done(frontier.Lease{LeasedAt: now, Due: now.Add(time.Millisecond)}, frontier.Outcome{})
	h.Fetch(200, time.Second, 100)
	h.Fetch(503, time.Minute, 20)
	h.Fetch(0, time.Hour, 0)
	h.Fetch(999, 0, 0)
	h.Event(event.Event{Kind: event.HostBlocked})
	h.Event(event.Event{Kind: event.StoreError, Reason: "commit"})
	h.Event(event.Event{Kind: event.Kind(200)})
	assert.Equal(t, recorded{&lateness: {2, 2}, &fetchTime: {1, 60, 3600, 0}}, durations)

	got := read{}
	h.Read(got)
	for name, want := range map[string]float64{
		"frontier_contacts_early_total": 1, `frontier_failures_total{failure="too_many_requests"}`: 1, `frontier_failures_total{failure="other"}`: 0,
		`frontier_fetches_total{status_class="2xx"}`: 1, `frontier_fetches_total{status_class="5xx"}`: 1, `frontier_fetches_total{status_class="none"}`: 2, `frontier_fetches_total{status_class="1xx"}`: 0,
		"frontier_fetched_bytes_total": 120, `frontier_events_total{kind="host_blocked"}`: 1, `frontier_events_total{kind="store_error"}`: 1,
		`frontier_events_total{kind="store_works_again"}`: 0, "frontier_store_failing": 1,
	} {
		if assert.Contains(t, got, name) {
			assert.Equal(t, want, got[name], name)
		}
	}
	h.Event(event.Event{Kind: event.StoreWorks})
	h.Read(got)
	assert.Zero(t, got["frontier_store_failing"])
}

// While a store fails its figure says so, and no longer.
func TestStoreFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHooks()
		w := harness.NewStoredWorld(t, frontier.Options{OnEvent: h.Event}, spill.Options{})
		add := func() (failing float64, err error) {
			_, err = w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%v", w.Clock.Now().UnixNano())})
			w.Clock.Advance(time.Second)
			synctest.Wait()
			got := read{}
			h.Read(got)
			return got["frontier_store_failing"], err
		}
		w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
		failing, err := add()
		require.ErrorIs(t, err, harness.ErrDisk)
		assert.EqualValues(t, 1, failing)
		for range 10 {
			failing, err = add()
			require.NoError(t, err)
		}
		assert.Zero(t, failing)
	})
}

// How much does one look at the figures of many hosts cost?
func BenchmarkRead(b *testing.B) {
	for _, hosts := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			f := open(b, frontier.Options{MemoryBudget: 4 << 30})
			batch := make([]frontier.Entry, 0, 1000)
			for i := range hosts {
				if batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)}); len(batch) == cap(batch) {
					_, err := f.Add(context.Background(), batch...)
					require.NoError(b, err)
					batch = batch[:0]
				}
			}
			require.EqualValues(b, hosts, f.Stats().Hosts)
			s, got := Frontier(f, Options{}), read{}
			for b.Loop() {
				s.Read(got)
			}
		})
	}
}
