package frontiercolly

import (
	"github.com/gocolly/colly/v2"
)

// Check is check.
func Check(c *colly.Collector, url string, depth int) error {
	return check(c, &request{URL: url, Depth: depth})
}
