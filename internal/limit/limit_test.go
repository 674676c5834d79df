package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	all     = row.Scope{}
	example = row.Scope{Name: "example", Domain: true, Named: true}
	hostA   = row.Scope{Name: "a.example", Named: true}
)

// world is a book with what it reports to its caller.
type world struct {
	*Book
	turns    []string
	rechecks []row.Scope
}

func newWorld() *world {
	w := &world{}
	w.Book = New(Caller{
		Turned: func(of Subject, turn quota.Turn, what string, until int64) {
			said := fmt.Sprintf("%s.%d %d", of.Scope.Name, of.Crawl, turn)
			if turn == quota.Reached {
				said += fmt.Sprintf(" %s %d", what, until)
			}
			w.turns = append(w.turns, said)
		},
		Recheck: func(s row.Scope) { w.rechecks = append(w.rechecks, s) },
	}, time.Unix(0, 0), true, 0)
	return w
}

func (w *world) check(t require.TestingT, idle bool, urls map[string]int64) {
	w.Check(func(format string, args ...any) { require.Fail(t, fmt.Sprintf(format, args...)) }, idle, func(s row.Scope) (n int64) {
		for host, k := range urls {
			if s == all || host == s.Name || s.Domain && len(host) > len(s.Name) && host[len(host)-len(s.Name)-1:] == "."+s.Name {
				n += k
			}
		}
		return n
	})
}

var served = quota.Amount{Served: 1}

// A naive model adds up the use of every hand-out, for each scope around its host, each host and
// each crawl. The book agrees on which hosts are served, whatever limits change.
func TestBookAgainstSums(t *testing.T) {
	hosts := []string{"a.example", "b.example", "c.other"}
	scopes := []row.Scope{all, example, hostA}
	in := func(host string, s row.Scope) bool {
		return s == all || s == example && host != "c.other" || s == hostA && host == "a.example"
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		lease, now := uint64(0), int64(0)
		type count struct{ together, most, mostEach int64 }
		counts := map[row.Scope]*count{}
		byHost, crawl, mostOfCrawl := map[string]int64{}, int64(0), int64(0)
		for _, s := range scopes {
			counts[s] = &count{}
		}
		each := func(host string) int64 {
			for i := range scopes {
				if s := scopes[len(scopes)-1-i]; in(host, s) && counts[s].mostEach > 0 {
					return counts[s].mostEach
				}
			}
			return 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"limits": func(t *rapid.T) {
				s := rapid.SampledFrom(scopes).Draw(t, "scope")
				x := counts[s]
				together, mine := rapid.Int64Range(0, 4).Draw(t, "together"), rapid.Int64Range(0, 4).Draw(t, "each")
				if together == 0 || x.most == 0 {
					x.together = 0
				}
				x.most, x.mostEach = together, mine
				w.SetScope(s, quota.Limits{Served: together}, quota.Limits{Served: mine}, lease, now)
			},
			"crawl": func(t *rapid.T) {
				n := rapid.Int64Range(0, 4).Draw(t, "served")
				if n == 0 || mostOfCrawl == 0 {
					crawl = 0
				}
				mostOfCrawl = n
				w.SetCrawl(7, quota.Limits{Served: n}, lease, now)
			},
			"hand out": func(t *rapid.T) {
				i := rapid.IntRange(0, len(hosts)-1).Draw(t, "host")
				host := hosts[i]
				lease++
				now++
				for _, s := range scopes {
					if x := counts[s]; in(host, s) && x.most > 0 {
						x.together++
					}
				}
				had := w.HasHost(uint32(i + 1))
				alone := w.Use(uint32(i+1), []byte(host), served, lease, now)
				require.Equal(t, each(host) > 0, alone)
				if alone {
					byHost[host]++
				} else {
					require.Equal(t, had, w.HasHost(uint32(i+1)))
				}
				require.Equal(t, mostOfCrawl > 0, w.UseCrawl(7, served, lease, now))
				if mostOfCrawl > 0 {
					crawl++
				}
			},
			"": func(t *rapid.T) {
				for i, host := range hosts {
					spent := each(host) > 0 && byHost[host] >= each(host)
					for _, s := range scopes {
						spent = spent || in(host, s) && counts[s].most > 0 && counts[s].together >= counts[s].most
					}
					want := instant.None
					if spent {
						want = instant.Never
					}
					require.Equal(t, want, w.HostSpent(uint32(i+1), []byte(host), now), host)
				}
				for _, s := range scopes {
					u, ok := w.Used(OfScope(s), now)
					require.Equal(t, counts[s].most > 0, ok)
					require.Equal(t, counts[s].together, u.Served)
				}
				require.Equal(t, mostOfCrawl > 0 && crawl >= mostOfCrawl, w.CrawlSpent(7, now) == instant.Never)
				w.check(t, true, nil)
			},
		})
	})
}

func TestPeriodsEnd(t *testing.T) {
	w := newWorld()
	l := quota.Limits{Served: 1, Period: 100}
	w.SetScope(example, l, quota.Limits{}, 0, 0)
	w.SetScope(hostA, quota.Limits{}, l, 0, 0)
	w.SetCrawl(7, l, 0, 0)
	require.True(t, w.Limiting())
	require.True(t, w.Use(1, []byte("a.example"), served, 1, 10))
	require.True(t, w.UseCrawl(7, served, 1, 20))
	require.Equal(t, int64(110), w.HostSpent(1, []byte("a.example"), 20))
	require.Equal(t, int64(110), w.HostSpent(2, []byte("b.example"), 20))
	require.Equal(t, int64(120), w.CrawlSpent(7, 20))
	w.HostEnds.Set(1, 110)
	w.HostEnds.Set(2, 110)
	w.CrawlEnds.Set(7, 120)
	w.CrawlEnds.Set(7, 130)
	require.True(t, w.CrawlEnds.Has(7))
	require.Equal(t, int64(110), w.HostEnds.Min())
	require.Equal(t, int64(130), w.CrawlEnds.Min())
	w.check(t, true, nil)
	w.HostEnds.Remove(2)
	_, ok := w.HostEnds.Over(109)
	require.False(t, ok)
	id, ok := w.HostEnds.Over(110)
	require.True(t, ok)
	require.Equal(t, uint32(1), id)
	w.HostEnds.Remove(1)
	id, ok = w.CrawlEnds.Over(130)
	require.True(t, ok)
	require.Equal(t, uint32(7), id)
	w.CrawlEnds.Remove(7)
	require.Equal(t, instant.Never, min(w.HostEnds.Min(), w.CrawlEnds.Min()))
	require.Equal(t, instant.None, w.HostSpent(1, []byte("a.example"), 110))
	require.Equal(t, instant.None, w.CrawlSpent(7, 120))
	require.Equal(t, []string{"example.0 1 served 110", "a.example.0 1 served 110", ".7 1 served 120", "example.0 2", "a.example.0 2", ".7 2"}, w.turns)
	require.Empty(t, w.rechecks)
	w.SetCrawl(7, quota.Limits{}, 1, 130)
	require.False(t, w.CrawlEnds.Has(7))
	w.check(t, true, nil)
}

func TestRecheckWhenReachedForGoodOrLifted(t *testing.T) {
	w := newWorld()
	w.SetScope(example, quota.Limits{Served: 1}, quota.Limits{Served: 1}, 0, 0)
	w.Use(1, []byte("a.example"), served, 1, 0)
	require.Equal(t, []row.Scope{example, hostA}, w.rechecks)
	w.Use(1, []byte("a.example"), quota.Amount{Served: -1}, 1, 0)
	require.Equal(t, []row.Scope{example, hostA, example, hostA}, w.rechecks)
}

// A period that has ended is over for the next limits, too, and for their row.
func TestPeriodEndsBeforeTheLimitsChange(t *testing.T) {
	w := newWorld()
	l := quota.Limits{Served: 1, Period: 100}
	w.SetScope(example, l, quota.Limits{}, 0, 0)
	w.Use(1, []byte("a.example"), served, 1, 0)
	w.Rows()
	w.EndPeriod(OfScope(example), 1, 99)
	require.False(t, w.Dirty())
	w.EndPeriod(OfScope(example), 1, 100)
	require.True(t, w.Dirty())
	u, ok := w.Used(OfScope(example), 100)
	require.True(t, ok)
	require.Zero(t, u)
	w.EndPeriod(OfCrawl(7), 1, 100)
	require.Positive(t, w.Size())
}

// A period under the limits of before, of a host that was not looked at since, has ended
// if it would have by then.
func TestLimitsThatFollow(t *testing.T) {
	w := newWorld()
	a := []byte("a.example")
	day := quota.Limits{Served: 1, Period: 100}
	w.SetScope(all, quota.Limits{}, day, 0, 0)
	w.Use(1, a, served, 1, 10)
	require.Equal(t, Each{}, w.Exactly(example))
	require.Equal(t, day, w.Around(hostA).Limits)
	w.SetScope(example, quota.Limits{}, quota.Limits{Served: 1}, 1, 110)
	require.Equal(t, int64(10), w.Exactly(example).Ended)
	require.Zero(t, w.HostUsed(1, a, 110))
	require.Equal(t, instant.None, w.HostSpent(1, a, 110))
	require.False(t, w.Counts("b.example", row.Usage{Since: 0}, 110))
	w.SetScope(hostA, quota.Limits{}, quota.Limits{Served: 1}, 1, 120)
	require.Equal(t, int64(10), w.Exactly(hostA).Ended, "the closest scope around it has the same limits")
	require.Equal(t, int64(10), w.Around(hostA).Ended)

	x := newWorld()
	x.SetScope(hostA, quota.Limits{}, day, 0, 0)
	x.RestoreEnded(hostA, 5)
	require.Equal(t, int64(5*time.Millisecond), x.Exactly(hostA).Ended)
	x.RestoreEnded(hostA, 0)
	require.EqualValues(t, NoneEnded, x.Exactly(hostA).Ended)
	x.RestoreEnded(example, 5)
	require.Equal(t, Each{}, x.Exactly(example))
}

func TestHostIsForgotten(t *testing.T) {
	w := newWorld()
	a := []byte("a.example")
	w.SetScope(all, quota.Limits{}, quota.Limits{Served: 5, Period: 100}, 0, 0)
	require.False(t, w.Use(1, a, quota.Amount{}, 1, 5))
	w.Use(1, a, served, 1, 10)
	until, ok := w.HostCounts(1, a, 20)
	require.True(t, ok)
	require.Equal(t, int64(110), until)
	require.Zero(t, w.Rests(1))
	w.Rest(1, 111)
	require.Equal(t, int64(111), w.Rests(1))
	_, ok = w.HostCounts(1, a, 110)
	require.False(t, ok)
	w.SetScope(all, quota.Limits{}, quota.Limits{Served: 5}, 1, 20)
	until, ok = w.HostCounts(1, a, 1000)
	require.True(t, ok, "for ever")
	require.Equal(t, instant.Never, until)
	w.SetScope(all, quota.Limits{}, quota.Limits{}, 1, 20)
	_, ok = w.HostCounts(1, a, 20)
	require.False(t, ok)
	w.Forget(1)
	require.Zero(t, w.Hosts())
}

func TestClockGoesBack(t *testing.T) {
	w := newWorld()
	l := quota.Limits{Served: 1, Period: 100}
	w.SetScope(example, l, l, 0, 0)
	w.SetCrawl(7, l, 0, 0)
	w.Use(1, []byte("a.example"), served, 1, 50)
	w.UseCrawl(7, served, 1, 50)
	w.HostEnds.Set(1, 150)
	w.CrawlEnds.Set(7, 150)
	var hosts []uint32
	w.Shift(-30, func(id uint32) { hosts = append(hosts, id) })
	require.Equal(t, []uint32{1}, hosts)
	require.Equal(t, int64(120), w.HostEnds.Min())
	require.Equal(t, int64(120), w.CrawlEnds.Min())
	require.Equal(t, int64(120), w.HostSpent(1, []byte("a.example"), 40))
	require.Equal(t, int64(120), w.CrawlSpent(7, 40))
}
