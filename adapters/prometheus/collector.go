// Package frontierprometheus publishes the figures of a frontier, and of its crawler, to Prometheus:
//
//	f, err := frontier.Open(ctx, frontier.Options{})
//	prometheus.MustRegister(frontierprometheus.Collector(metrics.Frontier(f, metrics.Options{})))
//
// Hooks add what only callbacks know: events, failures, and the durations of fetches and
// the lateness of contacts, as histograms both native and with buckets. Package
// crawler/figures has the Source of a crawler. docs/metrics.md lists all figures; package metrics defines
// their names and values, so module adapters/otel has the same.
package frontierprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-7440039f/frontier/metrics"
)

// Collector collects the figures of sources. Each collection reads each of them once.
func Collector(sources ...metrics.Source) prometheus.Collector {
	c := &collector{sources: sources, descs: map[*metrics.Metric]*prometheus.Desc{}}
	for _, s := range sources {
		for _, m := range s.Metrics() {
			c.descs[m] = prometheus.NewDesc(m.Name, m.Help, labels(m), nil)
		}
	}
	return c
}

type collector struct {
	sources []metrics.Source
	descs   map[*metrics.Metric]*prometheus.Desc
}

func labels(m *metrics.Metric) []string {
	if m.Label == "" {
		return nil
	}
	return []string{m.Label}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.sources {
		s.Read(sink{c, to})
	}
}

// sink passes the values of a Source on.
type sink struct {
	*collector
	to chan<- prometheus.Metric
}

// Number implements metrics.Sink.
func (s sink) Number(m *metrics.Metric, label string, v float64) {
	kind := prometheus.GaugeValue
	if m.Kind == metrics.Counter {
		kind = prometheus.CounterValue
	}
	s.to <- prometheus.MustNewConstMetric(s.descs[m], kind, v, values(m, label)...)
}

// Histogram implements metrics.Sink. The buckets are cumulated, as Prometheus has them.
func (s sink) Histogram(m *metrics.Metric, label string, d *metrics.Distribution) {
	buckets, sum := make(map[float64]uint64, len(m.Bounds)), uint64(0)
	for i, end := range m.Bounds {
		sum += d.Counts[i]
		buckets[end] = sum
	}
	s.to <- prometheus.MustNewConstHistogram(s.descs[m], d.Count, d.Sum, buckets, values(m, label)...)
}

func values(m *metrics.Metric, label string) []string {
	if m.Label == "" {
		return nil
	}
	return []string{label}
}
