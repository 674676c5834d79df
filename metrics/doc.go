// Package metrics has the figures of a frontier for monitoring: their names, types, units
// and meaning, and their values. Modules adapters/prometheus and adapters/otel publish
// them; both have them from here, so they publish the same numbers.
//
// A Source reads its figures when it is asked. Frontier is the Source of a frontier's
// Stats. Hooks is the Source of what only callbacks know: events, failures, contacts and
// fetches. Package crawler/figures has the Source of a crawler.
//
// No label of a figure is a host or a URL, so the number of time series is bounded
// whatever is crawled: see docs/metrics.md.
package metrics

// Kind is the type of a Metric.
type Kind uint8

const (
	// Counter is a total since the process began; it only grows.
	Counter Kind = iota + 1
	// Level is a number of things that rises and falls. Levels of several processes add up.
	Level
	// State is a number that does not add up, such as 1 for yes and 0 for no.
	State
	// Histogram is a distribution of durations in seconds.
	Histogram
)

// Metric describes a figure.
type Metric struct {
	Name  string // for Prometheus
	OTel  string // for OpenTelemetry
	Kind  Kind
	Unit  string // of UCUM, as OpenTelemetry writes it
	Label string // the name of its only label; empty: it has none
	Help  string
	// Bounds are the upper ends of a histogram's buckets, in seconds.
	Bounds []float64
}

// Attribute is the name of the label for OpenTelemetry.
func (m *Metric) Attribute() string { return "frontier." + m.Label }

// Sink takes the values that a Source reads. label is the value of the Metric's label,
// empty if it has none.
type Sink interface {
	Number(m *Metric, label string, v float64)
	Histogram(m *Metric, label string, d *Distribution)
}

// Distribution is the value of a histogram.
type Distribution struct {
	Count  uint64
	Sum    float64  // seconds
	Counts []uint64 // of the buckets that Metric.Bounds limits, not cumulated; the last has what is longer
}

// Source has figures. Its methods are safe for concurrent use.
type Source interface {
	// Metrics returns what Read reports. The list does not change.
	Metrics() []*Metric
	// Read reports the present values.
	Read(Sink)
}
