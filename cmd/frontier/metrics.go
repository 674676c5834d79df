// This file serves GET /metrics.

package main

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-7440039f/frontier"
	frontierprometheus "github.com/seed-7440039f/frontier/adapters/prometheus"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/figures"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/metrics"
)

// metrics serves the figures of a crawl and of the process.
func (s *settings) metrics(f *frontier.Frontier, c *crawler.Crawler, hooks *frontierprometheus.Hooks) http.Handler {
	o := metrics.Options{MemoryBudget: budget(s)}
	if s.dir != "" {
		o.Dir, o.Disk = s.dir, minutely(func() int64 { return diskOf(s.dir) })
	}
	sources := []metrics.Source{figures.Of(c, f, o)}
	if s.order.est != nil {
		sources = append(sources, importance.Figures(s.order.est))
	}
	r := prometheus.NewRegistry()
	r.MustRegister(hooks, frontierprometheus.Collector(sources...),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4})
}

// minutely caches an expensive figure for a minute.
func minutely(look func() int64) func() int64 {
	var mu sync.Mutex
	var last int64
	var at time.Time
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= time.Minute {
			last, at = look(), now
		}
		return last
	}
}
