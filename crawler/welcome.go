// This file distinguishes a host that limits the crawler from a page that is forbidden.
//
// Both answer 403, 401, or another 4xx that says nothing about the URL. If a host recently gave similar pages and refuses this one, it may be
// limiting the crawler: the page is retried, and more slowly if the host keeps refusing. If the
// host has since given others and refuses this one again, the page is forbidden.

package crawler

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	welcomeFor   = time.Hour // how long a page given by a host counts
	enough       = 3         // refusals in a row after which a host is taken to limit the crawler
	maxWelcome   = 10_000    // hosts that are remembered
	maxShapes    = 64        // of a host's pages
	maxUnwelcome = 1_000     // refused URLs of a host
)

// welcome records what hosts gave and refused. The zero value is empty.
type welcome struct {
	mu    sync.Mutex
	hosts map[string]*reception // guarded by mu
}

// reception is how a host received us lately.
type reception struct {
	last    time.Time         // time of the last page given
	given   uint32            // how often
	shapes  []uint64          // of pages given, the newest last
	row     int               // refusals since then
	refused map[uint64]uint32 // URLs, with the value of given when they were refused
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

// gave records that a host gave a page.
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

// suspect records that a host seems to have limited the crawler before this process started.
func (w *welcome) suspect(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.of(host)
	r.row = max(r.row, enough)
}

// knows reports whether a host gave or refused anything.
func (w *welcome) knows(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[host] != nil
}

// refuses records that a host refused a page. It reports whether the host may be limiting the
// crawler, and the number of refusals in a row; otherwise the page is forbidden.
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

// shapeOf returns what similar pages have in common: their folder and the names of their parameters.
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

// aboutRequest are the statuses that find fault with the URL or the request, independent of client and pace (RFC
// 9110 section 15.5, and IANA's registry). Firewalls say the others: 405, 406, 418 and 444, for instance.
var aboutRequest = map[int]bool{
	400: true, 404: true, 409: true, 410: true, 411: true, 412: true, 413: true, 414: true, 415: true, 416: true, 417: true,
	422: true, 424: true, 426: true, 428: true, 431: true, 451: true,
}

// hadEnough reports whether a page was refused because its host limits the crawler, and the kind of
// failure.
func (c *Crawler) hadEnough(p *Page) (frontier.Failure, bool) {
	if p.Status < 400 || p.Status > 499 || aboutRequest[p.Status] {
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
		c.log.Warn("a host refuses pages like those that it gave before: it is slowed down, and they are retried", "host", l.Host, "status", p.Status)
	}
	return frontier.FailureTooMany, true
}

// troubled reports whether a host is slowed down, possibly since before this process started: its
// robots.txt may be the only file that it has given since.
func (c *Crawler) troubled(host string) bool {
	h, err := c.frontier.Host(context.Background(), host)
	return err == nil && (h.Backoff.Step > 0 || h.Backoff.Failures >= enough)
}
