// This file judges requests as colly does before it performs them. The queue must know before it
// contacts a host for robots.txt, and when a link is found.

package frontiercolly

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"

	"github.com/gocolly/colly/v2"
)

// check returns colly's error for a request that the settings of c forbid.
func check(c *colly.Collector, k *request) error {
	u, err := url.Parse(k.URL)
	if err != nil {
		return fmt.Errorf("frontiercolly: %w", err)
	}
	matches := func(filters []*regexp.Regexp) bool {
		return slices.ContainsFunc(filters, func(r *regexp.Regexp) bool { return r.MatchString(k.URL) })
	}
	switch {
	case c.MaxDepth > 0 && k.Depth > c.MaxDepth:
		return colly.ErrMaxDepth
	case matches(c.DisallowedURLFilters):
		return colly.ErrForbiddenURL
	case len(c.URLFilters) > 0 && !matches(c.URLFilters):
		return colly.ErrNoURLFiltersMatch
	case slices.Contains(c.DisallowedDomains, u.Hostname()),
		len(c.AllowedDomains) > 0 && !slices.Contains(c.AllowedDomains, u.Hostname()):
		return colly.ErrForbiddenDomain
	}
	return nil
}
