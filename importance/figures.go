// This file has the figures of an Estimator for monitoring.

package importance

import "github.com/seed-7440039f/frontier/metrics"

// figure is a figure of Counts.
type figure struct {
	metrics.Metric
	of func(c *Counts) float64
}

var (
	found   = figure{metrics.Metric{Name: "frontier_importance_links_total", OTel: "frontier.importance.link", Kind: metrics.Counter, Unit: "{link}", Help: "Links that were found to known URLs."}, func(c *Counts) float64 { return float64(c.Links) }}
	noted   = figure{metrics.Metric{Name: "frontier_importance_notes_total", OTel: "frontier.importance.note", Kind: metrics.Counter, Unit: "{link}", Help: "Part of these links: they lifted a URL to another level."}, func(c *Counts) float64 { return float64(c.Noted) }}
	covered = figure{metrics.Metric{Name: "frontier_importance_covered", OTel: "frontier.importance.covered", Kind: metrics.State, Unit: "1", Help: "With Trust: the part of the known importance that was fetched."}, func(c *Counts) float64 { return c.Covered }}
)

type source struct {
	x   *Estimator
	all []*figure
}

// Figures returns the Source of an Estimator's Counts.
func Figures(x *Estimator) metrics.Source {
	all := []*figure{&found, &noted}
	if x.opts.Score == Trust {
		all = append(all, &covered)
	}
	return source{x, all}
}

// Metrics implements metrics.Source.
func (s source) Metrics() (list []*metrics.Metric) {
	for _, f := range s.all {
		list = append(list, &f.Metric)
	}
	return list
}

// Read implements metrics.Source.
func (s source) Read(to metrics.Sink) {
	c := s.x.Counts()
	for _, f := range s.all {
		to.Number(&f.Metric, "", f.of(&c))
	}
}
