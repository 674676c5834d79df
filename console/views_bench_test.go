// This file measures what a view costs, however many hosts there are.

package console_test

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

var long = flag.Bool("frontier.long", false, "measure with a million hosts")

// views are all that the page and the API answer, with what an operator may ask of them.
// Of the hosts hN.dM.example M goes to a thousand; d7's are paused.
var views = []string{
	"/", "/hosts", "/hosts?after=h500.d500.example", "/hosts?scope=*.d500.example", "/hosts?sort=waiting", "/hosts?sort=waiting&match=d7.",
	"/hosts?match=h77", "/hosts?match=nowhere", "/hosts?match=nowhere&scope=*.d500.example", "/hosts?reason=paused", "/hosts?reason=leased", "/hosts?reason=blocked&n=1000",
	"/host?name=h77.d77.example", "/host?name=nowhere.example", "/urls", "/urls?scope=*.d500.example", "/urls?scope=h77.d77.example",
	"/url?url=http://h77.d77.example/some/page.html", "/rules",
	"/api/status", "/api/hosts?n=1000", "/api/hosts?n=1000&reason=paused", "/api/hosts?n=1000&match=h77", "/api/host?name=h77.d77.example", "/api/urls?n=1000",
	"/api/url?url=http://h77.d77.example/some/page.html", "/api/due?n=1000", "/api/rules",
}

// BenchmarkViews requests each view of a frontier of n hosts with one waiting URL each, and reports the
// time of the slowest response, including the first.
func BenchmarkViews(b *testing.B) {
	sizes := []int{1000}
	if *long {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			h := crowded(b, n).Page()
			for _, path := range views {
				b.Run("view="+path, func(b *testing.B) {
					var slowest time.Duration
					for b.Loop() {
						rec := httptest.NewRecorder()
						begun := time.Now()
						h.ServeHTTP(rec, overLoopback(httptest.NewRequest("GET", "http://localhost"+path, nil)))
						slowest = max(slowest, time.Since(begun))
						if rec.Code != 200 {
							b.Fatal(rec.Code, rec.Body)
						}
					}
					b.ReportMetric(float64(slowest)/1e6, "slowest-ms")
				})
			}
		})
	}
}

// crowded is a Console of a frontier in memory with n hosts and 200 rules.
func crowded(b *testing.B, n int) *console.Console {
	f, err := frontier.Open(b.Context(), frontier.Options{KeepOpen: true, MemoryBudget: 4 << 30})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	es := make([]frontier.Entry, 0, 1000)
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.d%d.example/some/page.html", i, i%1000), Depth: i % 8})
		if len(es) == cap(es) || i == n-1 {
			_, err := f.Add(b.Context(), es...)
			require.NoError(b, err)
			es = es[:0]
		}
	}
	require.NoError(b, f.Pause(scope.Domain("d7.example")))
	for i := range 200 {
		require.NoError(b, f.UpdateRule(scope.Host(fmt.Sprintf("h%d.d%d.example", i, i)), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1000} }))
	}
	for range 100 {
		_, _, err := f.TryNext()
		require.NoError(b, err)
	}
	c, err := console.New(f, console.Options{Watch: console.NewWatch()})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close()) })
	return c
}
