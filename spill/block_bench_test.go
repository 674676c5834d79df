// This file asks what packing URLs into blocks costs, and reading them, without
// a disk.

package spill

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// benchRuns returns n URLs in runs by host; few hosts have many, most have one.
func benchRuns(n int) []storage.Run {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.5, 1, 1000)
	var runs []storage.Run
	for seq := 0; seq < n; {
		host := fmt.Sprintf("host%d.example.org", len(runs))
		run := storage.Run{Queue: storage.Queue{Host: host, Priority: uint8(1 + rng.IntN(4))}}
		for more := min(1+int(zipf.Uint64()), n-seq); more > 0; more-- {
			seq += 1 + rng.IntN(2)
			url := fmt.Appendf(nil, "http://%s/section%d/page-%d.html?ref=%d", host, rng.IntN(50), rng.IntN(1e6), rng.IntN(1e5))
			run.Records = append(run.Records, storage.Record{Seq: uint64(seq), Body: url})
		}
		runs = append(runs, run)
	}
	return runs
}

// benchBlocks packs runs into blocks, one at a time and over again, and returns
// the next block and its parts. The parts are valid until the next call.
func benchBlocks(runs []storage.Run, key []byte) (next func() ([]byte, []storage.Part), done func() bool) {
	var w blocks.Writer
	var parts []storage.Part
	run, from := 0, 0
	next = func() ([]byte, []storage.Part) {
		w.Reset()
		parts = parts[:0]
		for !w.Full() {
			r := &runs[run]
			n := w.Part(r.Queue, r.Records[from:])
			parts = append(parts, storage.Part{First: uint16(w.Count - n), Count: uint8(n)})
			if from += n; from == len(r.Records) {
				from = 0
				if run++; run == len(runs) {
					run = 0
					break
				}
			}
		}
		return w.Value(key), parts
	}
	return next, func() bool { return run == 0 && from == 0 }
}

// BenchmarkBlock has n URLs to pack, or packed.
func BenchmarkBlock(b *testing.B) {
	type packed struct {
		value []byte
		parts []storage.Part
	}
	key := keys.Block(1, 1)
	filled := func(n int) []packed {
		next, done := benchBlocks(benchRuns(n), key)
		var all []packed
		for len(all) == 0 || !done() {
			v, parts := next()
			all = append(all, packed{v, append([]storage.Part(nil), parts...)})
		}
		return all
	}
	forSizes := func(op string, fn func(b *testing.B, n int)) {
		for e, n := 3, 1000; e <= 6; e, n = e+1, n*10 {
			b.Run(fmt.Sprintf("op=%s/n=1e%d", op, e), func(b *testing.B) {
				b.ReportAllocs()
				fn(b, n)
			})
		}
	}
	// The next block is packed.
	forSizes("encode", func(b *testing.B, n int) {
		next, _ := benchBlocks(benchRuns(n), key)
		urls, bytes := 0, 0
		for b.Loop() {
			v, parts := next()
			bytes += len(v)
			for _, p := range parts {
				urls += int(p.Count)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(urls), "ns/url")
		b.ReportMetric(float64(bytes)/float64(urls), "B/url")
	})
	// Any part is read, as before a hand-out.
	forSizes("load", func(b *testing.B, n int) {
		all, rng := filled(n), rand.New(rand.NewPCG(1, 2))
		urls := 0
		var opened blocks.Block
		for b.Loop() {
			x := &all[rng.IntN(len(all))]
			p := x.parts[rng.IntN(len(x.parts))]
			err := opened.Fill(key, x.value, false)
			if err == nil {
				err = opened.Records(p, math.MaxUint32, func(int, storage.Record) { urls++ })
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(urls)/float64(b.N), "urls/part")
	})
	// Any block's directory is read, as when the store is opened.
	forSizes("directory", func(b *testing.B, n int) {
		all, rng := filled(n), rand.New(rand.NewPCG(1, 2))
		parts := 0
		for b.Loop() {
			err := blocks.Parts(key, all[rng.IntN(len(all))].value, func(storage.Queue, uint16, uint8) error { parts++; return nil })
			require.NoError(b, err)
		}
		b.ReportMetric(float64(parts)/float64(b.N), "parts/block")
	})
}
