package frontierotel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/seed-7440039f/frontier"
	frontierotel "github.com/seed-7440039f/frontier/adapters/otel"
	"github.com/seed-7440039f/frontier/metrics"
)

func Example() {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	source := metrics.Frontier(f, metrics.Options{})
	// A program has a PeriodicReader and an exporter here.
	reader := metric.NewManualReader(metric.WithProducer(frontierotel.Producer(source)))
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	if _, err := frontierotel.Register(provider.Meter("frontier"), source); err != nil {
		log.Fatal(err)
	}

	if _, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/"}); err != nil {
		log.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "frontier.url.added" {
				fmt.Println(m.Name, m.Unit, m.Data.(metricdata.Sum[float64]).DataPoints[0].Value)
			}
		}
	}
	// Output: frontier.url.added {url} 1
}
