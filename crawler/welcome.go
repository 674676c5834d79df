// This file tells a host that has had enough from a page that is not for us.
//
// Both say 403, or 401. A host that gave pages like this one a while ago, and refuses this
// one, may have had enough: the page is tried again, and if the host goes on refusing, more
// slowly. If it gave others since and refuses this one again, the page is not for us.

package crawler

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	welcomeFor   = time.Hour // what a host gave counts for so long
	enough       = 3         // refusals in a row after which a host has had enough
	maxWelcome   = 10_000    // hosts that are remembered
	maxShapes    = 64        // of a host's pages
	maxUnwelcome = 1_000     // refused URLs of a host
)

// welcome is what hosts gave and refused. The zero value knows none.
type welcome struct {
	mu    sync.Mutex
	hosts map[string]*reception // guarded by mu
}

// reception is how a host received us lately.
type reception struct {
	last    time.Time         // it gave something
	given   uint32            // how often
	shapes  []uint64          // of what it gave, the newest last
	row     int               // refusals since then
	refused map[uint64]uint32 // URLs, and given when they were refused
}

// of returns a host's reception. The caller holds w.mu.
func (w *welcome) of(host string) *reception {
	r := w.hosts[host]
	if r == nil {
		if w.hosts == nil || len(w.hosts) == maxWelcome {
			w.hosts = map[string]*reception{}
		}
		r = &reception{refused: map[uint64]uint32{}}
		w.hosts[host] = r
	}
	return r
}

// gave notes that a host gave a page.
func (w *welcome) gave(host, url string, now time.Time) {
	shape := shapeOf(url)
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.of(host)
	r.last, r.row = now, 0
	r.given++
	if i := slices.Index(r.shapes, shape); i >= 0 {
		r.shapes = slices.Delete(r.shapes, i, i+1)
	} else if len(r.shapes) == maxShapes {
		r.shapes = slices.Delete(r.shapes, 0, 1)
	}
	r.shapes = append(r.shapes, shape)
}

// suspect notes that a host seems to have had enough since before this process began.
func (w *welcome) suspect(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.of(host)
	r.row = max(r.row, enough)
}

// knows tells whether a host gave or refused anything.
func (w *welcome) knows(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[host] != nil
}

// refuses notes that a host refused a page, and tells whether it may have had enough, and
// how many times in a row; else the page is not for us.
func (w *welcome) refuses(host, url string, now time.Time) (row int, later bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.hosts[host]
	if r == nil || r.row < enough && (now.Sub(r.last) > welcomeFor || !slices.Contains(r.shapes, shapeOf(url))) {
		return 0, false
	}
	id := sum(url)
	if given, again := r.refused[id]; again && r.given > given {
		delete(r.refused, id)
		return 0, false
	}
	if len(r.refused) == maxUnwelcome {
		clear(r.refused)
	}
	r.refused[id] = r.given
	r.row++
	return r.row, true
}

// shapeOf is what pages of a kind have in common: their folder, and the names of what is
// asked for.
func shapeOf(raw string) uint64 {
	u, err := url.Parse(raw)
	if err != nil {
		return 0
	}
	folder := u.Path[:strings.LastIndexByte(u.Path, '/')+1]
	var names []string
	for _, x := range strings.Split(u.RawQuery, "&") {
		name, _, _ := strings.Cut(x, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return sum(folder + "?" + strings.Join(names, "&"))
}

// hadEnough tells whether a page was refused because its host has had enough, and what
// kind of failure that is.
func (c *Crawler) hadEnough(p *Page) (frontier.Failure, bool) {
	if p.Status != http.StatusForbidden && p.Status != http.StatusUnauthorized {
		return 0, false
	}
	l := p.Lease
	if !c.welcome.knows(l.Host) && c.troubled(l.Host) {
		c.welcome.suspect(l.Host)
	}
	row, later := c.welcome.refuses(l.Host, l.Entry.URL, p.Ended)
	switch {
	case !later:
		return 0, false
	case row < enough:
		return frontier.FailureOther, true
	case row == enough:
		c.log.Warn("a host refuses pages like those that it gave: it is asked more slowly, and for them again", "host", l.Host, "status", p.Status)
	}
	return frontier.FailureTooMany, true
}

// troubled tells whether a host is slowed down, perhaps since before this process began: its
// robots.txt may be the one thing that it has given since.
func (c *Crawler) troubled(host string) bool {
	h, err := c.frontier.Host(context.Background(), host)
	return err == nil && (h.Backoff.Step > 0 || h.Backoff.Failures >= enough)
}
