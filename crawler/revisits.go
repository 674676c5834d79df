// This file calls the Revisits option, and stores its notes with the URLs.

package crawler

import (
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// Revisits evaluates visits for the frontier's Scheduler, which decides when URLs are visited
// again. Package incremental has both. All workers call it concurrently.
//
// What it must remember about a URL is its note, at most 4 KiB. It is stored in the URL's
// Entry.Meta, so it is as durable as the URL, and the Scheduler can read it from Visit.Entry
// ([Note]). URLs with a Meta set by the user have no note, and Revisits is not called for them. A
// URL that is no longer wanted is reported to the Scheduler as Denied, without a note.
type Revisits interface {
	// Whole reports whether to request a page without conditions, as if no ETag and no date were known.
	Whole(l frontier.Lease, note []byte) bool
	// Read evaluates an answer that will not be retried, before OnPage sees it. It may set
	// p.Outcome.Result to Changed, Unchanged or Gone. It returns the note that Ended receives if
	// OnPage does not fail.
	Read(p *Page, note []byte) []byte
	// Ended is called when a visit has ended, before the outcome is reported to the frontier. p is
	// nil if there was no usable answer. Failed means that nothing was learned about the URL,
	// Denied that it may not be fetched. Ended returns the note to store; nil keeps the old one. It
	// is not called for URLs that are handed back (Requeue).
	Ended(l frontier.Lease, p *Page, o frontier.Outcome, note []byte) []byte
}

// maxNote is the maximum length of a note.
const maxNote = 4 << 10

// noteOf returns a URL's note. ok is false if Revisits must not be called for it.
func (c *Crawler) noteOf(e frontier.Entry) (note []byte, ok bool) {
	if c.opts.Revisits == nil {
		return nil, false
	}
	m, own := metaOf(e)
	return m.note, own
}

// whole reports whether to request a page without conditions.
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
	if !ok || !p.Outcome.Next.IsZero() { // it has its cookie, and is requested again at once
		return nil
	}
	return c.opts.Revisits.Read(p, note)
}

// ended reports an answer to Revisits, after OnPage.
func (c *Crawler) ended(p *Page, note []byte) {
	old, ok := c.noteOf(p.Lease.Entry)
	if !ok || p.Outcome.Result == frontier.Requeue || !p.Outcome.Next.IsZero() {
		return
	}
	if p.Outcome.Result == frontier.Failed { // what OnPage did not accept was not read
		note = old
	}
	c.keep(p.Lease, &p.Outcome, c.opts.Revisits.Ended(p.Lease, p, p.Outcome, note))
}

// missed reports a visit without an answer to Revisits.
func (c *Crawler) missed(l frontier.Lease, o *frontier.Outcome) {
	if note, ok := c.noteOf(l.Entry); ok {
		c.keep(l, o, c.opts.Revisits.Ended(l, nil, *o, note))
	}
}

// dropped deletes the note of a URL that is no longer wanted.
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
		c.log.Warn("a note of Revisits is too long, and is not stored", "url", fetch.Redact(l.Entry.URL), "bytes", len(note))
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

// SentAt returns when the server sent the answer, by its own clock; zero if unknown.
func (p *Page) SentAt() time.Time {
	t, err := reply.Date(p.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// Note returns what Options.Revisits stores with a URL; nil if there is nothing.
func Note(e frontier.Entry) []byte {
	m, _ := metaOf(e)
	return m.note
}
