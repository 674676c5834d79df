// This file asks what a mark costs that lies on disk.

package spill

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

const (
	benchRound = 500_000 // marks of a checkpoint
	benchAsk   = 1000    // marks of a call
)

// counted counts the reads of files.
type counted struct {
	kv.DB
	reads atomic.Int64
}

type countedReader struct {
	kv.FileReader
	reads *atomic.Int64
}

func (c *counted) OpenFile(name string) (kv.FileReader, error) {
	f, err := c.DB.OpenFile(name)
	return countedReader{f, &c.reads}, err
}

func (r countedReader) ReadAt(p []byte, at int64) (int, error) {
	r.reads.Add(1)
	return r.FileReader.ReadAt(p, at)
}

// nothing is a Recovery that keeps nothing of a store with marks and a log.
type nothing struct{ storage.Recovery }

func (nothing) Begin(func(string) ([]byte, bool, error)) error { return nil }
func (nothing) Marks(int64) error                              { return nil }
func (nothing) Batch(*storage.Batch) error                     { return nil }

func randomMark(r *rand.Rand) (m storage.Mark) {
	for i := 0; i < len(m); i += 4 {
		v := r.Uint32()
		m[i], m[i+1], m[i+2], m[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	}
	return m
}

// filled returns a store with n marks, and some of them.
func filled(b *testing.B, n int) (s *Store, db *counted, some []storage.Mark) {
	engine, err := kv.OpenBadger(b.TempDir(), kv.Config{Memory: defaultMemory, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	db = &counted{DB: engine}
	s, err = OpenOn(db, Options{})
	require.NoError(b, err)
	s.marks.Policy.FanOut = marks.FanOut
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	require.NoError(b, s.Recover(b.Context(), nothing{}))
	r := rand.New(rand.NewPCG(1, 2))
	every := max(1, n/1_000_000)
	ms := make([]storage.Mark, benchRound)
	for gen := uint32(1); n > 0; gen++ {
		for i := range ms {
			ms[i] = randomMark(r)
			if i%every == 0 {
				some = append(some, ms[i])
			}
		}
		require.NoError(b, s.PackMarks(gen, ms))
		require.NoError(b, s.Checkpoint(&storage.Checkpoint{Gen: gen}))
		n -= len(ms)
	}
	r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return s, db, some
}

// What does looking a mark up cost, a thousand at a time?
func BenchmarkKnown(b *testing.B) {
	for _, n := range []int{1e6, 1e7} {
		b.Run(fmt.Sprintf("n=%.0e", float64(n)), func(b *testing.B) {
			s, db, some := filled(b, n)
			for _, op := range []string{"known", "new"} {
				b.Run("op="+op, func(b *testing.B) {
					r := rand.New(rand.NewPCG(3, 4))
					known := make([]bool, benchAsk)
					ask := make([]storage.Mark, benchAsk)
					at := 0
					before := db.reads.Load()
					b.ReportAllocs()
					for b.Loop() {
						clear(known)
						if op == "known" {
							at = (at + benchAsk) % (len(some) - benchAsk)
							copy(ask, some[at:])
						} else {
							for i := range ask {
								ask[i] = randomMark(r)
							}
						}
						if err := s.Known(ask, known); err != nil {
							b.Fatal(err)
						}
						if known[0] != (op == "known") {
							b.Fatal("wrong")
						}
					}
					marks := float64(b.N) * benchAsk
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/marks, "ns/mark")
					b.ReportMetric(float64(db.reads.Load()-before)/marks, "reads/mark")
					b.ReportMetric(float64(len(s.marks.List())), "runs")
					b.ReportMetric(float64(s.marks.Bytes())/float64(n), "B/mark")
				})
			}
		})
	}
}

// What does making half a million marks durable cost?
func BenchmarkCheckpointMarks(b *testing.B) {
	engine, err := kv.OpenBadger(b.TempDir(), kv.Config{Memory: defaultMemory, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	s, err := OpenOn(engine, Options{})
	require.NoError(b, err)
	s.marks.Policy.FanOut = 1 << 30
	defer func() { require.NoError(b, s.Close()) }()
	require.NoError(b, s.Recover(b.Context(), nothing{}))
	r := rand.New(rand.NewPCG(1, 2))
	ms := make([]storage.Mark, benchRound)
	gen := uint32(0)
	for b.Loop() {
		b.StopTimer()
		for i := range ms {
			ms[i] = randomMark(r)
		}
		gen++
		b.StartTimer()
		if err := errors.Join(s.PackMarks(gen, ms), s.Checkpoint(&storage.Checkpoint{Gen: gen})); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRound, "ns/mark")
}
