package recrawl_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
)

// BenchmarkDone is what it costs to schedule a page, the price included.
func BenchmarkDone(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		for _, host := range []string{"free", "bound"} {
			b.Run(fmt.Sprintf("pages=%d/host=%s", n, host), func(b *testing.B) {
				s := scheduler(b, recrawl.Options{Budget: float64(n) / 10 / 86400})
				if host == "bound" {
					for h := range uint32(50) {
						_ = s.SetHostRate(h, float64(n)/2000/86400)
					}
				}
				pages := known(s, n, func(i int) uint32 { return uint32(i % 100) })
				now, i := monday, 0
				step := time.Duration(float64(10*day) / float64(n))
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(step)
					if i++; i == n {
						i = 0
					}
					pages[i], _ = s.Done(pages[i], recrawl.Visit{At: now, Outcome: recrawl.Outcome(i & 1)})
				}
			})
		}
	}
}

func BenchmarkRecheck(b *testing.B) {
	s := scheduler(b, recrawl.Options{Budget: 1})
	pages := known(s, 10000, oneHost)
	for i := range pages {
		pages[i], _ = s.Done(pages[i], recrawl.Visit{At: monday, Outcome: recrawl.Visited})
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 1) % len(pages)
		s.Recheck(pages[i], pages[i].Due)
	}
}
