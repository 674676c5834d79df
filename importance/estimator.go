// This file implements the frontier's Riser, and learns from visits.

package importance

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/seed-7440039f/frontier"
)

// Estimator estimates how important URLs are while they are crawled. It is a frontier.Riser: give it to
// frontier.Options.Prioritizer, and to crawler.Options.Importance or call Visit. Safe for concurrent use.
type Estimator struct {
	opts  Options // read-only after New
	key   key
	dice  *dice
	score score
	hosts *hosts

	pages atomic.Int64 // visited
	worth atomic.Int64 // of them together, in 2^-20
}

// score is a way to estimate. hash is that of the URL.
type score interface {
	priority(hash uint64, e *frontier.Entry, h *frontier.History) int
	found(hash uint64, e *frontier.Entry) (level int)
	rise(hash uint64, e *frontier.Entry) (weight float64)
	// visited returns what the page is worth.
	visited(hash uint64, l *frontier.Lease) float64
	// pass returns the weight of a link: the page's worth, what the link counts, and the sum of all.
	pass(worth, counts, sum float64) float64
	// worth is that of a URL, for Weight and Explain.
	worth(hash uint64, e *frontier.Entry) float64
}

// New returns an Estimator that knows nothing, or an error that names every option out of range.
func New(o Options) (*Estimator, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("importance: options: %w", err)
	}
	x := &Estimator{opts: o, key: key{rand.Uint64(), rand.Uint64()}, dice: &dice{}}
	if o.Key != 0 {
		x.key = key{o.Key, o.Key}
	}
	x.dice.state.Store(x.key[0] ^ x.key[1]<<1)
	x.hosts = newHosts(o.Memory/8, o.Levels, x.dice)
	if o.Score == Trust {
		x.score = newByTrust(o.Memory-o.Memory/8, &o, x.dice)
	} else {
		x.score = newByLinks(o.Memory-o.Memory/8, &o, x.dice)
	}
	return x, nil
}

// Priority implements frontier.Prioritizer. Seeds come first: they have nobody else to speak for them.
func (x *Estimator) Priority(e frontier.Entry, h frontier.History) int {
	p := x.score.priority(x.hash(&e), &e, &h)
	if e.Depth == 0 && h.Visits == 0 {
		return x.opts.Levels
	}
	return p
}

// Found implements frontier.Riser: there is one more link to a known URL.
func (x *Estimator) Found(e frontier.Entry) int { return x.score.found(x.hash(&e), &e) }

// Rise implements frontier.Riser.
func (x *Estimator) Rise(waiting frontier.Entry) (weight float64) {
	return x.score.rise(x.hash(&waiting), &waiting)
}

// Visit is called when a page was fetched, before Done, with its links. It sets their Weight: what the
// page gives to each. counts says what each link counts; nil: 1. If moved is true, the page's host should
// be moved to that standing, with frontier.SetStanding.
func (x *Estimator) Visit(l frontier.Lease, useful bool, links []frontier.Entry, counts []float64) (standing int, moved bool) {
	worth := x.score.visited(x.hash(&l.Entry), &l)
	x.pages.Add(1)
	x.worth.Add(int64(worth * worthUnit))
	sum := float64(len(links))
	if counts != nil {
		sum = 0
		for _, n := range counts {
			sum += n
		}
	}
	for i := range links {
		n := 1.0
		if counts != nil {
			n = counts[i]
		}
		links[i].Weight = x.score.pass(worth, n, sum)
	}
	return x.hosts.visited(x.key.host(l.Host), useful)
}

const worthUnit = 1 << 20

func (x *Estimator) hash(e *frontier.Entry) uint64 { return x.key.url(e.Crawl, e.URL) }
