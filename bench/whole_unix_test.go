//go:build unix

// These benchmarks measure a frontier as a crawl uses it, in CPU time, which is what can be compared
// on a machine that does other work. They use what every commit has, so that bench/compare -with can
// measure older ones, too.

package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
)

// cpu returns the CPU time of the process on all cores.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // of this process: it cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maker makes new URLs. The hosts follow Zipf's law.
type maker struct {
	mu    sync.Mutex
	rng   *rand.Rand
	hosts *rand.Zipf
	made  int
}

func newMaker(hosts uint64) *maker {
	rng := rand.New(rand.NewPCG(1, 2))
	return &maker{rng: rng, hosts: rand.NewZipf(rng, 1.1, 10, hosts-1)}
}

func (m *maker) urls(n int) []frontier.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	es := make([]frontier.Entry, n)
	for i := range es {
		m.made++
		es[i] = frontier.Entry{
			URL:   fmt.Sprintf("https://www.host%d.example.org/section/%d/page-%d.html", m.hosts.Uint64(), m.rng.IntN(50), m.made),
			Depth: m.made % 4,
		}
	}
	return es
}

func (m *maker) fill(b *testing.B, f *frontier.Frontier, n int) {
	const perCall = 1000
	for ; n > 0; n -= perCall {
		if _, err := f.Add(context.Background(), m.urls(min(n, perCall))...); err != nil {
			b.Fatal(err)
		}
	}
}

func opened(b *testing.B, o frontier.Options) *frontier.Frontier {
	o.Delay, o.LeaseTime = frontier.FixedDelay(0), 24*time.Hour
	f, err := frontier.Open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	})
	return f
}

// together runs one until n were counted, and reports the CPU time of one iteration.
func together(b *testing.B, workers int, one func() error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error)
	b.ReportAllocs()
	runtime.GC()
	b.ResetTimer()
	from := cpu()
	for range workers {
		go func() {
			for left.Add(-1) >= 0 {
				if err := one(); err != nil {
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
	b.ReportMetric(float64(cpu()-from)/1e3/float64(b.N), "cpu-us/op")
}

// BenchmarkCycle takes URLs off a store of 400,000 URLs, ends them, and adds as many new ones, 100 in
// a call. The budget is 128 MiB, so that a part of them is read from disk.
func BenchmarkCycle(b *testing.B) {
	const urls, hosts, perCall = 400_000, 1_000_000, 100
	db, err := spill.Open(b.TempDir(), spill.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	f := opened(b, frontier.Options{Spill: db, MemoryBudget: 128 << 20})
	m := newMaker(hosts)
	m.fill(b, f, urls)
	for _, workers := range []int{64} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var owed atomic.Int64
			together(b, workers, func() error {
				l, err := f.Next(context.Background())
				if err == nil {
					err = f.Done(l, frontier.Outcome{})
				}
				if err == nil && owed.Add(1)%perCall == 0 {
					_, err = f.Add(context.Background(), m.urls(perCall)...)
				}
				return err
			})
		})
	}
}

// BenchmarkIngest adds URLs to a store, 1,000 in a call. One iteration is one URL.
func BenchmarkIngest(b *testing.B) {
	db, err := spill.Open(b.TempDir(), spill.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	f := opened(b, frontier.Options{Spill: db, MemoryBudget: 128 << 20})
	m := newMaker(1_000_000)
	b.ReportAllocs()
	b.ResetTimer()
	from := cpu()
	m.fill(b, f, b.N)
	b.ReportMetric(float64(cpu()-from)/1e3/float64(b.N), "cpu-us/op")
}

// BenchmarkResident takes all URLs of a frontier in memory out of it. One iteration is one URL.
func BenchmarkResident(b *testing.B) {
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			f := opened(b, frontier.Options{MemoryBudget: 4 << 30})
			newMaker(10_000).fill(b, f, b.N)
			together(b, workers, func() error {
				l, err := f.Next(context.Background())
				if err == nil {
					err = f.Done(l, frontier.Outcome{})
				}
				return err
			})
		})
	}
}
