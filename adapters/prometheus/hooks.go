// This file collects what callbacks report.

package frontierprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-7440039f/frontier/metrics"
)

// nativeFactor is how much wider a bucket of a native histogram is than the one below it.
const nativeFactor = 1.1

// Hooks are metrics.Hooks whose counts and durations are collected.
type Hooks struct {
	*metrics.Hooks
	prometheus.Collector
}

// NewHooks returns Hooks without counts. Set them as callbacks of a frontier and its fetcher, and
// register them.
func NewHooks() *Hooks {
	r := recorder{}
	for _, m := range metrics.Recorded() {
		r[m] = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: m.Name, Help: m.Help, Buckets: m.Bounds,
			NativeHistogramBucketFactor: nativeFactor, NativeHistogramMaxBucketNumber: 160,
		})
	}
	h := metrics.NewHooks(r)
	return &Hooks{h, both{Collector(h), r}}
}

// recorder counts durations.
type recorder map[*metrics.Metric]prometheus.Histogram

// Record implements metrics.Recorder.
func (r recorder) Record(m *metrics.Metric, seconds float64) { r[m].Observe(seconds) }

// both are the counts and the durations of Hooks.
type both struct {
	prometheus.Collector
	durations recorder
}

// Describe implements prometheus.Collector.
func (b both) Describe(to chan<- *prometheus.Desc) {
	b.Collector.Describe(to)
	for _, h := range b.durations {
		h.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (b both) Collect(to chan<- prometheus.Metric) {
	b.Collector.Collect(to)
	for _, h := range b.durations {
		h.Collect(to)
	}
}
