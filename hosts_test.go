// This file tests how hosts are found, ordered, ranked by size and hashed.

package frontier

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// The order has every host in memory, however many come and go while and after it
// is made; a scope's hosts are those whose names say so.
func TestHostOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := Open(context.Background(), Options{Delay: FixedDelay(0)})
		require.NoError(t, err)
		label := rapid.SampledFrom([]string{"a", "b", "a-b", "org", "example", "127"})
		name := rapid.Custom(func(t *rapid.T) string {
			s := label.Draw(t, "label")
			for range rapid.IntRange(0, 2).Draw(t, "more") {
				s += "." + label.Draw(t, "label")
			}
			return s
		})
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				f.mu.Lock()
				f.core.OrderSome(rapid.IntRange(1, 5).Draw(t, "n"))
				f.mu.Unlock()
			case 1:
				if l, _, err := f.TryNext(); err == nil {
					require.NoError(t, f.Done(l, Outcome{}))
				}
			default:
				_, err := f.Add(context.Background(), Entry{URL: fmt.Sprintf("http://%s/%d", name.Draw(t, "host"), i)})
				require.NoError(t, err)
			}
			require.NoError(t, f.Check())
		}
		s := rapid.SampledFrom([]scope.Scope{scope.All(), scope.Host(name.Draw(t, "of")), scope.Domain(name.Draw(t, "of"))}).Draw(t, "scope")
		var want, got []string
		for id := uint32(1); id <= f.core.Hosts.Top; id++ {
			if h := f.core.Hosts.At(id); h.NameLen > 0 && s.Hosts().Contains(string(f.core.Name(h))) {
				want = append(want, string(f.core.Name(h)))
			}
		}
		sort.Slice(want, func(i, j int) bool { return hostkey.Reversed(want[i]) < hostkey.Reversed(want[j]) })
		again := map[string]bool{}
		require.NoError(t, f.sweepHosts(s, func(id uint32, _ int64) bool {
			host := string(f.core.Name(f.core.Hosts.At(id)))
			if !again[host] && len(got)%3 == 0 {
				again[host] = true
				return false
			}
			got = append(got, host)
			return true
		}))
		require.True(t, slices.Equal(want, got), "%v: got %v, want %v", s, got, want)
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.ErrorIs(t, f.sweepHosts(s, nil), ErrClosed)
	})
}

// Two frontiers see the same URLs and hosts as different fingerprints and hashes.
func TestFingerprintsAreKeyed(t *testing.T) {
	const url, host = "http://a.example/", "a.example"
	marks, hashes := map[storage.Mark]bool{}, map[uint64]bool{}
	for range 8 {
		f, err := Open(t.Context(), Options{})
		require.NoError(t, err)
		require.NotZero(t, f.core.Key[0])
		require.NotZero(t, f.core.Key[1])
		require.NotEqual(t, f.found.Mark(host, 0, url), f.found.Mark(host, 1, url), "crawls do not share marks")
		marks[f.found.Mark(host, 0, url)] = true
		hashes[f.core.HashOf(host)] = true
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	}
	require.Len(t, marks, 8)
	require.Len(t, hashes, 8)
}

// Taking out what a deletion of a host has left dead looks at the URLs of that host only, whatever others are
// scheduled or finished; a Force looks for its URL there only.
func TestDeletingAHostLooksAtItsOwnURLs(t *testing.T) {
	steps := func(hosts int) int {
		f, err := Open(t.Context(), Options{Keep: true, MemoryBudget: 1 << 30})
		require.NoError(t, err)
		defer func() {
			require.NoError(t, f.Check())
			require.NoError(t, f.Close())
		}()
		var es []Entry
		for i := range 10 * hosts {
			es = append(es, Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i), Finished: true})
		}
		_, err = f.Add(t.Context(), es...)
		require.NoError(t, err)
		f.mu.Lock()
		defer f.mu.Unlock()
		c := f.core
		id := c.Lookup(f.core.HashOf("h7.example"), "h7.example")
		n := 0
		for i := range c.Scheduled.Of(c.Hosts.At(id).Queues) {
			require.Equal(t, c.Hosts.At(id).Queues, c.Scheduled.Items[i].Aux)
			n++
		}
		require.Equal(t, 10, n)
		d := tombstone.NewDeletion(row.Deletion{Seq: f.ledger.Seq(), Scope: row.Scope{Name: "h7.example", Named: true}})
		c.Deletions.InForce.Add(&d.Tombstone)
		left, done, _ := c.PurgeHost(id, &d.Tombstone, &mercator.Ring{}, sweepSteps, f.last)
		require.True(t, done)
		require.EqualValues(t, 10, d.Removed)
		require.Zero(t, c.Lookup(f.core.HashOf("h7.example"), "h7.example"), "nothing is left of it")
		c.Deletions.InForce.Remove(&d.Tombstone)
		return sweepSteps - left
	}
	require.Equal(t, steps(20), steps(2_000))
}

// A deletion drops the counts of many hosts a few at a time, as they are dropped in memory under the lock.
func TestDroppingCountsTakesShortSteps(t *testing.T) {
	f, err := Open(t.Context(), Options{Count: true, Keep: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	for i := range 1000 {
		_, err := f.Add(t.Context(), Entry{URL: fmt.Sprintf("http://h%d.example/", i), Finished: true})
		require.NoError(t, err)
	}
	left := func() int {
		rows, _ := f.countRows()
		return len(rows)
	}
	d := tombstone.NewDeletion(row.Deletion{Seq: f.ledger.Seq(), Scope: row.Scope{Name: "example", Named: true, Domain: true}})
	crawls, from, steps := f.core.Counts.Crawls(), "", 0
	for was := left(); len(crawls) > 0; was = left() {
		f.mu.Lock()
		crawls, from, err = f.ledger.DropCounts(d, crawls, from)
		f.mu.Unlock()
		require.NoError(t, err)
		require.LessOrEqual(t, was-left(), 64)
		steps++
	}
	require.Zero(t, left())
	require.LessOrEqual(t, steps, 1000/60)
}
