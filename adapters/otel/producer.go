// This file produces the histograms that a Source reads.

package frontierotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-7440039f/frontier/metrics"
)

// Producer returns a Producer of the histograms of sources, for a reader's WithProducer.
func Producer(sources ...metrics.Source) sdk.Producer {
	return &producer{sources: sources, began: time.Now()}
}

type producer struct {
	sources []metrics.Source
	began   time.Time
}

// Produce implements sdk.Producer.
func (p *producer) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	s := histograms{began: p.began, now: time.Now(), by: map[*metrics.Metric]*metricdata.Histogram[float64]{}}
	for _, x := range p.sources {
		x.Read(&s)
	}
	return []metricdata.ScopeMetrics{{Scope: instrumentation.Scope{Name: "github.com/seed-7440039f/frontier/adapters/otel"}, Metrics: s.metrics()}}, nil
}

// histograms collects the histograms that a Source reads.
type histograms struct {
	began, now time.Time
	order      []*metrics.Metric
	by         map[*metrics.Metric]*metricdata.Histogram[float64]
}

// Number implements metrics.Sink: Register observes them.
func (*histograms) Number(*metrics.Metric, string, float64) {}

// Histogram implements metrics.Sink.
func (s *histograms) Histogram(m *metrics.Metric, label string, d *metrics.Distribution) {
	h := s.by[m]
	if h == nil {
		h = &metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		s.order, s.by[m] = append(s.order, m), h
	}
	h.DataPoints = append(h.DataPoints, metricdata.HistogramDataPoint[float64]{
		Attributes: attributes(m, label), StartTime: s.began, Time: s.now,
		Count: d.Count, Sum: d.Sum, Bounds: m.Bounds, BucketCounts: d.Counts,
	})
}

func (s *histograms) metrics() (out []metricdata.Metrics) {
	for _, m := range s.order {
		out = append(out, metricdata.Metrics{Name: m.OTel, Description: m.Help, Unit: m.Unit, Data: *s.by[m]})
	}
	return out
}
