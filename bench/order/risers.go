// This file holds the orders in which the frontier itself moves what waits.

package main

import (
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/selector"
)

func init() {
	orders = append(orders,
		order{"in-links risen", func(c *crawl, _ uint64, o *frontier.Options) {
			c.scorer, c.fixed = newInlinks(c), true
			o.Prioritizer, o.Selector = riser{c}, selector.Strict()
		}},
		estimated("links", importance.Links, 0.75, false),
		biased(estimated("links biased", importance.Links, 0.75, false)),
		estimated("links 1/4 byte", importance.Links, 0.25, false),
		estimated("links useful", importance.Links, 0.75, true),
		estimated("trust", importance.Trust, 2, false),
		biased(estimated("trust biased", importance.Trust, 2, false)),
		estimated("trust useful", importance.Trust, 2, true),
	)
}

// riser lets the frontier move pages by exact scores.
type riser struct{ *crawl }

func (r riser) Priority(e frontier.Entry, _ frontier.History) int {
	return r.scorer.level(pageOf(e.URL))
}

func (r riser) Found(e frontier.Entry) int {
	p := pageOf(e.URL)
	level := r.scorer.level(p)
	if r.fetched[p] || level <= int(r.at[p]) {
		return 0
	}
	r.at[p] = uint8(level)
	return level
}

func (riser) Rise(frontier.Entry) float64 { return 0 }

// estimated is an order of package importance, with a number of bytes for each page. If useful is true it learns
// which pages are useless: 90 % of traps, half of the spam, and 5 % of the good ones.
func estimated(name string, score importance.Score, bytes float64, useful bool) order {
	return order{name, func(c *crawl, seed uint64, o *frontier.Options) {
		est, err := importance.New(importance.Options{Score: score, Memory: max(4096, int64(bytes*float64(c.reach))), Key: seed})
		if err != nil {
			panic(err) // the options are ours
		}
		c.est, o.Prioritizer, o.Selector = est, est, selector.Strict()
		c.outlinks = func(l *frontier.Lease, links []frontier.Entry) error {
			p := pageOf(l.Entry.URL)
			use := !useful || uint64(p)*0x9e3779b97f4a7c15>>40%100 >= [...]uint64{good: 5, spam: 50, trap: 90}[c.kind[p]]
			standing, moved := est.Visit(*l, use, links, nil)
			if !moved {
				return nil
			}
			return c.SetStanding(l.Host, standing)
		}
	}}
}

// biased is an order with the default Selector: each level has a share.
func biased(of order) order {
	open := of.open
	of.open = func(c *crawl, seed uint64, o *frontier.Options) {
		open(c, seed, o)
		o.Selector = selector.BiasedRandom(seed)
	}
	return of
}

// settle waits until the frontier has moved what it knows should be.
func (c *crawl) settle() { hook.Of(c.Frontier).Sweep() }
