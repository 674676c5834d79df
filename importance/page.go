// This file connects an Estimator with a crawler.

package importance

import (
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// Endorsed is the default of Options.Relevance: 0 for links with nofollow, ugc or sponsored, 1 for others.
func Endorsed(_ *crawler.Page, l *link.Link) float64 {
	if l.NoFollow {
		return 0
	}
	return 1
}

// Useful is the default of Options.Useful.
func Useful(p *crawler.Page) bool { return p.Status < 400 }
