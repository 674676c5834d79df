// Package figures has the figures of a crawler for monitoring, in the terms of package
// metrics:
//
//	hooks := frontierprometheus.NewHooks() // of module adapters/prometheus
//	f, err := frontier.Open(ctx, frontier.Options{OnEvent: hooks.Event})
//	c, err := crawler.New(f, crawler.Options{OnDone: hooks.Done, OnFetch: figures.OnFetch(hooks.Hooks)})
//	registry.MustRegister(hooks, frontierprometheus.Collector(figures.Of(c, f, metrics.Options{})))
package figures

import (
	"maps"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/metrics"
)

// maxRules is how many rules of filters have a figure. A filter of the user's may name any
// number.
const maxRules = 64

// number is a figure of Progress.
type number struct {
	*metrics.Metric
	label string
	of    func(p *crawler.Progress) float64
}

func metric(kind metrics.Kind, name, otel, unit, label, help string) *metrics.Metric {
	return &metrics.Metric{Name: "frontier_crawler_" + name, OTel: "frontier.crawler." + otel, Kind: kind, Unit: unit, Label: label, Help: help}
}

var (
	answers = metric(metrics.Counter, "answers_total", "answer.count", "{answer}", "answer", "Answers to requests for pages, by kind.")
	skipped = metric(metrics.Counter, "urls_skipped_total", "url.skipped", "{url}", "reason", "URLs that were leased and not requested, by what forbids it.")
	parked  = metric(metrics.Level, "urls_parked", "url.parked", "{url}", "until", "Parked URLs: until the scope is wider, or until the next run.")
	byRule  = metric(metrics.Counter, "filtered_total", "url.filtered", "{url}", "rule", "URLs, links and answers that filters refused, by rule.")
	outage  = metric(metrics.State, "outage", "outage", "1", "", "1 while no host answers, so that the network seems to be down; otherwise 0.")
)

// numbers are in the order of Progress.
var numbers = []number{
	{answers, "page", func(p *crawler.Progress) float64 { return float64(p.Pages) }},
	{answers, "requisite", func(p *crawler.Progress) float64 { return float64(p.Requisites) }},
	{answers, "redirect", func(p *crawler.Progress) float64 { return float64(p.Redirects) }},
	{answers, "gone", func(p *crawler.Progress) float64 { return float64(p.Gone) }},
	{answers, "refused", func(p *crawler.Progress) float64 { return float64(p.Refused) }},
	{answers, "unchanged", func(p *crawler.Progress) float64 { return float64(p.Unchanged) }},
	{answers, "failed", func(p *crawler.Progress) float64 { return float64(p.Failed) }},
	{metric(metrics.Counter, "pages_broken_total", "page.broken", "{page}", "", "Part of the pages: incomplete at the last try, too."), "", func(p *crawler.Progress) float64 { return float64(p.Broken) }},
	{metric(metrics.Counter, "pages_unreadable_total", "page.unreadable", "{page}", "", "Part of the pages: of an unknown coding, or a sitemap that is none."), "", func(p *crawler.Progress) float64 { return float64(p.Unread) }},
	{metric(metrics.Counter, "answers_unread_total", "answer.unread", "{answer}", "", "Part of the answers: the body was not read because it was not wanted."), "", func(p *crawler.Progress) float64 { return float64(p.Unwanted) }},
	{metric(metrics.Counter, "redirect_loops_total", "redirect.loop", "{answer}", "", "Part of the redirects: loops, and redirects beyond the limit."), "", func(p *crawler.Progress) float64 { return float64(p.Loops) }},
	{skipped, "robots", func(p *crawler.Progress) float64 { return float64(p.Denied) }},
	{skipped, "trap", func(p *crawler.Progress) float64 { return float64(p.Filtered) }},
	{skipped, "address", func(p *crawler.Progress) float64 { return float64(p.Blocked) }},
	{metric(metrics.Level, "sites_unreachable", "site.unreachable", "{site}", "", "Sites whose robots.txt cannot be fetched now; their URLs wait."), "", func(p *crawler.Progress) float64 { return float64(p.Unreachable) }},
	{outage, "", func(p *crawler.Progress) float64 { return yes(!p.Away.IsZero()) }},
	{parked, "scope", func(p *crawler.Progress) float64 { return float64(p.Parked) }},
	{parked, "run", func(p *crawler.Progress) float64 { return float64(p.NextRun) }},
	{metric(metrics.Counter, "robots_requests_total", "robots.request", "{request}", "", "Requests for robots.txt, redirects included."), "", func(p *crawler.Progress) float64 { return float64(p.Robots) }},
	{metric(metrics.Counter, "links_total", "link.count", "{link}", "", "Distinct links found, summed over the pages."), "", func(p *crawler.Progress) float64 { return float64(p.Links) }},
	{metric(metrics.Counter, "links_dropped_total", "link.dropped", "{link}", "", "Links of pages that have too many, and those that the frontier refused."), "", func(p *crawler.Progress) float64 { return float64(p.Dropped) }},
	{metric(metrics.Level, "workers_busy", "worker.busy", "{worker}", "", "Workers that hold a lease."), "", func(p *crawler.Progress) float64 { return float64(p.Busy) }},
	{metric(metrics.Counter, "lookup_seconds_total", "lookup.time", "s", "", "Time that workers waited for name resolution; part of the time of fetching."), "", func(p *crawler.Progress) float64 { return p.Lookup.Seconds() }},
	{metric(metrics.Counter, "fetching_seconds_total", "fetching.time", "s", "", "Time that workers spent on lookups, connecting, sending and reading."), "", func(p *crawler.Progress) float64 { return p.Fetching.Seconds() }},
}

func yes(x bool) float64 {
	if x {
		return 1
	}
	return 0
}

type source struct {
	c *crawler.Crawler
	f *metrics.FrontierSource
}

// Of returns the Source of a crawler and its frontier. A Read takes Progress once, which
// has the frontier's Stats.
func Of(c *crawler.Crawler, f *frontier.Frontier, o metrics.Options) metrics.Source {
	return &source{c, metrics.Frontier(f, o)}
}

// Metrics implements metrics.Source.
func (s *source) Metrics() []*metrics.Metric {
	out := s.f.Metrics()
	for _, x := range numbers {
		if x.Metric != out[len(out)-1] {
			out = append(out, x.Metric)
		}
	}
	return append(out, byRule)
}

// Read implements metrics.Source.
func (s *source) Read(to metrics.Sink) {
	p := s.c.Progress()
	s.f.ReadStats(&p.Frontier, to)
	read(&p, to)
}

func read(p *crawler.Progress, to metrics.Sink) {
	for _, x := range numbers {
		to.Number(x.Metric, x.label, x.of(p))
	}
	other, n := int64(0), 0
	for _, rule := range slices.Sorted(maps.Keys(p.FilteredBy)) {
		if n++; n > maxRules || rule == "other" {
			other += p.FilteredBy[rule]
			continue
		}
		to.Number(byRule, rule, float64(p.FilteredBy[rule]))
	}
	to.Number(byRule, "other", float64(other))
}

// OnFetch returns a function for crawler.Options.OnFetch that counts requests.
func OnFetch(h *metrics.Hooks) func(url string, res *fetch.Result, err error) {
	return func(_ string, res *fetch.Result, _ error) { h.Fetch(res.Status, res.Duration(), res.Bytes) }
}
