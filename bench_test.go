// These benchmarks measure what one call costs as the frontier grows, and with several
// crawls. Names are key=value, so that benchstat groups them. On a shared machine compare
// CPU and allocations, not the clock.

package frontier_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
)

// benchEntries returns n entries over so many hosts, all of the usual length.
func benchEntries(n, hosts int) []frontier.Entry {
	es := make([]frontier.Entry, n)
	for i := range es {
		es[i] = frontier.Entry{
			URL:   fmt.Sprintf("http://host%d.example.com/some/path/to/a/page/%d.html", (i*7919)%hosts, i),
			Depth: i % 8,
		}
	}
	return es
}

func openBench(b *testing.B, durable bool) *frontier.Frontier {
	o := frontier.Options{Delay: frontier.FixedDelay(0), MemoryBudget: 4 << 30, Selector: selector.BiasedRandom(1)}
	if durable {
		db, err := spill.Open(b.TempDir(), spill.Options{})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		o.Spill, o.MemoryBudget = db, 512<<20
	}
	f, err := frontier.Open(context.Background(), o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	return f
}

func forStores(b *testing.B, fn func(b *testing.B, durable bool)) {
	b.Run("store=memory", func(b *testing.B) { fn(b, false) })
	b.Run("store=badger", func(b *testing.B) { fn(b, true) })
}

// BenchmarkAdd admits new URLs; one iteration is one URL.
func BenchmarkAdd(b *testing.B) {
	forStores(b, func(b *testing.B, durable bool) {
		for _, batch := range []int{1, 1000} {
			b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
				es := benchEntries(b.N, 100_000)
				f := openBench(b, durable)
				b.ReportAllocs()
				b.ResetTimer()
				for len(es) > 0 {
					n := min(batch, len(es))
					if _, err := f.Add(context.Background(), es[:n]...); err != nil {
						b.Fatal(err)
					}
					es = es[n:]
				}
			})
		}
	})
}

// BenchmarkAddKnown offers URLs that are known.
func BenchmarkAddKnown(b *testing.B) {
	es := benchEntries(1000, 1000)
	f := openBench(b, false)
	_, err := f.Add(context.Background(), es...)
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += len(es) {
		if _, err := f.Add(context.Background(), es...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNextDone hands out and reports; its pages have no links, and the
// frontier shrinks by a URL with each iteration.
func BenchmarkNextDone(b *testing.B) {
	forStores(b, func(b *testing.B, durable bool) {
		for _, hosts := range []int{1, 1000, 100_000} {
			for _, workers := range []int{1, 16} {
				b.Run(fmt.Sprintf("hosts=%d/workers=%d", hosts, workers), func(b *testing.B) {
					f := openBench(b, durable)
					for es := benchEntries(b.N, hosts); len(es) > 0; es = es[min(1000, len(es)):] {
						_, err := f.Add(context.Background(), es[:min(1000, len(es))]...)
						require.NoError(b, err)
					}
					var left atomic.Int64
					left.Store(int64(b.N))
					done := make(chan error)
					b.ReportAllocs()
					b.ResetTimer()
					for range workers {
						go func() {
							for left.Add(-1) >= 0 {
								l, err := f.Next(context.Background())
								if err == nil {
									err = f.Done(l, frontier.Outcome{Duration: time.Millisecond})
								}
								if err != nil {
									done <- err
									return
								}
							}
							done <- nil
						}()
					}
					for range workers {
						if err := <-done; err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	})
}

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
					require.NoError(b, f.UpdateRule(scope.Crawl(uint32(i)), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 1 + i%7} }))
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

// BenchmarkTake takes leases of up to 10 URLs of each of up to 100 hosts and ends them; one
// iteration is one URL. p99 is that of a call of Take.
func BenchmarkTake(b *testing.B) {
	for _, hosts := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("hosts=%d", hosts), func(b *testing.B) {
			f := openBench(b, false)
			_, err := f.Add(context.Background(), benchEntries(b.N+hosts, hosts)...)
			require.NoError(b, err)
			var calls []time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				start := time.Now()
				ls, err := f.Take(context.Background(), frontier.TakeOptions{Hosts: 100, PerHost: 10, Max: b.N - n})
				calls = append(calls, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				for _, l := range ls {
					if err := f.Done(l, frontier.Outcome{}); err != nil {
						b.Fatal(err)
					}
				}
				n += len(ls)
			}
			slices.Sort(calls)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "urls/s")
			b.ReportMetric(float64(calls[len(calls)*99/100].Microseconds()), "p99-us")
		})
	}
}
