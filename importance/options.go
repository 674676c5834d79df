// This file has the options of an Estimator.

package importance

import (
	"cmp"
	"errors"

	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/internal/faults"
)

// Score is what an Estimator orders by.
type Score int

const (
	// Links orders by the number of links to a URL: the levels begin at 1, 3, 7, 15 links.
	Links Score = iota
	// Trust orders by what the seeds give to a URL over links, times the square of the number of
	// links. Farms of sites that link to each other get little.
	Trust
)

// String returns the score's name in lower case.
func (s Score) String() string {
	if s == Trust {
		return "trust"
	}
	return "links"
}

// Options configure an Estimator. The zero value is suitable for a frontier with 8 priorities.
type Options struct {
	Score Score
	// Levels is the frontier's Options.Priorities. Zero means 8.
	Levels int
	// Memory is how many bytes the tables take, from the start and for good. Zero means 64 MiB. For
	// each URL that is found, three quarters of a byte are plenty for Links, and two bytes for Trust. With less, the
	// URLs with few links are forgotten first.
	Memory int64
	// Keep says that pages are visited again, so that links to visited pages are still counted, for
	// Weight.
	Keep bool
	// Relevance returns what a link of a page counts: 1 is a link, 0 is none. Nil counts 1, and 0 for
	// links that the page does not endorse (nofollow, ugc, sponsored). It is called from any goroutine.
	Relevance func(p *crawler.Page, l *link.Link) float64
	// Useful reports whether a page was worth its fetch. Nil means one that was answered and is no copy:
	// see Useful. Of pages that were never there, every second counts as useful all the same. It is called from any goroutine.
	Useful func(p *crawler.Page) bool
	// Key makes runs repeatable, for simulations. It must be a secret: with it a site could choose
	// URLs that share one memory cell. Zero means a random one.
	Key uint64
}

func (o Options) withDefaults() Options {
	o.Levels = cmp.Or(o.Levels, 8)
	o.Memory = cmp.Or(o.Memory, 64<<20)
	if o.Relevance == nil {
		o.Relevance = Endorsed
	}
	if o.Useful == nil {
		o.Useful = Useful
	}
	return o
}

func (o *Options) validate() error { // runs after withDefaults
	var wrong faults.List
	wrong.If(o.Score != Links && o.Score != Trust, "Score is %d; want Links or Trust", o.Score)
	wrong.If(o.Levels < 1, "Levels is %d; want >= 1", o.Levels)
	wrong.If(o.Memory < 4096, "Memory is %d; want >= 4096", o.Memory)
	return errors.Join(wrong...)
}
