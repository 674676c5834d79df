// This file asks what several crawls in one frontier cost a hand-out.

package frontier_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/require"
)

// BenchmarkCrawls hands out and reports, in turns of all crawls, which have weights
// of their own. Either each host is of one crawl, or each has a URL of a hundred
// crawls, or all if there are fewer: it stands in a list of each.
func BenchmarkCrawls(b *testing.B) {
	const hosts = 10_000
	for _, shared := range []bool{false, true} {
		for _, crawls := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("shared=%v/crawls=%d", shared, crawls), func(b *testing.B) {
				f := openBench(b, false)
				for i := range crawls {
					require.NoError(b, f.UpdateRule(frontier.Crawl(uint32(i)), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 1 + i%7} }))
				}
				es := benchEntries(b.N, hosts)
				for i := range es {
					es[i].Crawl = uint32(i * 7919 % hosts % crawls)
					if shared {
						es[i].Crawl = uint32((i + i/hosts) % crawls)
					}
				}
				for ; len(es) > 0; es = es[min(1000, len(es)):] {
					_, err := f.Add(context.Background(), es[:min(1000, len(es))]...)
					require.NoError(b, err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for range b.N {
					l, err := f.Next(context.Background())
					if err == nil {
						err = f.Done(l, frontier.Outcome{Duration: time.Millisecond})
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
