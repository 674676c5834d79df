// This file implements the frontier's Riser, and learns from visits.

package importance

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/seed-7440039f/frontier"
)

// Estimator estimates how important URLs are while they are crawled. It is a frontier.Riser: give it to
// frontier.Options.Prioritizer, and to crawler.Options.Importance or call Visit. It serves one
// frontier: what it learns of two would be mixed. Safe for concurrent use.
type Estimator struct {
	opts  Options // read-only after New
	key   key
	score score
	hosts *hosts

	links atomic.Int64 // to known URLs
	noted atomic.Int64 // of these, those for which Found returned a level
	pages atomic.Int64 // visited
	worth atomic.Int64 // of them together, in 2^-20
}

// score is a way to estimate.
type score interface {
	priority(s sight) (level int)
	found(s sight) (level int)
	rise(s sight) (weight float64)
	// visited returns what the page is worth.
	visited(s sight) float64
	// pass returns the weight of a link: the page's worth, what the link counts, and the sum of all.
	pass(worth, counts, sum float64) float64
	// worth is that of a URL, for Weight and Explain, and deserves its level.
	worth(s sight) float64
	deserves(s sight) (level int)
	links(s sight) float64
	// covered is Counts.Covered.
	covered() float64

	cells() int64
	save(w io.Writer) error
	load(r io.Reader) error
}

// sight is what a score sees of an Entry.
type sight struct {
	key    *key
	crawl  uint32
	url    string
	weight float64 // 0 or more, or NaN
	seed   bool
	fresh  bool // the URL was never tried
	first  bool // it was never visited
}

// hash is that of its crawl and URL. Most URLs are asked for once, with one link: that takes none.
func (s *sight) hash() uint64 { return s.key.url(s.crawl, s.url) }

// unknown is the history of a URL where that does not matter.
var unknown frontier.History

func (x *Estimator) sight(e *frontier.Entry, h *frontier.History) sight {
	return sight{&x.key, e.Crawl, e.URL, math.Abs(e.Weight), e.Depth == 0, *h == frontier.History{}, h.Visits == 0}
}

// New returns an Estimator that knows nothing, or an error that names every option out of range.
func New(o Options) (*Estimator, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("importance: options: %w", err)
	}
	x := &Estimator{opts: o}
	x.reset()
	return x, nil
}

// reset forgets everything, the key too.
func (x *Estimator) reset() {
	o := &x.opts
	x.key = key{rand.Uint64(), rand.Uint64()}
	if o.Key != 0 {
		x.key = key{o.Key, o.Key}
	}
	x.pages.Store(0)
	x.worth.Store(0)
	d := &dice{}
	d.state.Store(x.key[0] ^ x.key[1]<<1)
	x.hosts = newHosts(o.Memory/2, o.Levels, d)
	if o.Score == Trust {
		x.score = newByTrust(o.Memory/2, o, d)
	} else {
		x.score = newByLinks(o.Memory/2, o, d)
	}
}

// Priority implements frontier.Prioritizer. Seeds come first: no link speaks for them.
func (x *Estimator) Priority(e frontier.Entry, h frontier.History) int {
	s := x.sight(&e, &h)
	p := x.score.priority(s)
	if s.seed && h.Visits == 0 {
		return x.opts.Levels
	}
	return p
}

// Found implements frontier.Riser: there is one more link to a known URL.
func (x *Estimator) Found(e frontier.Entry) int {
	if e.Weight < 0 { // the page was visited before: its links were counted then
		return 0
	}
	level := x.score.found(x.sight(&e, &unknown))
	x.links.Add(1)
	if level > 0 {
		x.noted.Add(1)
	}
	return level
}

// Rise implements frontier.Riser.
func (x *Estimator) Rise(waiting frontier.Entry) (weight float64) {
	return short(x.score.rise(x.sight(&waiting, &unknown)))
}

// Visit is called when a page was fetched, before Done, with its links. It sets their Weight: what the
// page gives to each, negative if the page was visited before: then only what is new counts. counts says
// what each link counts, and those behind its end keep their Weight; nil: 1 each. If moved is true, the page's host should be moved to that standing, with
// frontier.SetStanding.
func (x *Estimator) Visit(l frontier.Lease, useful bool, links []frontier.Entry, counts []float64) (standing int, moved bool) {
	counts = counts[:min(len(counts), len(links))]
	g := x.visited(&l, counts)
	for i, n := range counts {
		links[i].Weight = g.weight(n)
	}
	if counts == nil {
		g.sum = float64(len(links))
		for i := range links {
			links[i].Weight = g.weight(1)
		}
	}
	return x.hosts.visited(x.key.host(l.Host), useful, false)
}

// gift is what a page gives to its links.
type gift struct {
	score      score
	worth, sum float64 // of the page, and what its links count
	again      bool    // it was visited before

	links, each float64 // what the last link counts and got: most get the same
}

// visited notes a visit of a page whose links count so much.
func (x *Estimator) visited(l *frontier.Lease, counts []float64) gift {
	g := gift{score: x.score, worth: x.score.visited(x.sight(&l.Entry, &l.History)), again: l.History.Visits > 0, links: math.NaN()}
	x.pages.Add(1)
	x.worth.Add(int64(g.worth * worthUnit))
	for _, n := range counts {
		g.sum += bounded(n)
	}
	return g
}

// weight returns the Weight of a link.
func (g *gift) weight(links float64) float64 {
	if links != g.links {
		if g.links, g.each = links, short(g.score.pass(g.worth, bounded(links), g.sum)); g.again {
			g.each = -cmp.Or(g.each, 1)
		}
	}
	return g.each
}

// bounded is what a link counts that should count n.
func bounded(n float64) float64 {
	if n > 0 { // no NaN
		return min(n, mostLinks)
	}
	return 0
}

// short rounds a weight to a mantissa of 8 bits, so that its record is short.
func short(weight float64) float64 {
	const low = 1 << 16 // of the bits of a float32
	return float64(math.Float32frombits((math.Float32bits(float32(weight)) + low/2) &^ (low - 1)))
}

const worthUnit = 1 << 20
