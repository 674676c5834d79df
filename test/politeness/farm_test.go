// This file tests what a farm of sites that link to each other does to a frontier whose URLs rise.

package politeness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// farmSize returns how many hosts a farm has, and how often one of its URLs is linked:
//
//	go test -run Farm -v ./test/politeness -frontier.long
func farmSize() (hosts, links int) {
	if *harness.Long {
		return 10_000, 1_000_000
	}
	return 2_000, 50_000
}

func estimatorOf(tb testing.TB, s importance.Score, memory int64) *importance.Estimator {
	tb.Helper()
	x, err := importance.New(importance.Options{Score: s, Memory: memory, Key: 1})
	require.NoError(tb, err)
	return x
}

// limits watches what an attack may grow.
type limits struct {
	*harness.World
	notes, memory int64 // the most that there was
}

// add adds URLs, and looks at the memory.
func (l *limits) add(urls ...string) {
	l.Helper()
	entries := make([]frontier.Entry, len(urls))
	for i, u := range urls {
		entries[i] = frontier.Entry{URL: u, Depth: 1}
	}
	_, err := l.F.Add(context.Background(), entries...)
	require.NoError(l, err)
	l.notes = max(l.notes, hook.Of(l.F).NotesSize())
	l.memory = max(l.memory, l.F.Stats().MemoryBytes)
}

// The pages of a farm are linked in rounds, so that each of its hosts has a few notes, and one of them without end. The notes
// and the frontier keep to their memory. Pages of an honest host that are linked meanwhile rise, and a large honest site is
// not searched for each of its notes.
func TestNotesOfAFarm(t *testing.T) {
	const each, large = 40, 20_000
	hosts, links := farmSize()
	o := frontier.Options{Prioritizer: estimatorOf(t, importance.Links, 4<<20), Selector: selector.Strict(), MemoryBudget: 8<<20 + int64(hosts)*300}
	l := &limits{World: harness.NewStoredWorld(t, o, spill.Options{})}
	l.addAll(100, func(i int) string { return fmt.Sprintf("http://honest.example/%d", i) })
	l.addAll(large, func(i int) string { return fmt.Sprintf("http://large.example/%d", i) })
	farm := func(i int) string { return fmt.Sprintf("http://f%d.example/%d", i%hosts, i/hosts) }
	l.addAll(hosts*each, farm)
	l.OnDisk()
	for round := range 4 {
		l.addAll(2*hosts, func(i int) string { return farm(i/2 + round*hosts) })
		l.addAll(40, func(i int) string { return fmt.Sprintf("http://large.example/%d", 100*round+i/2) })
	}
	l.addAll(links, func(int) string { return farm(0) })
	for range 40 {
		linked(l.World, "http://honest.example/7", "http://honest.example/8")
	}
	r := l.F.Stats()
	t.Logf("%d hosts with %d URLs each, %d links to one: %d notes, %d dropped, %d walks, %d records read; at most %d bytes of notes of %d, and %d of %d",
		hosts, each, links, r.Noted, r.Unnoted, r.Walks, r.Walked, l.notes, l.Options.MemoryBudget/64, l.memory, l.Options.MemoryBudget)
	assert.LessOrEqual(t, l.notes, l.Options.MemoryBudget/64)
	assert.LessOrEqual(t, l.memory, l.Options.MemoryBudget)
	assert.Less(t, r.Walked, int64(8*hosts*each))
	assert.Equal(t, "http://honest.example/7", l.first("honest.example"))
}

// addAll adds n URLs.
func (l *limits) addAll(n int, url func(i int) string) {
	l.Helper()
	for from := 0; from < n; from += 1000 {
		var urls []string
		for i := from; i < min(n, from+1000); i++ {
			urls = append(urls, url(i))
		}
		l.add(urls...)
	}
}

// first returns the URL that a host hands out first.
func (l *limits) first(host string) string {
	for range 100_000 {
		x := l.Next()
		require.NoError(l, l.F.Done(x, frontier.Outcome{}))
		if x.Host == host {
			return x.Entry.URL
		}
	}
	return ""
}

// Hosts whose URLs have all been handed out leave notes behind. There is room for others nevertheless.
func TestNotesOfFinishedHosts(t *testing.T) {
	hosts, _ := farmSize()
	o := frontier.Options{Prioritizer: &counting{}, Priorities: 8, Selector: selector.Strict(), Delay: frontier.FixedDelay(0), MemoryBudget: 4<<20 + int64(hosts)*1000}
	l := &limits{World: harness.NewStoredWorld(t, o, spill.Options{})}
	farm := func(i int) string { return fmt.Sprintf("http://f%d.example/%d", i%hosts, i/hosts) }
	l.addAll(hosts*40, farm)
	l.addAll(hosts, farm)
	for range hosts * 40 {
		require.NoError(t, l.F.Done(l.Next(), frontier.Outcome{}))
	}
	l.AddMany("large.example", 20_000)
	before := l.F.Stats()
	for i := range 700 {
		l.add(fmt.Sprintf("http://large.example/%d", 25*i))
	}
	hook.Of(l.F).Sweep()
	r := l.F.Stats()
	t.Logf("%d hosts, at most %d bytes of notes: %d dropped; %d notes of another, %d dropped, %d walks, %d records read", hosts, l.notes, before.Unnoted, r.Noted-before.Noted, r.Unnoted-before.Unnoted, r.Walks-before.Walks, r.Walked-before.Walked)
	assert.LessOrEqual(t, l.notes, o.MemoryBudget/64)
	assert.Greater(t, r.Risen-before.Risen, int64(600))
	assert.Less(t, r.Walked-before.Walked, int64(100_000))
}

// farmWeb is a web of honest hosts, with or without a farm.
type farmWeb struct {
	honest, farm int // hosts
}

const (
	honestPages = 60 // of each host
	farmPages   = 5
)

// links returns the links of a page. Honest pages link to their host, and to the well-known ones; one in a hundred such
// links leads to the farm. The farm's pages link to any of them, and all to the first.
func (w farmWeb) links(r *rand.Rand, url string) (out []frontier.Entry) {
	add := func(kind byte, host, page int) {
		out = append(out, frontier.Entry{URL: fmt.Sprintf("http://%c%d.example/%d", kind, host, page), Depth: 1})
	}
	var kind byte
	var host, page int
	if _, err := fmt.Sscanf(url, "http://%c%d.example/%d", &kind, &host, &page); err != nil {
		panic(err) // it is one of ours
	}
	if kind == 'f' {
		add('f', 0, 0)
		for range 12 {
			add('f', r.IntN(w.farm), r.IntN(farmPages))
		}
		return out
	}
	for range 6 {
		add('h', host, r.IntN(honestPages))
	}
	for range 4 {
		add('h', int(float64(w.honest)*r.Float64()*r.Float64()), 0)
		if w.farm > 0 && r.IntN(100) == 0 {
			add('f', r.IntN(w.farm), 0)
		}
	}
	return out
}

// crawl fetches for some seconds, at most a number of pages in each, and returns how many are honest.
func (w farmWeb) crawl(t *testing.T, o frontier.Options, seconds, most int) (honest, farm int) {
	o.Delay, o.KeepOpen = frontier.FixedDelay(10*time.Second), true
	x := harness.NewWorld(t, o)
	est, _ := o.Prioritizer.(*importance.Estimator)
	r := rand.New(rand.NewPCG(1, 2))
	for h := range w.honest / 4 {
		x.Add(fmt.Sprintf("http://h%d.example/0", h))
	}
	for range seconds {
		for range most {
			l, _, err := x.F.TryNext()
			if errors.Is(err, frontier.ErrNotDue) {
				break
			}
			require.NoError(t, err)
			if l.Host[0] == 'h' {
				honest++
			} else {
				farm++
			}
			links := w.links(r, l.Entry.URL)
			if est != nil {
				est.Visit(l, true, links, nil)
			}
			require.NoError(t, x.F.Done(l, frontier.Outcome{Add: links}))
			hook.Of(x.F).Sweep()
		}
		x.Clock.Advance(time.Second)
	}
	return honest, farm
}

// A crawler that has time for every host that may be contacted gives honest hosts as much as without a farm. One that has
// time for half of the honest hosts only gives them by trust more than by the other orders.
func TestHonestHostsBesideAFarm(t *testing.T) {
	const honest, seconds = 400, 500
	farm, _ := farmSize()
	shares := map[string]float64{}
	for _, most := range []int{1 << 20, honest / 20} {
		for _, x := range []struct {
			name string
			o    func() frontier.Options
		}{
			{"default", func() frontier.Options { return frontier.Options{Selector: selector.BiasedRandom(1)} }},
			{"links", func() frontier.Options {
				return frontier.Options{Prioritizer: estimatorOf(t, importance.Links, 1<<20), Selector: selector.Strict()}
			}},
			{"trust", func() frontier.Options {
				return frontier.Options{Prioritizer: estimatorOf(t, importance.Trust, 1<<20), Selector: selector.Strict()}
			}},
		} {
			alone, _ := farmWeb{honest, 0}.crawl(t, x.o(), seconds, most)
			beside, spam := farmWeb{honest, farm}.crawl(t, x.o(), seconds, most)
			shares[x.name] = float64(beside) / float64(alone)
			t.Logf("at most %d a second, %s: %d pages of honest hosts without a farm, %d beside it and %d of the farm", most, x.name, alone, beside, spam)
			if most > honest {
				assert.InDelta(t, 1, shares[x.name], 0.02, x.name)
			}
		}
	}
	assert.Greater(t, shares["trust"], 0.6)
	assert.Greater(t, shares["trust"], 2*shares["default"])
}
