package importance

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier"
)

// What does an access cost, by score and size of the table?
func BenchmarkEstimator(b *testing.B) {
	const urls = 1 << 10
	entries := make([]frontier.Entry, urls)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://www.host-%d.example/some/path/of/a/page-%d.html", i%1000, i), Depth: 1, Weight: 1e-3}
	}
	for _, score := range []Score{Links, Trust} {
		for _, size := range []int64{1 << 20, 64 << 20, 512 << 20} {
			x := estimator(b, Options{Score: score, Memory: size})
			for name, f := range map[string]func(e *frontier.Entry, i int){
				"priority": func(e *frontier.Entry, _ int) { x.Priority(*e, frontier.History{}) },
				"found":    func(e *frontier.Entry, _ int) { x.Found(*e) },
				"rise":     func(e *frontier.Entry, _ int) { x.Rise(*e) },
			} {
				b.Run(fmt.Sprintf("score=%v/op=%s/MB=%d", score, name, size>>20), func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						e := &entries[i*40503%urls]
						e.Crawl = uint32(i >> 10 & 0x3fff) // 16 M URLs
						f(e, i)
					}
				})
			}
			b.Run(fmt.Sprintf("score=%v/op=visit-50-links/MB=%d", score, size>>20), func(b *testing.B) {
				b.ReportAllocs()
				links := entries[:50]
				for i := 0; b.Loop(); i++ {
					x.Visit(frontier.Lease{Entry: entries[i*40503%urls], Host: "www.host.example"}, true, links, nil)
				}
			})
		}
	}
}
