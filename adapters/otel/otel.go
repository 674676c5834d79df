// Package frontierotel publishes the figures of a frontier, and of its crawler, by OpenTelemetry:
//
//	f, err := frontier.Open(ctx, frontier.Options{})
//	reg, err := frontierotel.Register(provider.Meter("frontier"), metrics.Frontier(f, metrics.Options{}))
//
// Hooks add what only callbacks know: events, failures, and the durations of fetches and the lateness
// of contacts as histograms. Package crawler/figures has the Source of a crawler.
//
// The API has no instrument for a histogram that is read instead of recorded:
// frontier.url.wait.duration comes from Producer, which a reader of the SDK takes.
//
// docs/metrics.md lists all figures. Package metrics defines their names and values, so module
// adapters/prometheus has the same.
package frontierotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/seed-7440039f/frontier/metrics"
)

// Register makes instruments for the figures of sources. Each collection reads each source
// once, until the Registration is taken back.
func Register(meter metric.Meter, sources ...metrics.Source) (metric.Registration, error) {
	instruments := map[*metrics.Metric]metric.Float64Observable{}
	var all []metric.Observable
	var errs []error
	for _, s := range sources {
		for _, m := range s.Metrics() {
			if m.Kind == metrics.Histogram {
				continue
			}
			x, err := instrument(meter, m)
			instruments[m], all, errs = x, append(all, x), append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range sources {
			s.Read(sink{instruments, o})
		}
		return nil
	}, all...)
}

func instrument(meter metric.Meter, m *metrics.Metric) (metric.Float64Observable, error) {
	unit, help := metric.WithUnit(m.Unit), metric.WithDescription(m.Help)
	switch m.Kind {
	case metrics.Counter:
		return meter.Float64ObservableCounter(m.OTel, unit, help)
	case metrics.State:
		return meter.Float64ObservableGauge(m.OTel, unit, help)
	}
	return meter.Float64ObservableUpDownCounter(m.OTel, unit, help)
}

// sink observes the values of a Source.
type sink struct {
	instruments map[*metrics.Metric]metric.Float64Observable
	to          metric.Observer
}

// Number implements metrics.Sink.
func (s sink) Number(m *metrics.Metric, label string, v float64) {
	s.to.ObserveFloat64(s.instruments[m], v, metric.WithAttributeSet(attributes(m, label)))
}

// Histogram implements metrics.Sink: Producer has them.
func (s sink) Histogram(*metrics.Metric, string, *metrics.Distribution) {}

func attributes(m *metrics.Metric, label string) attribute.Set {
	if m.Label == "" {
		return *attribute.EmptySet()
	}
	return attribute.NewSet(attribute.String(m.Attribute(), label))
}

// Hooks returns Hooks whose counts and durations the meter has, to be set as the callbacks
// of a frontier and its fetcher.
func Hooks(meter metric.Meter) (*metrics.Hooks, metric.Registration, error) {
	r := recorder{}
	for _, m := range metrics.Recorded() {
		h, err := meter.Float64Histogram(m.OTel, metric.WithUnit(m.Unit), metric.WithDescription(m.Help), metric.WithExplicitBucketBoundaries(m.Bounds...))
		if err != nil {
			return nil, nil, err
		}
		r[m] = h
	}
	h := metrics.NewHooks(r)
	reg, err := Register(meter, h)
	return h, reg, err
}

// recorder counts durations.
type recorder map[*metrics.Metric]metric.Float64Histogram

// Record implements metrics.Recorder.
func (r recorder) Record(m *metrics.Metric, seconds float64) {
	r[m].Record(context.Background(), seconds)
}
