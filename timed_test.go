// This file looks at URLs that wait for their time on disk: what they cost, in
// which order and when they come, and what a Force makes of them.

package frontier_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

const day = 24 * time.Hour

// later adds n URLs over so many hosts, due between from and to after dawn.
func (w *world) later(n, hosts int, from, to time.Duration) {
	w.Helper()
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i] = frontier.Entry{
			URL:       fmt.Sprintf("http://h%d.example/%d/%d-%d", i%hosts, from, i, n),
			NotBefore: dawn.Add(from + time.Duration(i)*(to-from)/time.Duration(n)),
		}
	}
	for chunk := range slices.Chunk(entries, 5000) {
		_, err := w.f.Add(context.Background(), chunk...)
		require.NoError(w, err)
		require.NoError(w, w.f.MoveNow(false))
	}
}

// left is how many URLs wait, now or for their time.
func (w *world) left() int64 {
	s := w.f.Stats()
	return s.Waiting + s.Scheduled
}

// comes is nextIs where the time of a superseded URL may be told on the way.
func (w *world) comes(at time.Duration, url string) frontier.Lease {
	w.Helper()
	for {
		l, next, err := w.tryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			w.clk.Set(next)
			continue
		}
		require.NoError(w, err)
		require.Equal(w, url, l.Entry.URL)
		require.Equal(w, at, w.at(), "%s comes at the wrong time", url)
		return l
	}
}

func TestScheduledURLsCostNoMemory(t *testing.T) {
	const n = 200_000
	w := newStoredWorld(t, frontier.Options{NoDedup: true}, spill.Options{})
	w.later(5000, 5000, 30*day, 60*day) // what grows for good
	before := w.f.Stats()
	require.Zero(t, before.Hosts)
	require.Zero(t, before.Resident)
	w.later(n, n/4, 7*day, 28*day)
	for _, how := range []string{"after a round", "after reopening", "after a crash"} {
		s := w.f.Stats()
		require.EqualValues(t, n+5000, s.Scheduled, how)
		require.Zero(t, s.Hosts, how)
		require.Zero(t, s.Resident, how)
		require.Less(t, float64(s.MemoryBytes-before.MemoryBytes)/n, 1.5, "bytes for each URL %s", how)
		if how == "after a round" {
			w.reopen()
		} else {
			w = w.killed()
		}
	}
}

// Each URL comes at its time, whatever was read or moved when.
func TestScheduledURLsComeInOrderOfTime(t *testing.T) {
	for _, evict := range []bool{false, true} {
		t.Run(fmt.Sprintf("evict=%t", evict), func(t *testing.T) {
			r := newRand(t)
			w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: frontier.Retries(1, 0)}, spill.Options{})
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
						v.at = time.Duration(r.IntN(100_000)+1) * ms
						if i%3 == 0 {
							v.at *= 3600
						}
					}
					taken[v.at] = true
					want = append(want, v)
					entries = append(entries, frontier.Entry{URL: v.url, NotBefore: dawn.Add(v.at)})
				}
				_, err := w.f.Add(context.Background(), entries...)
				require.NoError(t, err)
				if round < 4 {
					require.NoError(t, w.f.MoveNow(evict))
				}
			}
			slices.SortFunc(want, func(a, b visit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.url, b.url)) })
			for i, v := range want {
				w.fetched(w.nextIs(v.at, v.url), 0, frontier.Outcome{})
				if i%1000 == 999 {
					w.reopen()
					require.NoError(t, w.f.MoveNow(evict))
				}
			}
			w.over()
		})
	}
}

// A caller of Next gets a URL from disk at its time: it was read before.
func TestNextWaitsForWhatIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &world{TB: t, machine: m, opts: frontier.Options{Spill: m.Store, Delay: frontier.FixedDelay(0)}}
		w.open()
		start := time.Now()
		want := []time.Duration{time.Hour, 30 * day, 30*day + time.Second, 30*day + time.Hour}
		for i, d := range want {
			_, err := w.f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i), NotBefore: start.Add(d)})
			require.NoError(t, err)
		}
		require.NoError(t, w.f.MoveNow(false))
		require.Zero(t, w.f.Stats().Resident)
		reads := m.Faults.Calls(spilltest.Read)
		m.Faults.Before(spilltest.Read, 1, func() {
			d := time.Since(start)
			require.True(t, d < want[0] && d > want[0]-time.Minute, "read at %v", d)
		})
		for i, d := range want {
			l, err := w.f.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("h%d.example", i), l.Host)
			require.Equal(t, d, time.Since(start))
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		_, err := w.f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
		require.LessOrEqual(t, m.Faults.Calls(spilltest.Read)-reads, 1, "all were read at once")
	})
}

// When very many are due at once they do not all come into memory.
func TestFloodOfScheduledURLs(t *testing.T) {
	for _, hosts := range []int{1, 500} {
		t.Run(fmt.Sprintf("hosts=%d", hosts), func(t *testing.T) {
			const n = 60_000
			w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0), NoDedup: true, MemoryBudget: 32 << 20}, spill.Options{})
			w.later(n, hosts, 3*day, 3*day+time.Second)
			w.until(4 * day)
			seen := map[string]bool{}
			most := int64(0)
			for {
				l, _, err := w.f.TryNext()
				if errors.Is(err, frontier.ErrExhausted) {
					break
				}
				require.NoError(t, err)
				require.False(t, seen[l.Entry.URL])
				seen[l.Entry.URL] = true
				require.NoError(t, w.f.Done(l, frontier.Outcome{}))
				if len(seen)%500 == 1 {
					s := w.f.Stats()
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

// A Force of a URL that waits for its time on disk moves it: it comes once.
func TestForceOfAURLOnDisk(t *testing.T) {
	const url = "http://a.example/"
	later := func(d time.Duration) frontier.Entry {
		return frontier.Entry{URL: url, NotBefore: dawn.Add(d), Force: true}
	}
	now := frontier.Entry{URL: url, Force: true}
	for _, c := range []struct {
		name string
		ops  []frontier.Entry
		want []time.Duration
	}{
		{"to now", []frontier.Entry{now}, []time.Duration{0}},
		{"to an earlier time", []frontier.Entry{later(day)}, []time.Duration{day}},
		{"to a later time", []frontier.Entry{later(60 * day)}, []time.Duration{60 * day}},
		{"twice", []frontier.Entry{later(60 * day), later(40 * day)}, []time.Duration{40 * day}},
		{"later and now", []frontier.Entry{later(60 * day), now}, []time.Duration{0}},
		{"now and later", []frontier.Entry{now, later(60 * day)}, []time.Duration{60 * day}},
	} {
		for _, between := range []string{"nothing", "move", "reopen", "kill", "move and kill"} {
			for _, others := range []int{0, 10_000} { // more than are looked through at once
				t.Run(fmt.Sprintf("%s/%s/others=%d", c.name, between, others), func(t *testing.T) {
					w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
					n, err := w.f.Add(context.Background(), frontier.Entry{URL: url, NotBefore: dawn.Add(30 * day)})
					require.NoError(t, err)
					require.Equal(t, 1, n)
					require.NoError(t, w.f.MoveNow(true))
					if others > 0 {
						w.later(others, 7, 90*day, 91*day)
					}
					for _, e := range c.ops {
						n, err := w.f.Add(context.Background(), e)
						require.NoError(t, err)
						require.Equal(t, 1, n)
						switch between {
						case "move":
							require.NoError(t, w.f.MoveNow(true))
						case "reopen":
							w.reopen()
						case "kill":
							w = w.killed()
						case "move and kill":
							require.NoError(t, w.f.MoveNow(true))
							w = w.killed()
						}
					}
					hold := time.Duration(0)
					for _, at := range c.want {
						l := w.comes(max(at, hold), url)
						require.NoError(t, w.f.Done(l, requeue))
						l = w.next()
						require.Equal(t, url, l.Entry.URL)
						require.NoError(t, w.f.Done(l, frontier.Outcome{Next: dawn.Add(80 * day)}))
					}
					require.NoError(t, w.f.MoveNow(true))
					w.fetched(w.comes(80*day, url), 0, frontier.Outcome{})
					if others == 0 {
						w.over()
						return
					}
					w.nothingUntil(90 * day)
					require.EqualValues(t, others, w.left())
				})
			}
		}
	}
}

// What a note says is forgotten when no block is left of which it may speak.
func TestNotesOfForcesAreDropped(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.later(20_000, 100, 10*day, 11*day)
	quiet := w.f.Stats().MemoryBytes
	for i := range 1000 {
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d-%d", i%100, 10*day, i, 20_000), Force: true})
		require.NoError(t, err)
	}
	w = w.killed()
	require.EqualValues(t, 21_000, w.left())
	w.until(12 * day)
	seen := map[string]int{}
	for _, u := range w.rest() {
		seen[u]++
	}
	require.Len(t, seen, 20_000)
	for u, n := range seen {
		require.Equal(t, 1, n, u)
	}
	require.NoError(t, w.f.MoveNow(true)) // drops the notes
	require.NoError(t, w.f.MoveNow(true)) // and their rows
	rows := 0
	w.machine.Kill(t).Damage(func(k, v []byte) []byte {
		if len(k) > 7 && k[4] == 'R' && string(k[5:7]) == "x:" {
			rows++
		}
		return v
	})
	require.LessOrEqual(t, rows, 1000)
	w.add("http://z.example/")
	w = w.killed() // applies what the last commit did to rows
	rows = 0
	w.machine.Kill(t).Damage(func(k, v []byte) []byte {
		if len(k) > 7 && k[4] == 'R' && string(k[5:7]) == "x:" {
			rows++
		}
		return v
	})
	require.Zero(t, rows)
	require.Less(t, w.f.Stats().MemoryBytes, quiet+1<<20)
}

// A crawl that visits its URLs over and over does not grow.
func TestRecrawlStaysFlat(t *testing.T) {
	const n, hosts = 3000, 300
	w := newStoredWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(0), MemoryBudget: 32 << 20, KeepOpen: true,
		Scheduler: frontier.SchedulerFunc(func(v frontier.Visit) time.Time {
			return v.Outcome.Ended.Add(time.Duration(12+len(v.Entry.URL)*v.History.Visits%24) * time.Hour)
		}),
	}, spill.Options{})
	var entries []frontier.Entry
	for i := range n {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i)})
	}
	_, err := w.f.Add(context.Background(), entries...)
	require.NoError(t, err)
	var most [4]int64 // bytes, in each quarter of the time
	visits, moved := 0, time.Duration(0)
	for w.at() < 20*day {
		l, at, err := w.f.TryNext()
		switch {
		case errors.Is(err, frontier.ErrNotDue):
			if w.at() >= moved+6*time.Hour {
				moved = w.at()
				require.NoError(t, w.f.MoveNow(visits%2 == 0))
			}
			w.clk.Set(at)
		default:
			require.NoError(t, err)
			visits++
			require.NoError(t, w.f.Done(l, frontier.Outcome{Result: frontier.Changed}))
		}
		quarter := min(int(w.at()/(5*day)), 3)
		most[quarter] = max(most[quarter], w.f.Stats().MemoryBytes)
	}
	s := w.f.Stats()
	require.EqualValues(t, n, s.Waiting+s.Scheduled)
	require.Greater(t, visits, 10*n)
	require.Less(t, most[3], most[1]*11/10)
	kinds := map[byte]int{}
	w.machine.Kill(t).Damage(func(k, v []byte) []byte { kinds[k[4]]++; return v })
	require.Equal(t, kinds['T'], kinds['H'])
	require.Less(t, kinds['T'], 800, "blocks of which nothing is left are dropped")
}

func TestTimedBlockThatCannotBeReadNow(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.later(500, 5, day, day+time.Second)
	w.add("http://z.example/")
	w.until(day + time.Minute)
	w.machine.Faults.FailFrom(spilltest.Read, 1, errDisk)
	l, _, err := w.f.TryNext()
	require.NoError(t, err, "what can be read is handed out")
	require.Equal(t, "z.example", l.Host)
	require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	_, at, err := w.f.TryNext()
	require.ErrorIs(t, err, frontier.ErrNotDue)
	require.True(t, at.After(w.clk.Now()), "there is a time to look again")
	require.EqualValues(t, 500, w.f.Stats().Scheduled)
	w.machine.Faults.Heal()
	w.clk.Set(at)
	require.Len(t, w.rest(), 500)
}

func TestTimedBlockThatIsDamaged(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.later(1000, 5, day, 2*day)
	w.later(100, 5, 3*day, 3*day+time.Second)
	var bad []byte
	w.machine.Damage(func(k, v []byte) []byte {
		if k[4] == 'T' && bad == nil {
			bad = k
			v[len(v)/2] ^= 1
		}
		return v
	})
	require.NotNil(t, bad)
	for _, how := range []string{"at first", "after reopening"} {
		w.until(4 * day)
		var ce *frontier.CorruptError
		_, _, err := w.f.TryNext()
		require.ErrorAs(t, err, &ce, how)
		require.Equal(t, bad, ce.Key)
		lost := w.f.Stats().Unreadable
		require.NotZero(t, lost)
		if how == "at first" {
			require.Len(t, w.rest(), int(1100-lost))
			require.NoError(t, w.f.MoveNow(true))
			w.reopen()
			s := w.f.Stats() // its time has come: the block may have been tried again already
			require.Equal(t, lost, s.Scheduled+s.Unreadable)
		}
	}
	w.over()
}

func TestNextTellsOfADamagedTimedBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &world{TB: t, machine: m, opts: frontier.Options{Spill: m.Store}}
		w.open()
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/", NotBefore: time.Now().Add(day)})
		require.NoError(t, err)
		require.NoError(t, w.f.MoveNow(false))
		m.Damage(func(k, v []byte) []byte {
			if k[4] == 'T' {
				v = v[:len(v)-1]
			}
			return v
		})
		var ce *frontier.CorruptError
		_, err = w.f.Next(t.Context())
		require.ErrorAs(t, err, &ce)
		_, err = w.f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}

func TestScheduledPrioritiesAreKnownOnReopening(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Priorities: 5, Prioritizer: frontier.Constant(5)}, spill.Options{})
	w.later(10, 1, day, 2*day)
	ended(t, w.f)
	w.opts.Priorities, w.opts.Prioritizer = 4, nil
	_, err := frontier.Open(context.Background(), w.opts)
	require.ErrorContains(t, err, "Priorities is 4")
	w.opts.Priorities = 5
	w.open()
}

// What has a home and lies between others that get one stays between them.
func TestMovesKeepTheOrderAroundAScheduledURL(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/2", NotBefore: dawn.Add(30 * time.Second)})
	require.NoError(t, err)
	require.NoError(t, w.f.MoveNow(false)) // it stays in memory
	w.add("http://a.example/1")
	w.until(30 * time.Second)
	require.EqualValues(t, 2, w.f.Stats().Waiting)
	w.add("http://a.example/3")
	require.NoError(t, w.f.MoveNow(true))
	require.Equal(t, urlsOf("a.example", 3), w.rest())
}

// What was learned of a host is known when its scheduled URLs come.
func TestScheduledURLsBringTheirHostsBack(t *testing.T) {
	for _, how := range []string{"go on", "reopen", "kill"} {
		t.Run(how, func(t *testing.T) {
			w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
			w.learns("a.example")
			require.Zero(t, w.f.Stats().Hosts)
			for i := range 3 {
				_, err := w.f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), NotBefore: dawn.Add(10*day + time.Duration(i)*time.Millisecond)})
				require.NoError(t, err)
			}
			require.NotZero(t, w.f.Stats().Hosts)
			require.NoError(t, w.f.MoveNow(false))
			w.asleep()
			require.Zero(t, w.f.Stats().Hosts)
			switch how {
			case "reopen":
				w.reopen()
			case "kill":
				w = w.killed()
			}
			for i := range 3 {
				l := w.nextIs(10*day+time.Duration(i)*slow, fmt.Sprintf("http://a.example/%d", i))
				w.fetched(l, 0, frontier.Outcome{})
			}
			w.over()
		})
	}
}

// A host whose row cannot be read keeps its URLs waiting on disk, not for ever.
func TestScheduledURLsWaitForTheRowOfTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		w.learns("a.example")
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/", NotBefore: dawn.Add(10 * day)})
		require.NoError(t, err)
		require.NoError(t, w.f.MoveNow(false))
		w.asleep()
		w.machine.Faults.FailFrom(spilltest.Read, 2, errDisk) // after the block, which may be read ahead of its time
		w.until(10 * day)
		synctest.Wait()
		_, at, err := w.f.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue)
		require.True(t, at.After(w.clk.Now()))
		require.EqualValues(t, 1, w.f.Stats().Scheduled)
		w.machine.Faults.Heal()
		w.clk.Set(at)
		synctest.Wait()
		w.fetched(w.nextIs(w.at(), "http://a.example/"), 0, frontier.Outcome{})
		w.over()
	})
}

// Workers, forces, moves and time go on together: no URL is ever there twice.
func TestRecrawlWithForcesAndMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, workers = 400, 8
		r := newRand(t)
		m := spilltest.OpenMemory(t, spill.Options{})
		w := &world{TB: t, machine: m, opts: frontier.Options{Spill: m.Store, Delay: frontier.FixedDelay(50 * ms), Retry: frontier.Retries(1, 0)}}
		w.open()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		url := func(i int) string { return fmt.Sprintf("http://h%d.example/%d", i%40, i) }
		var entries []frontier.Entry
		for i := range n {
			entries = append(entries, frontier.Entry{URL: url(i)})
		}
		_, err := w.f.Add(ctx, entries...)
		require.NoError(t, err)
		var mu sync.Mutex // guards r, out and visits
		out, visits := map[string]bool{}, 0
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return r.IntN(n) }
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for {
					l, err := w.f.Next(ctx)
					if err != nil {
						return
					}
					mu.Lock()
					twice := out[l.Entry.URL]
					out[l.Entry.URL] = true
					visits++
					mu.Unlock()
					if twice {
						t.Errorf("%s is leased twice", l.Entry.URL)
					}
					time.Sleep(time.Duration(draw(300)) * ms)
					mu.Lock()
					delete(out, l.Entry.URL)
					mu.Unlock()
					o := frontier.Outcome{Next: time.Now().Add(time.Duration(1+draw(7200)) * time.Second)}
					if draw(10) == 0 {
						o = requeue
					}
					if err := w.f.Done(l, o); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(1+draw(60)) * time.Second)
				e := frontier.Entry{URL: url(draw(n)), Force: true}
				if draw(3) == 0 {
					e.NotBefore = time.Now().Add(time.Duration(draw(7200)) * time.Second)
				}
				if _, err := w.f.Add(ctx, e); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(1+draw(900)) * time.Second)
				if err := w.f.MoveNow(draw(2) == 0); err != nil {
					t.Error(err)
				}
			}
		})
		time.Sleep(day)
		stop()
		all.Wait()
		require.NoError(t, w.f.Check())
		w.reopen()
		require.Greater(t, visits, 10*n)
		seen := map[string]bool{}
		for range n {
			l, err := w.f.Next(t.Context())
			require.NoError(t, err)
			require.False(t, seen[l.Entry.URL], "%s is there twice", l.Entry.URL)
			seen[l.Entry.URL] = true
			require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		}
		_, err = w.f.Next(t.Context())
		require.ErrorIs(t, err, frontier.ErrExhausted)
	})
}

// A round that failed leaves a URL in a block that is dropped after a crash: then
// it is in the log again, and superseded all the same.
func TestForceBetweenAFailedRoundAndACrash(t *testing.T) {
	for n := 1; ; n++ {
		w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/", NotBefore: dawn.Add(day)})
		require.NoError(t, err)
		w.machine.Faults.FailNth(spilltest.Write, n, errDisk)
		if w.f.MoveNow(true) == nil {
			require.Greater(t, n, 3)
			return
		}
		w.machine.Faults.Heal()
		_, err = w.f.Add(context.Background(), frontier.Entry{URL: "http://a.example/", Force: true})
		require.NoError(t, err)
		for range 2 {
			w = w.killed()
			require.EqualValues(t, 1, w.left())
		}
		require.NoError(t, w.f.MoveNow(true))
		w.fetched(w.next(), 0, frontier.Outcome{})
		w.over()
		w = w.killed()
		w.over()
	}
}

// While a Force is on its way to disk nobody knows yet whether the URL that it
// replaces counts: it is not handed out.
func TestForceMeetsTheTimeOfItsURL(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const url = "http://a.example/"
			w, h := hookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
			_, err := w.f.Add(bg, frontier.Entry{URL: url, NotBefore: dawn.Add(day), Meta: []byte("old")})
			require.NoError(t, err)
			require.NoError(t, w.f.MoveNow(true))
			gate := make(chan struct{})
			h.set(func(*frontier.Batch) error {
				<-gate
				if fails {
					return errDisk
				}
				return nil
			}, nil)
			forced := make(chan error, 1)
			go func() {
				_, err := w.f.Add(bg, frontier.Entry{URL: url, Force: true, Meta: []byte("new")})
				forced <- err
			}()
			synctest.Wait()
			w.until(day)
			c := start(func() (frontier.Lease, error) { l, _, err := w.f.TryNext(); return l, err })
			require.True(t, c.waits())
			close(gate)
			h.set(nil, nil)
			<-c.over
			require.NoError(t, c.err)
			want := "new"
			if err := <-forced; fails {
				require.ErrorIs(t, err, errDisk)
				want = "old"
			}
			require.Equal(t, want, string(c.lease.Entry.Meta))
			w.fetched(c.lease, 0, frontier.Outcome{})
			w.over()
		})
	}
}

// A crawl does not wait for the times of URLs that were all forced to come now.
func TestCrawlIsOverOnceAllThatIsScheduledWasForced(t *testing.T) {
	const n = 8000
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.later(n, 10, 30*day, 31*day)
	require.NoError(t, w.f.MoveNow(true))
	var entries []frontier.Entry
	for i := range n {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d/%d-%d", i%10, 30*day, i, n), Force: true})
	}
	_, err := w.f.Add(bg, entries...)
	require.NoError(t, err)
	done := 0
	require.Eventually(t, func() bool { // blocks are looked through meanwhile; the clock stands still
		for {
			l, _, err := w.f.TryNext()
			if err != nil {
				return errors.Is(err, frontier.ErrExhausted)
			}
			w.fetched(l, 0, frontier.Outcome{})
			done++
		}
	}, 2*time.Minute, time.Millisecond)
	require.Equal(t, n, done)
}

// A note is kept for a block that could not be read: it may be readable again.
func TestNoteOutlivesADamagedBlock(t *testing.T) {
	w := newStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.later(20_000, 1, day, 2*day) // more than are looked through at once
	flip := func() {
		w.machine.Damage(func(k, v []byte) []byte {
			if k[4] == 'T' {
				v[len(v)/2] ^= 1
			}
			return v
		})
	}
	flip()
	url := fmt.Sprintf("http://h0.example/%d/0-20000", day)
	_, err := w.f.Add(bg, frontier.Entry{URL: url, Force: true})
	require.NoError(t, err)
	w.fetched(w.nextIs(0, url), 0, frontier.Outcome{})
	w.until(3 * day)
	for ce := new(frontier.CorruptError); ; {
		if _, _, err = w.f.TryNext(); !errors.As(err, &ce) {
			break
		}
	}
	require.ErrorIs(t, err, frontier.ErrExhausted)
	for range 3 {
		require.NoError(t, w.f.MoveNow(true))
	}
	flip()
	w = w.killed()
	urls := w.rest()
	require.Len(t, urls, 19_999)
	require.NotContains(t, urls, url)
}
