package importance

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/metrics"
)

func estimator(t testing.TB, o Options) *Estimator {
	t.Helper()
	if o.Key == 0 {
		o.Key = 7
	}
	x, err := New(o)
	require.NoError(t, err)
	return x
}

func url(i int) string { return "http://h" + strconv.Itoa(i%97) + ".example/" + strconv.Itoa(i) }

func entry(i int) frontier.Entry { return frontier.Entry{URL: url(i), Depth: 1} }

func lease(i int) frontier.Lease {
	return frontier.Lease{Entry: entry(i), Host: fmt.Sprintf("h%d.example", i%97)}
}

// Up to 4 links are counted exactly; Found says a level when it is reached, and only then; what was
// visited has no level any more.
func TestLinksAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Key: rapid.Uint64Range(1, 1<<40).Draw(t, "key")}
		x, err := New(o)
		require.NoError(t, err)
		links, visited := map[int]int{}, map[int]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			i := rapid.IntRange(0, 60).Draw(t, "url")
			switch {
			case links[i] == 0:
				require.Equal(t, 4, x.Priority(entry(i), frontier.History{}))
				links[i] = 1
			case rapid.IntRange(0, 9).Draw(t, "visit") == 0:
				x.Visit(lease(i), true, nil, nil)
				visited[i] = true
			case visited[i]:
				require.Zero(t, x.Found(entry(i)))
			case links[i] < 4:
				links[i]++
				level := x.Found(entry(i))
				require.Equal(t, map[int]int{3: 5}[links[i]], level)
				require.EqualValues(t, links[i], x.Rise(entry(i)))
				require.Equal(t, 3+int(math.Log2(float64(links[i]+1))), x.Priority(frontier.Entry{URL: url(i), Depth: 1, Weight: x.Rise(entry(i))}, frontier.History{}))
			default:
				if level := x.Found(entry(i)); level > 0 {
					require.GreaterOrEqual(t, level, 6)
				}
			}
		}
	})
}

// A count has the right mean, and nine of ten are within one level.
func TestCountsOfManyLinks(t *testing.T) {
	d := &dice{}
	for _, links := range []int{6, 10, 20, 50, 100, 150} {
		const tries = 4000
		sum, near := 0.0, 0
		for range tries {
			c := oneLink
			for range links - 1 {
				c = c.add(1, d)
			}
			sum += c.links()
			if r := c.links() / float64(links); r >= 0.5 && r <= 2 {
				near++
			}
		}
		if links < 100 { // beyond, the highest step cuts
			assert.InEpsilon(t, links, sum/tries, 0.04)
		}
		assert.Greater(t, near, tries*88/100, "%d links", links)
	}
	assert.EqualValues(t, mostCount, oneLink.add(1e300, d))
	assert.EqualValues(t, oneLink, oneLink.add(math.NaN(), d))
	assert.EqualValues(t, oneLink, oneLink.add(-5, d))
}

// Links that counts says nothing of keep their Weight.
func TestCountsOfSomeLinks(t *testing.T) {
	links := []frontier.Entry{{}, {}, {Weight: 5}}
	estimator(t, Options{}).Visit(lease(1), true, links, []float64{3, 0})
	require.Equal(t, []float64{3, nothing, 5}, []float64{links[0].Weight, links[1].Weight, links[2].Weight})
	estimator(t, Options{}).Visit(lease(1), true, links[:1], []float64{2, 7})
	require.Equal(t, 2., links[0].Weight)
}

// The cash of a URL is what was given to it, in whatever order shares, walks and the visit come.
func TestTrustAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, err := New(Options{Score: Trust, Key: rapid.Uint64Range(1, 1<<40).Draw(t, "key")})
		require.NoError(t, err)
		record, cash := map[int]float64{}, map[int]float64{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(1, 30).Draw(t, "url")
			e := entry(i)
			e.Weight = math.Exp2(-float64(rapid.IntRange(0, 20).Draw(t, "share")))
			switch {
			case cash[i] == 0:
				x.Priority(e, frontier.History{})
				record[i], cash[i] = e.Weight, e.Weight
			case rapid.Bool().Draw(t, "walk"):
				e.Weight = record[i]
				record[i] = x.Rise(e)
				require.InEpsilon(t, cash[i], record[i], 0.35)
			default:
				x.Priority(e, frontier.History{})
				x.Found(e)
				cash[i] += e.Weight
			}
			e.Weight = record[i]
			require.InEpsilon(t, cash[i], x.Explain(e).Worth, 0.35)
		}
		for i := range cash {
			l := lease(i)
			l.Entry.Weight = record[i]
			links := []frontier.Entry{entry(100), entry(101)}
			x.Visit(l, true, links, []float64{3, 0})
			require.InEpsilon(t, 0.85*cash[i], links[0].Weight, 0.35)
			require.Positive(t, links[1].Weight)
			require.Less(t, links[1].Weight, 1e-10)
			l.History.Visits = 1 // it has passed on all
			x.Visit(l, true, links, nil)
			require.Negative(t, links[0].Weight)
		}
	})
}

// Seeds share by their Weight; a URL that was added without a page has a tenth of a seed.
func TestTrustOfEntriesWithoutAPage(t *testing.T) {
	x := estimator(t, Options{Score: Trust})
	for _, c := range []struct {
		e    frontier.Entry
		cash float64
	}{{frontier.Entry{URL: "http://a.example/"}, 1}, {frontier.Entry{URL: "http://b.example/", Weight: 3}, 3}, {frontier.Entry{URL: "http://c.example/", Depth: 1}, 0.1}} {
		assert.Equal(t, c.cash, x.Explain(c.e).Worth)
		links := []frontier.Entry{entry(1)}
		x.Visit(frontier.Lease{Entry: c.e, Host: "a.example"}, true, links, nil)
		assert.Equal(t, short(0.85*c.cash), links[0].Weight)
	}
	assert.Equal(t, 8, x.Priority(frontier.Entry{URL: "http://d.example/"}, frontier.History{}), "a seed comes first")
}

// Weights that other code set may be anything.
func TestOddWeights(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		x := estimator(t, Options{Score: score})
		for i, w := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300, 5e-324} {
			for range 3 {
				e := frontier.Entry{URL: url(i), Depth: 1, Weight: w}
				for _, level := range []int{x.Priority(e, frontier.History{}), x.Priority(e, frontier.History{Visits: 1})} {
					require.GreaterOrEqual(t, level, 1)
					require.LessOrEqual(t, level, 8)
				}
				require.LessOrEqual(t, x.Found(e), 8)
				require.False(t, math.IsNaN(x.Rise(e)))
				links := []frontier.Entry{entry(50), entry(51)}
				x.Visit(frontier.Lease{Entry: e}, true, links, []float64{w, 1})
				require.GreaterOrEqual(t, links[0].Weight, 0.0)
				require.GreaterOrEqual(t, x.Weight(entry(1), frontier.History{}), 1e-4)
			}
		}
	}
}

// However often a page is fetched, its links count once, and with Keep pages are worth what they were. A URL that it links to
// newly has one link, or its share.
func TestLinksOfAPageThatIsVisitedAgain(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		x := estimator(t, Options{Score: score, Keep: true})
		for visit := range 100 {
			for i := range 3 { // pages 10 to 12 link to 0, and to 10
				l := lease(10 + i)
				l.History.Visits = visit
				links := []frontier.Entry{entry(0), entry(10)}
				x.Visit(l, true, links, nil)
				for k := range links {
					if visit == 0 && i == 0 {
						x.Priority(links[k], frontier.History{})
					} else {
						x.Found(links[k])
					}
				}
			}
		}
		worth := map[Score][2]float64{Links: {3, 3}, Trust: {0.1 * 0.85 / 2 * 3, 0.1 + 0.1*0.85/2*2}}[score]
		e := entry(0)
		e.Weight = short(worth[0] / 3) // the first link
		if score == Links {
			e.Weight = 0
		}
		assert.InEpsilon(t, worth[0], x.Explain(e).Worth, 0.3, score)
		assert.InEpsilon(t, worth[1], x.Explain(entry(10)).Worth, 0.4, score)
		l, links := lease(10), []frontier.Entry{entry(99)}
		l.History.Visits = 100
		x.Visit(l, true, links, nil)
		assert.Negative(t, links[0].Weight)
		assert.Equal(t, map[Score]float64{Links: 1, Trust: -links[0].Weight}[score], x.Explain(links[0]).Worth)
		assert.Zero(t, x.Found(links[0]))
	}
}

// Weights are rounded to what takes two bytes in a record.
func TestWeightsAreShort(t *testing.T) {
	for _, w := range []float64{0, 1, 255, 0.425, math.Pi, nothing, mostLinks} {
		got := short(w)
		require.InEpsilon(t, w+1, got+1, 1./512)
		require.Zero(t, math.Float32bits(float32(got))<<16)
		require.Equal(t, got, float64(float32(got)))
	}
}

// A part of what waits is in each level, whatever the scale of the scores.
func TestRanks(t *testing.T) {
	r := newRanks(8)
	d := &dice{}
	for range 20_000 {
		r.add(int(120*d.roll()), 1)
	}
	at := map[int]int{}
	for range 20_000 {
		at[r.level(int(120*d.roll()))]++
	}
	for level, want := range []float64{1: .15, .4675, .21, .095, .043, .019, .009, .007} {
		assert.InDelta(t, want, float64(at[level])/20_000, 0.03, "level %d", level)
	}
	assert.Equal(t, 8, r.level(rankOfShare(math.Inf(1))))
	assert.Equal(t, 1, r.level(rankOfShare(math.NaN())))
}

// A host sinks when it has shown enough evidence, by two levels for each halving, and
// comes back.
func TestHostsSink(t *testing.T) {
	h := newHosts(1<<16, 8, &dice{})
	visit := func(n int, useful bool) (standing, moves int) {
		for range n {
			if s, moved := h.visited(1, useful, false); moved {
				moves++
				standing = s
			}
		}
		return standing, moves
	}
	s, moves := visit(2, false)
	assert.Zero(t, moves, "by two bad pages: %d", s)
	s, _ = visit(8, false) // 10 of 20
	assert.Equal(t, -2, s)
	s, moves = visit(100_000, false)
	assert.Equal(t, -7, s, "never below the lowest level")
	assert.LessOrEqual(t, moves, 5)
	s, _ = visit(10_000, true)
	assert.Zero(t, s)
	for i := range 10_000 { // as the spike: 5 % false alarms
		_, moved := h.visited(2, i%20 != 7, false)
		require.False(t, moved)
	}
}

// What was said of a host can be taken back, however many hosts come after it.
func TestASunkHostIsNotForgotten(t *testing.T) {
	h := newHosts(4096, 8, &dice{})
	for range 20 {
		h.visited(0, false, false)
	}
	sunk := h.of(0).sunk()
	require.Positive(t, sunk)
	for i := range uint64(100_000) {
		h.visited(i*0x9e3779b97f4a7c15+1, true, false)
	}
	assert.Equal(t, sunk, h.of(0).sunk())
}

// One URL that is linked a million times, and a million URLs that are linked twice, take nothing from
// URLs with many links.
func TestFloods(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		t.Run(score.String(), func(t *testing.T) {
			x := estimator(t, Options{Score: score, Memory: 64 << 10})
			share := func(i int, w float64) frontier.Entry {
				e := entry(i)
				if score == Trust {
					e.Weight = w
				}
				return e
			}
			for i := range 1000 {
				for range 64 {
					x.Found(share(i, 0.01))
				}
			}
			for range 1_000_000 {
				x.Found(share(5000, 1e-4))
			}
			for i := range 500_000 {
				x.Found(share(10_000+i, 1e-6))
				x.Found(share(10_000+i, 1e-6))
			}
			kept := 0
			for i := range 1000 {
				if e := x.Explain(share(i, 0.01)); score == Links && e.Worth >= 16 || score == Trust && e.Worth > 0.1 {
					kept++
				}
			}
			assert.Greater(t, kept, 800)
			assert.LessOrEqual(t, x.Found(share(5000, 1e-4)), 8)
		})
	}
}

// A page that was visited is searched for again rarely, however many links to it follow.
func TestVisitedPagesThatAreLinkedAreKept(t *testing.T) {
	x := estimator(t, Options{Memory: 4 << 10, Key: 7})
	for i := range 100 {
		x.Visit(lease(i), true, nil, nil)
	}
	noted := 0
	for i := range 200_000 {
		x.Found(entry(1000 + i/2))
		if x.Found(entry(i%100)) > 0 {
			noted++
		}
	}
	require.Less(t, noted, 50)
}

// URLs that share a cell under one key do not under another.
func TestCollisionsNeedTheKey(t *testing.T) {
	print := func(k key, i int) uint64 { return k.url(0, url(i)) & 0xfff }
	mine, theirs := key{1, 2}, key{3, 4}
	same, n := 0, 0
	for i := range 200_000 {
		if print(mine, i) == print(mine, 0) {
			n++
			if print(theirs, i) == print(theirs, 0) {
				same++
			}
		}
	}
	assert.Greater(t, n, 20)
	assert.Less(t, same, 5)
	assert.NotEqual(t, mine.url(0, "http://a.example/"), mine.url(1, "http://a.example/"), "crawls")
	a, err := New(Options{Memory: 4096})
	require.NoError(t, err)
	b, err := New(Options{Memory: 4096})
	require.NoError(t, err)
	assert.NotEqual(t, a.key, b.key)
}

// Tables take what Memory says.
func TestMemory(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		x := estimator(t, Options{Score: score, Memory: 1 << 20})
		bytes := 8 * len(x.hosts.table.cells)
		switch s := x.score.(type) {
		case *byLinks:
			bytes += 2 * len(s.table.cells)
		case *byTrust:
			bytes += 4 * len(s.table.cells)
		}
		assert.LessOrEqual(t, bytes, 1<<20)
		assert.Greater(t, bytes, 1<<20-64)
	}
}

func TestOptions(t *testing.T) {
	_, err := New(Options{Score: 7, Levels: -1, Memory: 5})
	require.Error(t, err)
	for _, want := range []string{"Score is 7", "Levels is -1", "Memory is 5"} {
		assert.ErrorContains(t, err, want)
	}
}

// A page's weight is relative to the mean, and small on a host without useful pages.
func TestWeight(t *testing.T) {
	x := estimator(t, Options{Keep: true})
	for i := range 100 {
		for range i % 4 {
			x.Found(entry(i))
		}
	}
	for i := range 100 {
		x.Visit(lease(i), i%97 != 3, nil, nil)
	}
	assert.InEpsilon(t, 1/2.5, x.Weight(entry(4), frontier.History{}), 0.1)
	assert.InEpsilon(t, 3/2.5, x.Weight(entry(2), frontier.History{}), 0.1)
	before := x.Weight(entry(3), frontier.History{})
	for range 10 {
		x.Visit(lease(100), false, nil, nil) // of the same host
	}
	assert.InEpsilon(t, before/3, x.Weight(entry(3), frontier.History{}), 0.3)
	x.Found(entry(2))
	assert.Greater(t, x.Weight(entry(2), frontier.History{}), 4/2.5*0.9, "a link to a page that was visited counts")
	assert.Equal(t, 1e-4, x.Weight(frontier.Entry{URL: "bad", Weight: 1e-30}, frontier.History{}))
	assert.Equal(t, 1e4, x.Weight(frontier.Entry{URL: "http://z.example/", Weight: 1e30}, frontier.History{}))
}

func TestExplain(t *testing.T) {
	x := estimator(t, Options{})
	known := func() Explanation { e := x.Explain(entry(1)); e.Links, e.Weight = 0, 0; return e }
	assert.Equal(t, Explanation{Worth: 1, Level: 4, Useful: 1}, known())
	for range 3 {
		x.Found(entry(1))
	}
	for range 30 {
		x.Visit(lease(98), false, nil, nil)
	}
	e := known()
	assert.InDelta(t, 0.23, e.Useful, 0.01)
	e.Useful = 0
	assert.Equal(t, Explanation{Worth: 4, Level: 5, Pages: 30, Sunk: 4}, e)
	x = estimator(t, Options{Score: Trust})
	assert.Equal(t, Explanation{Score: Trust, Worth: 0.1, Level: 1, Useful: 1}, known())
}

func TestCounts(t *testing.T) {
	x := estimator(t, Options{})
	for range 3 { // 2, 3 and 4 links: the level of 3 is another
		x.Found(entry(1))
	}
	x.Visit(lease(1), true, nil, nil)
	x.Found(entry(1))
	assert.Equal(t, Counts{Links: 4, Noted: 1}, x.Counts())
}

// read has what a Source reported, by name.
type read map[string]float64

func (r read) Number(m *metrics.Metric, _ string, v float64)            { r[m.Name] = v }
func (r read) Histogram(*metrics.Metric, string, *metrics.Distribution) {}

func TestFigures(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		x := estimator(t, Options{Score: score, Memory: 1 << 20})
		newWeb(1).crawl(x, 100)
		c, s, got := x.Counts(), Figures(x), read{}
		require.Greater(t, c.Links, c.Noted)
		require.Positive(t, c.Noted)
		want := read{"frontier_importance_links_total": float64(c.Links), "frontier_importance_notes_total": float64(c.Noted)}
		if score == Trust {
			want["frontier_importance_covered"] = c.Covered
		}
		s.Read(got)
		assert.Equal(t, want, got)
		for _, m := range s.Metrics() {
			assert.Contains(t, got, m.Name)
		}
		assert.Len(t, s.Metrics(), len(got))
	}
}

// Everything may be called at once.
func TestConcurrently(t *testing.T) {
	for _, score := range []Score{Links, Trust} {
		x := estimator(t, Options{Score: score, Memory: 8192})
		file := filepath.Join(t.TempDir(), "snapshot")
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for i := range 5000 {
					e := entry(i % 500)
					x.Priority(e, frontier.History{})
					x.Found(e)
					x.Rise(e)
					x.Visit(lease(i%500), i%3 == 0, []frontier.Entry{entry(w), entry(i)}, nil)
					x.Weight(e, frontier.History{})
					x.Explain(e)
				}
				assert.NoError(t, x.Save(file+strconv.Itoa(w)))
			})
		}
		wg.Wait()
		require.NoError(t, estimator(t, x.opts).Load(file+"0"))
	}
}
