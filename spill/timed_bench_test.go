// This file asks what timed blocks cost, in bytes and time.

package spill

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/blocks"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// benchTimed returns n records of Zipf hosts, with URLs of 71 bytes on average,
// due within four weeks, in order of time. With history each has been visited.
func benchTimed(n int, history bool) []storage.TimedRecord {
	rng := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rng, 1.1, 10, 1_000_000)
	dues := make([]int64, n)
	for i := range dues {
		dues[i] = 1_700_000_000_000 + rng.Int64N(28*86_400_000)
	}
	slices.Sort(dues)
	rs := make([]storage.TimedRecord, n)
	for i := range rs {
		host := fmt.Sprintf("host%d.example.org", zipf.Uint64())
		body := []byte{0}
		if history {
			seen := dues[i] - rng.Int64N(28*86_400_000)
			body = append(body, byte(1+rng.IntN(20)), byte(rng.IntN(10)))
			body = binary.AppendVarint(body, seen-rng.Int64N(1e10))
			body = binary.AppendVarint(body, seen)
			body = binary.AppendVarint(body, seen-rng.Int64N(1e9))
			body = binary.AppendVarint(body, seen/1000*1000)
		}
		body = fmt.Appendf(body, "http://%s/section%d/page-%d.html?ref=%d", host, rng.IntN(50), rng.IntN(1e6), rng.IntN(1e5))
		rs[i] = storage.TimedRecord{
			Queue:  storage.Queue{Host: host, Priority: uint8(1 + rng.IntN(4))},
			Record: storage.Record{Seq: uint64(rng.IntN(2 * n)), Due: dues[i], Body: body},
		}
	}
	return rs
}

// What does a scheduled URL take on disk, and what does encoding it cost?
func BenchmarkTimedBlock(b *testing.B) {
	for _, history := range []bool{false, true} {
		b.Run(fmt.Sprintf("history=%t", history), func(b *testing.B) {
			rs := benchTimed(200_000, history)
			raw := 0
			for i := range rs {
				raw += len(rs[i].Body)
			}
			var w blocks.TimedWriter
			var bytes, urls, blocks int
			for b.Loop() {
				for rest := rs; len(rest) > 0; blocks++ {
					n := w.Fill(rest)
					bytes += len(w.Value(nil))
					urls += n
					rest = rest[n:]
				}
			}
			b.ReportMetric(float64(raw)/float64(len(rs)), "body-B/url")
			b.ReportMetric(float64(bytes)/float64(urls), "disk-B/url")
			b.ReportMetric(float64(urls)/float64(blocks), "urls/block")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(urls), "ns/url")
		})
	}
}

// What does reading a timed block cost, and one record of it that is kept?
func BenchmarkReadTimed(b *testing.B) {
	rs := benchTimed(1000, true)
	var w blocks.TimedWriter
	n := w.Fill(rs)
	v := w.Value(nil)
	raw, err := blocks.OpenTimed(nil, nil, v)
	require.NoError(b, err)
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if raw, err = blocks.OpenTimed(raw, nil, v); err != nil {
				b.Fatal(err)
			}
			_ = blocks.ReadTimed(raw, true, func(int, storage.TimedRecord) bool { return true })
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/url")
	})
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = blocks.ReadTimed(raw, false, func(pos int, _ storage.TimedRecord) bool { return pos < n/2 })
		}
	})
}
