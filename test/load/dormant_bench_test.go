// This file asks what hosts cost that are not in memory.

package load

import (
	"context"
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// benchDormant returns a store on badger with the rows of n hosts.
func benchDormant(b *testing.B, n int) *spill.Store {
	s, err := spill.Open(b.TempDir(), spill.Options{})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	harness.FillWithDormant(b, s, n)
	return s
}

// BenchmarkOpenWithDormantHosts opens and closes a frontier; one iteration is all
// of it.
func BenchmarkOpenWithDormantHosts(b *testing.B) {
	for _, n := range []int{1000, 200_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			s := benchDormant(b, n)
			b.ReportAllocs()
			for b.Loop() {
				f, err := frontier.Open(context.Background(), frontier.Options{Spill: s})
				require.NoError(b, err)
				require.Zero(b, f.Stats().Hosts)
				require.NoError(b, f.Close())
			}
		})
	}
}

// BenchmarkAddToHosts admits new URLs, each of another host than the one before;
// one iteration is one URL. Hosts are new, resident, or dormant with a row; known
// are URLs of dormant hosts that were admitted before.
func BenchmarkAddToHosts(b *testing.B) {
	const rows = 200_000
	const batch = 100
	for _, kind := range []string{"new", "resident", "dormant", "known"} {
		b.Run("hosts="+kind, func(b *testing.B) {
			f, err := frontier.Open(context.Background(), frontier.Options{Spill: benchDormant(b, rows)})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, f.Close()) })
			entries := func(page, i int) []frontier.Entry {
				es := make([]frontier.Entry, batch)
				for j := range es {
					host := harness.DormantHost(1 + (i+j)%rows)
					if kind == "new" {
						host = "new-" + host
					}
					es[j].URL = fmt.Sprintf("http://%s/%d/%d", host, page, (i+j)/rows)
				}
				return es
			}
			if kind == "resident" || kind == "known" {
				for i := 0; i < min(rows, b.N+batch); i += batch {
					_, err := f.Add(context.Background(), entries(0, i)...)
					require.NoError(b, err)
				}
			}
			page := 1
			if kind == "known" {
				page = 0
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i += batch {
				_, err := f.Add(context.Background(), entries(page, i)...)
				require.NoError(b, err)
			}
		})
	}
}
