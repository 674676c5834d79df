// This file tests URLs that wait for their time on disk: what they cost, in which
// order and when they come.

package politeness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

func TestScheduledURLsCostNoMemory(t *testing.T) {
	const n = 200_000
	w := harness.NewStoredWorld(t, frontier.Options{NoDedup: true}, spill.Options{})
	w.Later(5000, 5000, 30*24*time.Hour, 60*24*time.Hour) // what grows for good
	before := w.F.Stats()
	require.Zero(t, before.Hosts)
	require.Zero(t, before.Resident)
	w.Later(n, n/4, 7*24*time.Hour, 28*24*time.Hour)
	for _, how := range []string{"after a round", "after reopening", "after a crash"} {
		s := w.F.Stats()
		require.EqualValues(t, n+5000, s.Scheduled, how)
		require.Zero(t, s.Hosts, how)
		require.Zero(t, s.Resident, how)
		require.Less(t, float64(s.MemoryBytes-before.MemoryBytes)/n, 1.5, "bytes for each URL %s", how)
		if how == "after a round" {
			w.Reopen()
		} else {
			w = w.Killed()
		}
	}
}

// Each URL comes at its time, whatever was read or moved when.
func TestScheduledURLsComeInOrderOfTime(t *testing.T) {
	for _, evict := range []bool{false, true} {
		t.Run(fmt.Sprintf("evict=%t", evict), func(t *testing.T) {
			r := harness.NewRand(t)
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0)}, spill.Options{})
			type visit struct {
				url string
				at  time.Duration
			}
			var want []visit
			taken := map[time.Duration]bool{}
			for round := range 5 {
				var entries []frontier.Entry
				for i := range 700 {
					v := visit{url: fmt.Sprintf("http://a.example/%d/%d", round, i)}
					for v.at == 0 || taken[v.at] { // some far, some near, no two at once
						v.at = time.Duration(r.IntN(100_000)+1) * time.Millisecond
						if i%3 == 0 {
							v.at *= 3600
						}
					}
					taken[v.at] = true
					want = append(want, v)
					entries = append(entries, frontier.Entry{URL: v.url, NotBefore: harness.Dawn.Add(v.at)})
				}
				_, err := w.F.Add(context.Background(), entries...)
				require.NoError(t, err)
				if round < 4 {
					require.NoError(t, hook.Of(w.F).MoveNow(evict))
				}
			}
			slices.SortFunc(want, func(a, b visit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.url, b.url)) })
			for i, v := range want {
				w.Fetched(w.NextIs(v.at, v.url), 0, frontier.Outcome{})
				if i%1000 == 999 {
					w.Reopen()
					require.NoError(t, hook.Of(w.F).MoveNow(evict))
				}
			}
			w.Over()
		})
	}
}

// A caller of Next gets a URL from disk at its time: it was read before.
func TestNextWaitsForWhatIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &harness.World{TB: t, Machine: m, Options: frontier.Options{Spill: m.Store, Delay: frontier.FixedDelay(0)}}
		w.Open()
		start := time.Now()
		want := []time.Duration{time.Hour, 30 * 24 * time.Hour, 30*24*time.Hour + time.Second, 30*24*time.Hour + time.Hour}
		for i, d := range want {
			_, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i), NotBefore: start.Add(d)})
			require.NoError(t, err)
		}
		require.NoError(t, hook.Of(w.F).MoveNow(false))
		require.Zero(t, w.F.Stats().Resident)
		reads := m.Faults.Calls(spilltest.Read)
		m.Faults.Before(spilltest.Read, 1, func() {
			d := time.Since(start)
			require.True(t, d < want[0] && d > want[0]-time.Minute, "read at %v", d)
		})
		for i, d := range want {
			l, err := w.F.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("h%d.example", i), l.Host)
			require.Equal(t, d, time.Since(start))
			require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		}
		_, err := w.F.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
		require.LessOrEqual(t, m.Faults.Calls(spilltest.Read)-reads, 1, "all were read at once")
	})
}

// When very many are due at once they do not all come into memory.
func TestFloodOfScheduledURLs(t *testing.T) {
	for _, hosts := range []int{1, 500} {
		t.Run(fmt.Sprintf("hosts=%d", hosts), func(t *testing.T) {
			const n = 60_000
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), NoDedup: true, MemoryBudget: 32 << 20}, spill.Options{})
			w.Later(n, hosts, 3*24*time.Hour, 3*24*time.Hour+time.Second)
			w.Until(4 * 24 * time.Hour)
			seen := map[string]bool{}
			most := int64(0)
			for {
				l, _, err := w.F.TryNext()
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				require.False(t, seen[l.Entry.URL])
				seen[l.Entry.URL] = true
				require.NoError(t, w.F.Done(l, frontier.Outcome{}))
				if len(seen)%500 == 1 {
					s := w.F.Stats()
					most = max(most, s.Resident)
					require.Less(t, s.MemoryBytes, int64(32<<20))
				}
			}
			require.Len(t, seen, n)
			t.Logf("%d bytes of URLs in memory at most", most)
			require.Less(t, most, int64(3<<20), "a sixteenth of the budget, and a block")
		})
	}
}

// A crawl that visits its URLs over and over does not grow.
func TestRecrawlStaysFlat(t *testing.T) {
	const n, hosts = 3000, 300
	w := harness.NewStoredWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(0), MemoryBudget: 32 << 20, KeepOpen: true,
		Scheduler: frontier.SchedulerFunc(func(v frontier.Visit) time.Time {
			return v.Outcome.Ended.Add(time.Duration(12+len(v.Entry.URL)*v.History.Visits%24) * time.Hour)
		}),
	}, spill.Options{})
	var entries []frontier.Entry
	for i := range n {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i)})
	}
	_, err := w.F.Add(context.Background(), entries...)
	require.NoError(t, err)
	var most [4]int64 // bytes, in each quarter of the time
	visits, moved := 0, time.Duration(0)
	for w.At() < 20*24*time.Hour {
		l, at, err := w.F.TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue):
			if w.At() >= moved+6*time.Hour {
				moved = w.At()
				require.NoError(t, hook.Of(w.F).MoveNow(visits%2 == 0))
			}
			w.Clock.Set(at)
		default:
			require.NoError(t, err)
			visits++
			require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Changed}))
		}
		quarter := min(int(w.At()/(5*24*time.Hour)), 3)
		most[quarter] = max(most[quarter], w.F.Stats().MemoryBytes)
	}
	s := w.F.Stats()
	require.EqualValues(t, n, s.Waiting+s.Scheduled)
	require.Greater(t, visits, 10*n)
	require.Less(t, most[3], most[1]*11/10)
	kinds := map[byte]int{}
	w.Machine.Kill(t).Damage(func(k, v []byte) []byte { kinds[k[4]]++; return v })
	require.Equal(t, kinds['T'], kinds['H'])
	require.Less(t, kinds['T'], 800, "blocks of which nothing is left are dropped")
}

func TestTimedBlockThatCannotBeReadNow(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Later(500, 5, 24*time.Hour, 24*time.Hour+time.Second)
	w.Add("http://z.example/")
	w.Until(24*time.Hour + time.Minute)
	w.Machine.Faults.FailFrom(spilltest.Read, 1, harness.ErrDisk)
	l, _, err := w.F.TryNext()
	require.NoError(t, err, "what can be read is handed out")
	require.Equal(t, "z.example", l.Host)
	require.NoError(t, w.F.Done(l, frontier.Outcome{}))
	_, at, err := w.F.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, at.After(w.Clock.Now()), "there is a time to look again")
	require.EqualValues(t, 500, w.F.Stats().Scheduled)
	w.Machine.Faults.Heal()
	w.Clock.Set(at)
	require.Len(t, w.Rest(), 500)
}

func TestTimedBlockThatIsDamaged(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Later(1000, 5, 24*time.Hour, 2*24*time.Hour)
	w.Later(100, 5, 3*24*time.Hour, 3*24*time.Hour+time.Second)
	var bad []byte
	w.Machine.Damage(func(k, v []byte) []byte {
		if k[4] == 'T' && bad == nil {
			bad = k
			v[len(v)/2] ^= 1
		}
		return v
	})
	require.NotNil(t, bad)
	for _, how := range []string{"at first", "after reopening"} {
		w.Until(4 * 24 * time.Hour)
		var ce *frontier.CorruptError
		_, _, err := w.F.TryNext()
		require.ErrorAs(t, err, &ce, how)
		require.Equal(t, bad, ce.Key)
		lost := w.F.Stats().Unreadable
		require.NotZero(t, lost)
		if how == "at first" {
			require.Len(t, w.Rest(), int(1100-lost))
			require.NoError(t, hook.Of(w.F).MoveNow(true))
			w.Reopen()
			s := w.F.Stats() // its time has come: the block may have been tried again already
			require.Equal(t, lost, s.Scheduled+s.Unreadable)
		}
	}
	w.Over()
}

func TestNextTellsOfADamagedTimedBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &harness.World{TB: t, Machine: m, Options: frontier.Options{Spill: m.Store}}
		w.Open()
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: time.Now().Add(24 * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, hook.Of(w.F).MoveNow(false))
		m.Damage(func(k, v []byte) []byte {
			if k[4] == 'T' {
				v = v[:len(v)-1]
			}
			return v
		})
		var ce *frontier.CorruptError
		_, err = w.F.Next(t.Context())
		require.ErrorAs(t, err, &ce)
		_, err = w.F.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}

func TestScheduledPrioritiesAreKnownOnReopening(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Priorities: 5, Prioritizer: frontier.Constant(5)}, spill.Options{})
	w.Later(10, 1, 24*time.Hour, 2*24*time.Hour)
	harness.Ended(t, w.F)
	w.Options.Priorities, w.Options.Prioritizer = 4, nil
	_, err := frontier.Open(context.Background(), w.Options)
	require.ErrorContains(t, err, "Priorities is 4")
	w.Options.Priorities = 5
	w.Open()
}

// What has a home and lies between others that get one stays between them.
func TestMovesKeepTheOrderAroundAScheduledURL(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/2", NotBefore: harness.Dawn.Add(30 * time.Second)})
	require.NoError(t, err)
	require.NoError(t, hook.Of(w.F).MoveNow(false)) // it stays in memory
	w.Add("http://a.example/1")
	w.Until(30 * time.Second)
	require.EqualValues(t, 2, w.F.Stats().Waiting)
	w.Add("http://a.example/3")
	require.NoError(t, hook.Of(w.F).MoveNow(true))
	require.Equal(t, harness.UrlsOf("a.example", 3), w.Rest())
}

// What was learned of a host is known when its scheduled URLs come.
func TestScheduledURLsBringTheirHostsBack(t *testing.T) {
	for _, how := range []string{"go on", "reopen", "kill"} {
		t.Run(how, func(t *testing.T) {
			w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			w.Learns("a.example")
			require.Zero(t, w.F.Stats().Hosts)
			for i := range 3 {
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: harness.Dawn.Add(10*24*time.Hour + time.Duration(i)*time.Millisecond)})
				require.NoError(t, err)
			}
			require.NotZero(t, w.F.Stats().Hosts)
			require.NoError(t, hook.Of(w.F).MoveNow(false))
			w.Asleep()
			require.Zero(t, w.F.Stats().Hosts)
			switch how {
			case "reopen":
				w.Reopen()
			case "kill":
				w = w.Killed()
			}
			for i := range 3 {
				l := w.NextIs(10*24*time.Hour+time.Duration(i)*harness.Slow, fmt.Sprintf("http://a.example/%d", i))
				w.Fetched(l, 0, frontier.Outcome{})
			}
			w.Over()
		})
	}
}

// A host whose row cannot be read keeps its URLs waiting on disk, not for ever.
func TestScheduledURLsWaitForTheRowOfTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		w.Learns("a.example")
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(10 * 24 * time.Hour)})
		require.NoError(t, err)
		require.NoError(t, hook.Of(w.F).MoveNow(false))
		w.Asleep()
		w.Machine.Faults.FailFrom(spilltest.Read, 2, harness.ErrDisk) // after the block, which may be read ahead of its time
		w.Until(10 * 24 * time.Hour)
		synctest.Wait()
		_, at, err := w.F.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.After(w.Clock.Now()))
		require.EqualValues(t, 1, w.F.Stats().Scheduled)
		w.Machine.Faults.Heal()
		w.Clock.Set(at)
		synctest.Wait()
		w.Fetched(w.NextIs(w.At(), "http://a.example/"), 0, frontier.Outcome{})
		w.Over()
	})
}
