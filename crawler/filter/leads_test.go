// These tests crawl endless sites whose pages have a text each, and sites that look like them.

package filter

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// crawlSite fetches a site breadth first, up to a maximum; it returns how many pages it fetched. leads returns where a
// page leads, and whether there is one.
func crawlSite(g *Traps, most int, leads func(path string) ([]string, bool)) (fetched int, refused map[string]int) {
	const site = "http://a.example"
	seen, refused := map[string]bool{"/": true}, map[string]int{}
	type at struct {
		path  string
		depth int
	}
	for todo := []at{{"/", 0}}; len(todo) > 0 && fetched < most; {
		x := todo[0]
		todo = todo[1:]
		t := Split(site+x.path, x.depth)
		if r := g.Refuse(t); r.Refused() {
			refused[r.Rule]++
			continue
		}
		links, ok := leads(x.path)
		if !ok {
			continue
		}
		fetched++
		t.Text = uint64(fetched)
		t.Links = func(yield func(string) bool) {
			for _, l := range links {
				if !yield(site + l) {
					return
				}
			}
		}
		g.Fetched(t)
		for _, l := range links {
			if !seen[l] {
				seen[l] = true
				todo = append(todo, at{l, x.depth + 1})
			}
		}
	}
	return fetched, refused
}

func TestEndlessSitesEnd(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	always := []string{"/", "/about", "/cal?date=" + now.Format("2006-01-02"), "/cal/" + now.Format("2006/01"), "/log/" + now.Format("2006/01/02")}
	days := func(layout string, more func(day time.Time) []string) func(string) ([]string, bool) {
		return func(path string) ([]string, bool) {
			day, err := time.Parse(layout, path)
			if err != nil {
				return always, !strings.HasPrefix(path, "/login")
			}
			back := "/login?back=" + url.QueryEscape(path)
			return append(slices.Concat(always, more(day)), back, day.AddDate(0, 0, 1).Format(layout), day.AddDate(0, 0, -1).Format(layout)), true
		}
	}
	none := func(time.Time) []string { return nil }
	months := func(path string) ([]string, bool) {
		out := slices.Clone(always)
		if month, err := time.Parse("/cal/2006/01", path); err == nil {
			for d := month; d.Month() == month.Month(); d = d.AddDate(0, 0, 1) {
				out = append(out, d.Format("/cal/2006/01/02"))
			}
			out = append(out, month.AddDate(0, 1, 0).Format("/cal/2006/01"), month.AddDate(0, -1, 0).Format("/cal/2006/01"))
		}
		return out, true
	}
	wander := func(names int) func(string) ([]string, bool) {
		return func(path string) (out []string, ok bool) {
			for i := range names {
				out = append(out, fmt.Sprintf("%ssection-%c/", path, 'a'+i))
			}
			return append(out, "/"), true
		}
	}
	archive := func(path string) ([]string, bool) { // an index of all days, with a text and no links
		out := slices.Clone(always)
		for i := range 600 {
			out = append(out, now.AddDate(0, 0, -i).Format("/log/2006/01/02"))
		}
		return out, path == "/" || strings.HasPrefix(path, "/log")
	}
	posts := func(path string) (out []string, ok bool) { // a link of each page lacks its slash, and leads to no page
		for i := range 600 {
			out = append(out, fmt.Sprintf("/blog/news/title-%d/", i))
		}
		return append(out, path+"blog/", path+"news/"), strings.Count(path, "blog") < 2 && strings.Count(path, "news") < 2
	}
	users := func(path string) (out []string, ok bool) {
		for i := range 200 {
			out = append(out, fmt.Sprintf("/user/u%c%d/", 'a'+i%26, i))
		}
		return append(out, path+"posts/", path+"photos/"), strings.Count(path, "/") < 5
	}
	for name, c := range map[string]struct {
		leads func(string) ([]string, bool)
		most  int // of an endless site
		least int // of another
	}{
		"days one by one in the query":    {days("/cal?date=2006-01-02", none), 200, 0},
		"days one by one in the path":     {days("/log/2006/01/02", none), 200, 0},
		"months with their days":          {months, 200, 0},
		"relative links, five sections":   {wander(5), 200, 0},
		"relative links, twenty sections": {wander(20), 200, 0},
		"days that list articles": {days("/log/2006/01/02", func(day time.Time) []string {
			return []string{fmt.Sprintf("/article-%d", day.Unix())}
		}), 0, 600},
		"an archive that lists its days": {archive, 0, 600},
		"a wrong link on each page":      {posts, 0, 600},
		"pages of users":                 {users, 0, 600},
	} {
		fetched, refused := crawlSite(NewTraps(TrapOptions{Now: func() time.Time { return now }}), 600, c.leads)
		assert.GreaterOrEqual(t, fetched, c.least, "%s: %v", name, refused)
		if c.most > 0 {
			assert.LessOrEqual(t, fetched, c.most, "%s: %v", name, refused)
		}
	}
}

// Links to a host whose name only begins with that of the page's go in no circle.
func TestCirclesAreOfOneHost(t *testing.T) {
	g := NewTraps(TrapOptions{MaxSameText: 1})
	for i, host := range []string{"a.example.org", "a.example"} {
		page := Split("http://a.example/one/two/", 2)
		page.Links = slices.Values([]string{"http://" + host + "/one/two/one/", "http://" + host + "/one/two/two/"})
		g.Fetched(page)
		assert.Equal(t, i == 1, g.Refuse(Split("http://a.example/two/one", 3)).Refused(), host)
	}
}
