// This file asks what one fingerprint costs as the set grows.

package seen

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// forSizes runs fn as op=.../n=1e3 to n=1e6, with twice as many fingerprints.
func forSizes(b *testing.B, op string, fn func(b *testing.B, n int, marks [][12]byte)) {
	for e, n := 3, 1000; e <= 6; e, n = e+1, n*10 {
		b.Run(fmt.Sprintf("op=%s/n=1e%d", op, e), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			marks := make([][12]byte, 2*n)
			for i := range marks {
				binary.LittleEndian.PutUint64(marks[i][:], r.Uint64())
				binary.LittleEndian.PutUint32(marks[i][8:], r.Uint32())
			}
			b.ReportAllocs()
			fn(b, n, marks)
		})
	}
}

func setOf(marks [][12]byte) *Set {
	s := new(Set)
	for _, m := range marks {
		s.Insert(m)
	}
	return s
}

// BenchmarkSeen asks a set of n fingerprints, or changes it.
func BenchmarkSeen(b *testing.B) {
	has := func(known bool) func(b *testing.B, n int, marks [][12]byte) {
		return func(b *testing.B, n int, marks [][12]byte) {
			s := setOf(marks[:n])
			ask := marks[:n]
			if !known {
				ask = marks[n:]
			}
			i := 0
			for b.Loop() {
				if s.Has(ask[i]) != known {
					b.Fatal(ask[i])
				}
				i = (i + 1) % n
			}
		}
	}
	forSizes(b, "known", has(true))
	forSizes(b, "unknown", has(false))
	// A new one comes, and the oldest leaves.
	forSizes(b, "replace", func(b *testing.B, n int, marks [][12]byte) {
		s := setOf(marks[:n])
		old, young := 0, n
		for b.Loop() {
			s.Insert(marks[young])
			s.Remove(marks[old])
			old, young = (old+1)%(2*n), (young+1)%(2*n)
		}
	})
	// The set grows from nothing to n, over and over; one iteration is one Insert.
	forSizes(b, "grow", func(b *testing.B, n int, marks [][12]byte) {
		full := float64(setOf(marks[:n]).Size())
		s := new(Set)
		i := 0
		for b.Loop() {
			if i == n {
				s, i = new(Set), 0
			}
			s.Insert(marks[i])
			i++
		}
		b.ReportMetric(full/float64(n), "B/mark")
	})
}
