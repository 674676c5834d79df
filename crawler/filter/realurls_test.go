// This file holds the guards to URLs of real pages.

package filter

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/internal/lab/realurls"
)

var long = flag.Bool("frontier.long", false, "judge all 1.8 million real URLs")

// Of the URLs of real pages, as if all of a site were fetched, at most one in 10,000 is refused beside
// calendars without an end. With -frontier.long all are judged; the log says which rules refused how many.
func TestGuardsLetRealURLsPass(t *testing.T) {
	n := 100_000
	if *long {
		n = 1_836_442
	}
	g := NewTraps(TrapOptions{})
	refused := map[string]int{}
	for _, u := range realurls.Load(t, n, 1) {
		x := Split(u, 0)
		if r := g.Refuse(x); r.Refused() {
			refused[r.Rule]++
			continue
		}
		g.Fetched(x)
	}
	t.Log(n, "URLs, refused:", refused)
	endless := refused["calendar"] // each of them is of the years 2029 to 2099
	assert.LessOrEqual(t, endless, 250)
	others := -endless
	for _, k := range refused {
		others += k
	}
	assert.LessOrEqual(t, others, n/10_000)
}
