// This file calls the Importance option, and finds the link behind each entry of a page.

package crawler

import (
	"iter"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// Importance learns from pages which URLs are important. All workers call it concurrently.
type Importance interface {
	// Visited gets each answer that will not be retried, after OnPage. It may set the Weight of p.Add.
	// If moved is true, the host of the page moves to that standing: see frontier.SetStanding.
	Visited(p *Page) (standing int, moved bool)
}

// stander is a Frontier whose hosts can sink.
type stander interface {
	SetStanding(host string, levels int) error
}

// weigh reports an answer to Importance.
func (c *Crawler) weigh(p *Page) {
	if c.opts.Importance == nil || p.Outcome.Result >= frontier.Failed || !p.Outcome.Next.IsZero() {
		return
	}
	standing, moved := c.opts.Importance.Visited(p)
	f, ok := c.frontier.(stander)
	if !moved || !ok {
		return
	}
	if err := f.SetStanding(p.Lease.Host, standing); err != nil {
		c.log.Warn("a host keeps its standing", "host", p.Lease.Host, "url", fetch.Redact(p.URL), "error", err)
	}
}

// Links returns the index of each entry of Add with the link of Doc that it comes from. It omits the
// entries that come from no link: those that OnPage added, and the target of a redirect.
func (p *Page) Links() iter.Seq2[int, *link.Link] {
	return func(yield func(int, *link.Link) bool) {
		if p.Doc == nil {
			return
		}
		of := make(map[string]*link.Link, len(p.Add))
		for i := range p.Doc.Links {
			l := &p.Doc.Links[i]
			if first := of[l.URL]; first == nil || first.NoFollow && !l.NoFollow {
				of[l.URL] = l
			}
		}
		for i := range p.Add {
			if l := of[p.Add[i].URL]; l != nil && !yield(i, l) {
				return
			}
		}
	}
}
