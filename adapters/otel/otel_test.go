package frontierotel

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/metrics"
)

// busy is a frontier in which something has happened.
func busy(t *testing.T, o frontier.Options) *frontier.Frontier {
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

// numbers are by name and attribute.
type numbers map[string]float64

func (n numbers) Number(m *metrics.Metric, label string, v float64) { n[m.OTel+" "+label] = v }

func (n numbers) Histogram(m *metrics.Metric, label string, d *metrics.Distribution) {
	n.histogram(m.OTel, label, d.Count, d.Sum, m.Bounds, d.Counts)
}

func (n numbers) histogram(name, label string, count uint64, sum float64, bounds []float64, counts []uint64) {
	n[name+" "+label], n[name+" sum "+label] = float64(count), sum
	for i, end := range bounds {
		n[fmt.Sprint(name, " ", label, " ", end)] = float64(counts[i])
	}
}

// label is the value of the only attribute of a point, whose name it checks.
func label[P interface {
	metricdata.DataPoint[float64] | metricdata.HistogramDataPoint[float64]
}](t *testing.T, p P) string {
	t.Helper()
	var value string
	switch x := any(p).(type) {
	case metricdata.DataPoint[float64]:
		for _, a := range x.Attributes.ToSlice() {
			assert.Regexp(t, `^frontier\.[a-z_]+$`, string(a.Key))
			value = a.Value.AsString()
		}
	case metricdata.HistogramDataPoint[float64]:
		for _, a := range x.Attributes.ToSlice() {
			value = a.Value.AsString()
		}
	}
	return value
}

// collected is what a reader collects.
func collected(t *testing.T, r sdk.Reader) (n numbers, by map[string]metricdata.Metrics) {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, r.Collect(t.Context(), &all))
	n, by = numbers{}, map[string]metricdata.Metrics{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			by[m.Name] = m
			switch x := m.Data.(type) {
			case metricdata.Sum[float64]:
				for _, p := range x.DataPoints {
					n[m.Name+" "+label(t, p)] = p.Value
				}
			case metricdata.Gauge[float64]:
				for _, p := range x.DataPoints {
					n[m.Name+" "+label(t, p)] = p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range x.DataPoints {
					n.histogram(m.Name, label(t, p), p.Count, p.Sum, p.Bounds, p.BucketCounts)
				}
			}
		}
	}
	return n, by
}

// OpenTelemetry gets the numbers that the Source reads, all of them, and no others.
func TestNumbersAreTheSources(t *testing.T) {
	hooks := metrics.NewHooks()
	source := metrics.Frontier(busy(t, frontier.Options{OnEvent: hooks.Event}), metrics.Options{MemoryBudget: 1 << 30, Disk: func() int64 { return 5 }})
	reader := sdk.NewManualReader(sdk.WithProducer(Producer(source)))
	reg, err := Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), source, hooks)
	require.NoError(t, err)
	want := numbers{}
	source.Read(want)
	hooks.Read(want)
	require.Greater(t, len(want), 100)
	got, by := collected(t, reader)
	assert.Equal(t, want, got)

	for _, m := range append(source.Metrics(), hooks.Metrics()...) {
		x, ok := by[m.OTel]
		if !ok {
			continue // the options do not have what it needs
		}
		assert.Equal(t, []string{m.Unit, m.Help}, []string{x.Unit, x.Description}, m.OTel)
		switch d := x.Data.(type) {
		case metricdata.Sum[float64]:
			assert.Equal(t, m.Kind == metrics.Counter, d.IsMonotonic, m.OTel)
		case metricdata.Gauge[float64]:
			assert.Equal(t, metrics.State, m.Kind, m.OTel)
		case metricdata.Histogram[float64]:
			assert.Equal(t, metrics.Histogram, m.Kind, m.OTel)
		}
	}

	require.NoError(t, reg.Unregister())
	got, _ = collected(t, reader)
	assert.NotContains(t, got, "frontier.lease.granted ")
}

// Durations that Hooks get are histograms of the SDK.
func TestHooks(t *testing.T) {
	reader := sdk.NewManualReader()
	h, reg, err := Hooks(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	require.NoError(t, err)
	h.Fetch(200, 30*time.Millisecond, 12)
	h.Fetch(500, 8*time.Second, 1)
	now := time.Now()
	h.Done(frontier.Lease{LeasedAt: now, Due: now.Add(-time.Minute)}, frontier.Outcome{})
	got, _ := collected(t, reader)
	assert.EqualValues(t, 13, got["frontier.fetch.io "])
	assert.EqualValues(t, 1, got["frontier.fetch.count 5xx"])
	assert.EqualValues(t, 2, got["frontier.fetch.duration "])
	assert.EqualValues(t, 1, got["frontier.fetch.duration  0.05"])
	assert.EqualValues(t, 1, got["frontier.fetch.duration  10"])
	assert.EqualValues(t, 60, got["frontier.contact.lateness sum "])
	require.NoError(t, reg.Unregister())
}

// One collection reads a source once.
func TestOneReadACollection(t *testing.T) {
	reader := sdk.NewManualReader()
	s := &counted{Source: metrics.NewHooks()}
	_, err := Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"), s)
	require.NoError(t, err)
	collected(t, reader)
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
