package frontierprometheus_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-7440039f/frontier"
	frontierprometheus "github.com/seed-7440039f/frontier/adapters/prometheus"
	"github.com/seed-7440039f/frontier/metrics"
)

func Example() {
	ctx := context.Background()
	hooks := frontierprometheus.NewHooks()
	f, err := frontier.Open(ctx, frontier.Options{OnEvent: hooks.Event})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(hooks, frontierprometheus.Collector(metrics.Frontier(f, metrics.Options{})))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // for GET /metrics

	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	l, err := f.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	outcome := frontier.Outcome{Result: frontier.Visited}
	if err := f.Done(l, outcome); err != nil {
		log.Fatal(err)
	}
	hooks.Done(l, outcome)

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "frontier_urls_added_total") || strings.HasPrefix(line, `frontier_outcomes_total{result="visited"}`) {
			fmt.Print(line)
		}
	}
	// Output:
	// frontier_outcomes_total{result="visited"} 1
	// frontier_urls_added_total 1
}
