package limit

import (
	"testing"

	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestGateOfDepth(t *testing.T) {
	w := newWorld()
	w.SetScope(example, quota.Limits{Depth: 3}, quota.Limits{}, 0, 0)
	w.SetScope(hostA, quota.Limits{}, quota.Limits{Depth: 2}, 0, 0)
	w.SetCrawl(7, quota.Limits{Depth: 1}, 0, 0)
	g := w.Gate("other")
	require.False(t, g.LimitsDepth(0))
	require.True(t, g.LimitsDepth(7))
	require.False(t, g.LimitsWaiting(7))
	g = w.Gate("a.example")
	require.Equal(t, "a.example", g.Host())
	require.True(t, g.LimitsDepth(0))
	for _, x := range []struct {
		crawl uint32
		depth int
		of    Subject
		most  int64
	}{{0, 4, OfScope(example), 3}, {0, 3, ofHost("a.example"), 2}, {7, 2, OfCrawl(7), 1}} {
		r, refused := g.TooDeep(x.crawl, x.depth)
		require.True(t, refused)
		require.Equal(t, Refusal{Of: x.of, N: int64(x.depth), Most: x.most}, r)
		_, refused = g.TooDeep(0, 2)
		require.False(t, refused)
	}
}

// A naive model keeps the URLs that wait and those on their way; the gate admits exactly
// those for which there is room.
func TestGateAgainstSums(t *testing.T) {
	type url struct {
		host  string
		crawl uint32
	}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		most := map[string]int64{}
		waiting, coming := map[url]int64{}, map[url][]Reservation{}
		sum := func(in func(url) bool) (n int64) {
			for u, k := range waiting {
				if in(u) {
					n += k
				}
			}
			return n
		}
		sumComing := func(in func(url) bool) (n int64) {
			for u, k := range coming {
				if in(u) {
					n += int64(len(k))
				}
			}
			return n
		}
		draw := func(t *rapid.T) url {
			return url{rapid.SampledFrom([]string{"a.example", "b.example", "c.other"}).Draw(t, "host"), rapid.SampledFrom([]uint32{0, 7}).Draw(t, "crawl")}
		}
		limits := func(name string) quota.Limits {
			n := rapid.Int64Range(1, 6).Draw(t, name)
			most[name] = n
			return quota.Limits{Waiting: n}
		}
		w.SetScope(all, limits("all"), limits("each"), 0, 0)
		w.SetScope(example, limits("domain"), quota.Limits{}, 0, 0)
		w.SetScope(hostA, limits("host"), quota.Limits{}, 0, 0)
		w.SetCrawl(7, limits("crawl"), 0, 0)
		require.True(t, w.CountDomains())
		full := func(u url) bool {
			for name, in := range map[string]func(url) bool{
				"all":    func(url) bool { return true },
				"each":   func(x url) bool { return x.host == u.host },
				"domain": func(x url) bool { return x.host != "c.other" },
				"host":   func(x url) bool { return x.host == "a.example" },
				"crawl":  func(x url) bool { return x.crawl == 7 },
			} {
				if in(u) && sum(in)+sumComing(in) >= most[name] {
					return true
				}
			}
			return false
		}
		args := func(u url) Waiting {
			return Waiting{
				All: sum(func(url) bool { return true }), Host: sum(func(x url) bool { return x.host == u.host }),
				Crawl: sum(func(x url) bool { return x.crawl == u.crawl }),
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				u := draw(t)
				g := w.Gate(u.host)
				require.True(t, g.LimitsWaiting(u.crawl))
				r, refused := g.Full(u.crawl, args(u))
				require.Equal(t, full(u), refused)
				require.Equal(t, refused, refused && r.N >= r.Most)
				if !refused {
					coming[u] = append(coming[u], g.Reserve(u.crawl))
				}
			},
			"arrive": func(t *rapid.T) {
				u := draw(t)
				n := len(coming[u])
				if n == 0 {
					t.Skip("none is on its way")
				}
				w.Unreserve(coming[u][n-1], u.host)
				if coming[u] = coming[u][:n-1]; rapid.Bool().Draw(t, "stored") {
					waiting[u]++
					w.Waits([]byte(u.host), 1)
				}
			},
			"hand out": func(t *rapid.T) {
				u := draw(t)
				if waiting[u] == 0 {
					t.Skip("none waits")
				}
				waiting[u]--
				w.Waits([]byte(u.host), -1)
			},
			"": func(t *rapid.T) {
				byHost := map[string]int64{}
				for u, n := range waiting {
					byHost[u.host] += n
				}
				w.check(t, sumComing(func(url) bool { return true }) == 0, byHost)
			},
		})
	})
}

func TestFullIsReportedOnce(t *testing.T) {
	w := newWorld()
	w.SetScope(all, quota.Limits{Waiting: 1}, quota.Limits{}, 0, 0)
	g := w.Gate("a.example")
	require.False(t, g.Closed(Waiting{}))
	require.True(t, g.Closed(Waiting{All: 1}))
	require.Empty(t, w.turns)
	g.Full(0, Waiting{All: 1})
	g.Full(0, Waiting{All: 2})
	require.Len(t, w.turns, 1)
	w.Unreserve(g.Reserve(0), "a.example")
	g.Full(0, Waiting{All: 1})
	require.Len(t, w.turns, 2)
}

// While the hosts of a domain are counted, changes of those that were count, and no others.
func TestCensusGoesByItsCursor(t *testing.T) {
	w := newWorld()
	var none *Book
	c, others := none.BeginCensus(example)
	require.Nil(t, c)
	require.Nil(t, others)
	w.SetScope(example, quota.Limits{Waiting: 100}, quota.Limits{}, 0, 0)
	require.False(t, w.CountsDomains())
	c, _ = w.BeginCensus(example)
	require.NotNil(t, c)
	require.True(t, w.CountsDomains())
	second, others := w.BeginCensus(example)
	require.Nil(t, second)
	require.NotNil(t, others)
	c.Saw([]byte("m.example"), 0)
	for _, host := range []string{"a.example", "m.example", "z.example", "example"} {
		w.Waits([]byte(host), 1)
	}
	c.Saw([]byte("z.example"), 1)
	c.End(true)
	<-others
	w.check(t, true, map[string]int64{"a.example": 1, "m.example": 1, "z.example": 1, "example": 1})
	g := w.Gate("a.example")
	r, refused := g.Full(0, Waiting{})
	require.False(t, refused)
	require.Equal(t, int64(4), r.N)
	c, others = w.BeginCensus(example)
	require.Nil(t, c)
	require.Nil(t, others)
	w.SetScope(example, quota.Limits{Served: 1}, quota.Limits{}, 0, 0)
	require.False(t, w.CountsDomains())
}

// A census that limits overtake counts nothing.
func TestCensusOvertaken(t *testing.T) {
	w := newWorld()
	set := func(l quota.Limits) { w.SetScope(example, l, quota.Limits{}, 0, 0) }
	set(quota.Limits{Waiting: 100})
	old, _ := w.BeginCensus(example)
	set(quota.Limits{})
	set(quota.Limits{Waiting: 10})
	c, _ := w.BeginCensus(example)
	old.Saw([]byte("a.example"), 5)
	old.End(true)
	c.Saw([]byte("a.example"), 2)
	c.End(true)
	w.check(t, true, map[string]int64{"a.example": 2})
}
