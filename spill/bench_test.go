// This file asks what the store costs, per record.

package spill_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// page returns n admissions that look like the links of crawled pages.
func page(rng *rand.Rand, zipf *rand.Zipf, seq uint64, n int) []storage.Admission {
	as := make([]storage.Admission, n)
	for i := range as {
		seq++
		h := zipf.Uint64()
		host := fmt.Sprintf("host%d.example.org", h)
		as[i] = storage.Admission{
			Queue:   storage.Queue{Host: host, Priority: uint8(1 + rng.IntN(4))},
			Record:  storage.Record{Seq: seq, Body: fmt.Appendf(nil, "http://%s/section%d/page-%d.html?ref=%d", host, rng.IntN(50), rng.IntN(1e6), rng.IntN(1e5))},
			HasMark: true,
		}
		for j := range as[i].Mark {
			as[i].Mark[j] = byte(rng.Uint32())
		}
	}
	return as
}

func source() (*rand.Rand, *rand.Zipf) {
	rng := rand.New(rand.NewPCG(1, 2))
	return rng, rand.NewZipf(rng, 1.1, 10, 1_000_000)
}

// What does making 1,000 URLs durable cost?
func BenchmarkCommit(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%t", sync), func(b *testing.B) {
			s := open(b, b.TempDir(), spill.Options{Sync: sync})
			require.NoError(b, s.Recover(b.Context(), newReplay()))
			rng, zipf := source()
			var pages [64][]storage.Admission
			for i := range pages {
				pages[i] = page(rng, zipf, uint64(i)*1000, 1000)
			}
			id := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				id++
				if err := s.Commit(&storage.Batch{ID: id, Admit: pages[id%64]}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "urls/s")
		})
	}
}

// sorted returns the runs of n URLs, by priority and host.
func sorted(n int) []storage.Run {
	rng, zipf := source()
	m := newModel(1, nil)
	m.apply(&storage.Batch{ID: 1, Admit: page(rng, zipf, 0, n)})
	return m.runs()
}

// What does moving a URL from the log to a block cost?
func BenchmarkPack(b *testing.B) {
	const n = 100_000
	s := open(b, b.TempDir(), spill.Options{})
	require.NoError(b, s.Recover(b.Context(), newReplay()))
	runs := sorted(n)
	gen := uint32(0)
	b.ReportAllocs()
	for b.Loop() {
		gen++
		if _, err := s.Pack(gen, runs); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Checkpoint(&storage.Checkpoint{Gen: gen}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "urls/s")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "us/url")
}

// What does reading a part back cost, in random order?
func BenchmarkLoad(b *testing.B) {
	s := open(b, b.TempDir(), spill.Options{})
	require.NoError(b, s.Recover(b.Context(), newReplay()))
	byRun, err := s.Pack(1, sorted(500_000))
	require.NoError(b, err)
	require.NoError(b, s.Checkpoint(&storage.Checkpoint{Gen: 1}))
	var parts []storage.Part
	for _, ps := range byRun {
		parts = append(parts, ps...)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	i, urls := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		p := parts[i%len(parts)]
		i++
		if err := s.Load(p, 1<<p.Count-1, func(int, storage.Record) { urls++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(urls)/float64(b.N), "urls/part")
}
