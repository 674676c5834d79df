package frontierprometheus

import (
	"fmt"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/metrics"
)

// busy is a frontier in which something has happened.
func busy(t testing.TB, o frontier.Options) *frontier.Frontier {
	t.Helper()
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	for i := range 30 {
		_, err := f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i), Depth: i % 5, Crawl: uint32(i % 3)})
		require.NoError(t, err)
	}
	for i := range 10 {
		l, err := f.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Result(i % 4)}))
	}
	return f
}

// gathered is what a registry that looks at everything gathers.
func gathered(t *testing.T, cs ...prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	for _, c := range cs {
		require.NoError(t, r.Register(c))
	}
	all, err := r.Gather()
	require.NoError(t, err)
	return all
}

// numbers are by name and label; the buckets of a histogram are not cumulated.
type numbers map[string]float64

func (n numbers) Number(m *metrics.Metric, label string, v float64) { n[m.Name+" "+label] = v }

func (n numbers) Histogram(m *metrics.Metric, label string, d *metrics.Distribution) {
	n[m.Name+" "+label], n[m.Name+" sum "+label] = float64(d.Count), d.Sum
	for i, end := range m.Bounds {
		n[fmt.Sprint(m.Name, " ", label, " ", end)] = float64(d.Counts[i])
	}
}

func published(all []*dto.MetricFamily) numbers {
	n := numbers{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label = l.GetValue()
			}
			if h := m.GetHistogram(); h != nil {
				n[f.GetName()+" "+label], n[f.GetName()+" sum "+label] = float64(h.GetSampleCount()), h.GetSampleSum()
				below := uint64(0)
				for _, b := range h.GetBucket() {
					n[fmt.Sprint(f.GetName(), " ", label, " ", b.GetUpperBound())] = float64(b.GetCumulativeCount() - below)
					below = b.GetCumulativeCount()
				}
				continue
			}
			n[f.GetName()+" "+label] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return n
}

// Prometheus gets the numbers that the Source reads, all of them, and no others.
func TestNumbersAreTheSources(t *testing.T) {
	h := NewHooks()
	f := busy(t, frontier.Options{OnEvent: h.Event})
	source := metrics.Frontier(f, metrics.Options{MemoryBudget: 1 << 30, Disk: func() int64 { return 5 }})
	h.Fetch(200, time.Second, 10)
	want := numbers{}
	source.Read(want)
	h.Read(want)
	got := published(gathered(t, Collector(source, h.Hooks)))
	require.Greater(t, len(want), 100)
	assert.Equal(t, want, got)
}

// Each figure has its type.
func TestTypes(t *testing.T) {
	h := NewHooks()
	source := metrics.Frontier(busy(t, frontier.Options{}), metrics.Options{})
	types := map[string]dto.MetricType{}
	for _, f := range gathered(t, h, Collector(source)) {
		types[f.GetName()] = f.GetType()
	}
	for _, m := range append(append(source.Metrics(), h.Metrics()...), metrics.Recorded()...) {
		got, ok := types[m.Name]
		if !ok {
			continue // the options do not have what it needs
		}
		want := dto.MetricType_GAUGE
		switch m.Kind {
		case metrics.Counter:
			want = dto.MetricType_COUNTER
		case metrics.Histogram:
			want = dto.MetricType_HISTOGRAM
		}
		assert.Equal(t, want, got, m.Name)
	}
}

// Durations are in buckets of seconds, and in those of a native histogram.
func TestDurations(t *testing.T) {
	h := NewHooks()
	h.Fetch(200, 30*time.Millisecond, 0)
	h.Fetch(200, 8*time.Second, 0)
	now := time.Now()
	h.Done(frontier.Lease{LeasedAt: now, Due: now.Add(-time.Minute)}, frontier.Outcome{})
	for _, f := range gathered(t, h) {
		x := f.GetMetric()[0].GetHistogram()
		switch f.GetName() {
		case "frontier_fetch_duration_seconds":
			assert.EqualValues(t, 2, x.GetSampleCount())
			assert.InDelta(t, 8.03, x.GetSampleSum(), 1e-9)
			in := map[float64]uint64{}
			for _, b := range x.GetBucket() {
				in[b.GetUpperBound()] = b.GetCumulativeCount()
			}
			assert.Equal(t, []uint64{0, 1, 1, 2}, []uint64{in[0.025], in[0.05], in[7.5], in[10]})
			assert.Less(t, math.Pow(2, math.Pow(2, -float64(x.GetSchema()))), nativeFactor)
			assert.Len(t, x.GetPositiveDelta(), 2, "native buckets")
		case "frontier_contact_lateness_seconds":
			assert.EqualValues(t, 1, x.GetSampleCount())
			assert.EqualValues(t, 60, x.GetSampleSum())
		}
	}
}

// One collection reads a source once.
func TestOneReadACollection(t *testing.T) {
	s := &counted{Source: metrics.NewHooks()}
	gathered(t, Collector(s))
	assert.Equal(t, 1, s.reads)
}

type counted struct {
	metrics.Source
	reads int
}

func (c *counted) Read(to metrics.Sink) {
	c.reads++
	c.Source.Read(to)
}

// How much CPU does a scrape cost, from the request to the text of the answer?
func BenchmarkScrape(b *testing.B) {
	for _, hosts := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			f := busy(b, frontier.Options{MemoryBudget: 4 << 30})
			for i := 0; i < hosts; i += 1000 {
				var batch []frontier.Entry
				for j := range 1000 {
					batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://n%d.example/", i+j)})
				}
				_, err := f.Add(b.Context(), batch...)
				require.NoError(b, err)
			}
			r := prometheus.NewRegistry()
			r.MustRegister(NewHooks(), Collector(metrics.Frontier(f, metrics.Options{})))
			h := promhttp.HandlerFor(r, promhttp.HandlerOpts{})
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
				require.Equal(b, 200, w.Code)
			}
		})
	}
}
