// This file asks whoever decides when URLs are visited again, and keeps his notes
// with the URLs.

package crawler

import (
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Revisits judges visits for the frontier's Scheduler, which says when URLs are visited
// again. Package incremental has both. It is called by all workers at once.
//
// What it must remember of a URL is its note, at most 4 KiB, which is kept in the
// URL's Entry.Meta: it is as durable as the URL, and the Scheduler sees it in
// Visit.Entry ([Note]). A URL with a Meta of the user's own has none, and Revisits is not
// asked about it. One that is not wanted any more is told to the Scheduler as Denied, and
// without a note.
type Revisits interface {
	// Whole reports whether a page is to be asked for without conditions, as if no ETag
	// and no date were known.
	Whole(l frontier.Lease, note []byte) bool
	// Read judges an answer that will not be tried again, before OnPage sees it: it may
	// set p.Outcome.Result to Changed, Unchanged or Gone. What it returns is the note that
	// Ended gets if OnPage does not fail.
	Read(p *Page, note []byte) []byte
	// Ended is told how a visit ended, before the frontier is; p is nil if there was no
	// answer, or none that counts. With the result Failed nothing was learned of the URL.
	// With Denied it may not be fetched. It returns the note that is to
	// be kept; nil keeps the old one. It is not told of URLs that come again as if nothing
	// had happened (Requeue).
	Ended(l frontier.Lease, p *Page, o frontier.Outcome, note []byte) []byte
}

// maxNote is how long a note may be.
const maxNote = 4 << 10

// noteOf returns a URL's note. ok is false if nobody is to be asked about it.
func (c *Crawler) noteOf(e frontier.Entry) (note []byte, ok bool) {
	if c.opts.Revisits == nil {
		return nil, false
	}
	m, own := metaOf(e)
	return m.note, own
}

// whole reports whether a page is to be asked for without conditions.
func (c *Crawler) whole(l frontier.Lease) bool {
	if c.opts.Whole != nil && c.opts.Whole(l) {
		return true
	}
	note, ok := c.noteOf(l.Entry)
	return ok && c.opts.Revisits.Whole(l, note)
}

// judged lets Revisits judge an answer, and returns the note for ended.
func (c *Crawler) judged(p *Page) []byte {
	note, ok := c.noteOf(p.Lease.Entry)
	if !ok || !p.Outcome.Next.IsZero() { // its cookie is there, and it comes again at once
		return nil
	}
	return c.opts.Revisits.Read(p, note)
}

// ended tells Revisits of an answer, after OnPage.
func (c *Crawler) ended(p *Page, note []byte) {
	old, ok := c.noteOf(p.Lease.Entry)
	if !ok || p.Outcome.Result == frontier.Requeue || !p.Outcome.Next.IsZero() {
		return
	}
	if p.Outcome.Result == frontier.Failed { // what OnPage did not take was not read
		note = old
	}
	c.keep(p.Lease, &p.Outcome, c.opts.Revisits.Ended(p.Lease, p, p.Outcome, note))
}

// missed tells Revisits of a visit without an answer.
func (c *Crawler) missed(l frontier.Lease, o *frontier.Outcome) {
	if note, ok := c.noteOf(l.Entry); ok {
		c.keep(l, o, c.opts.Revisits.Ended(l, nil, *o, note))
	}
}

// dropped takes the note of a URL away that is not wanted any more.
func (c *Crawler) dropped(l frontier.Lease, o *frontier.Outcome) {
	if _, ok := c.noteOf(l.Entry); ok {
		c.keep(l, o, []byte{})
	}
}

// keep puts a note into the Meta that an outcome keeps.
func (c *Crawler) keep(l frontier.Lease, o *frontier.Outcome, note []byte) {
	if note == nil {
		return
	}
	if len(note) > maxNote {
		c.log.Warn("a note of Revisits is too long, and not kept", "url", fetch.Redact(l.Entry.URL), "bytes", len(note))
		return
	}
	e := l.Entry
	if o.Meta != nil {
		e.Meta = o.Meta
	}
	m, _ := metaOf(e)
	m.note = note
	o.Meta = m.replacing()
}

// SentAt is when the page's server sent the answer, by its own clock; zero if it
// does not say so.
func (p *Page) SentAt() time.Time {
	t, err := http.ParseTime(p.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Note is what Options.Revisits keeps with a URL; nil if there is nothing.
func Note(e frontier.Entry) []byte {
	m, _ := metaOf(e)
	return m.note
}
