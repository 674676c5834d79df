// This file judges pages by where they lead: calendars that lead to more dates only, and relative links that go in
// circles. traps.go judges URLs and texts.

package filter

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// An archive by date is reached through lists of years and months: its pages are at two or three distances from
// the seed. A calendar without an end leads from page to page.
const leastLevels = 4

// fetchedDate counts a page of a calendar, by where its links lead, other than to dates.
func (g *Traps) fetchedDate(t *Target, params []param) {
	if _, _, dated := endsInDate(t, params); !dated {
		return
	}
	own := t.Path
	if t.Query != "" {
		own += "?" + t.Query
	}
	seen := map[string]bool{}
	var leads uint64
	for u := range t.Links {
		to := Split(u, 0)
		if _, _, dated := endsInDate(to, to.params()); dated && to.Host == t.Host || seen[u] {
			continue
		}
		seen[u] = true
		if plain, err := url.QueryUnescape(to.Query); err == nil && len(own) > 1 && strings.Contains(plain, own) { // the way back
			u = strings.TrimSuffix(u, to.Query) + strings.ReplaceAll(plain, own, "")
		}
		leads += g.sum("", u)
	}
	g.compare(t, "calendar-leads", "", leads)
	if level := strconv.Itoa(t.Depth); g.count(t, "calendar-level", level) == 0 {
		g.add(t, "calendar-level", level)
		g.add(t, "calendar-levels", "")
	}
}

func (g *Traps) refuseDate(t *Target, dated bool) Reason {
	if !dated {
		return Reason{}
	}
	same := g.count(t, "same-calendar-leads", "")
	if same < g.opts.MaxSameText || g.count(t, "calendar-levels", "") < leastLevels {
		return Reason{}
	}
	if read := g.count(t, "calendar-leads", ""); 2*same > read {
		return refuse("calendar", "%d of %d pages that end in a date led to other dates only, beside where another one led", same, read)
	}
	return Reason{}
}

// fetchedCircle counts a page with links that go further down to a name that its own path has, as all pages do of a
// site whose links lack the slash in front. It counts the name, too.
func (g *Traps) fetchedCircle(t *Target) {
	dir := t.Path[:strings.LastIndexByte(t.Path, '/')+1]
	if len(dir) <= 1 {
		return
	}
	var names []string
	for u := range t.Links {
		if !strings.Contains(u, dir) { // as most
			continue
		}
		to := Split(u, 0)
		rest, under := strings.CutPrefix(to.Path, dir)
		name, _, _ := strings.Cut(rest, "/")
		if under && to.Host == t.Host && hasLetter(name) && strings.Contains(dir, "/"+name+"/") && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return
	}
	g.add(t, "circle", "")
	for _, name := range names {
		g.add(t, "circle-name", name)
	}
}

// refuseCircle refuses a path that ends in a name that goes in circles, and has another such name or the same again.
func (g *Traps) refuseCircle(t *Target) Reason {
	pages := g.count(t, "circle", "")
	if pages < g.opts.MaxSameText {
		return Reason{}
	}
	names, last := 0, false
	for s := range t.segments() {
		if last = hasLetter(s) && g.count(t, "circle-name", s) > pages/20; last {
			names++
		}
	}
	if last && names > 1 {
		return refuse("repeating-segments", "%d pages had relative links to names in their own paths, such as these", pages)
	}
	return Reason{}
}
