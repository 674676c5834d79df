// This file asks whoever decides when URLs are visited again, and keeps his notes
// with the URLs.

package crawler

import (
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// Revisits decides when URLs are visited again. Package revisit has one. It is
// called by all workers at once.
//
// What it must remember of a URL is its note, at most 4 KiB, which is kept in the
// URL's Entry.Meta: it is as durable as the URL. A URL with a Meta of the user's own
// has none, and Revisits is not asked about it.
type Revisits interface {
	// Before is asked about each lease of a URL that is wanted still, before its host
	// is contacted.
	Before(l frontier.Lease, note []byte) Before
	// Read judges an answer that will not be tried again, before OnPage sees it: it may
	// set p.Outcome.Result to Changed or Unchanged. What it returns is the note that
	// Ended gets if OnPage does not fail.
	Read(p *Page, note []byte) []byte
	// Ended is told how a visit ended, before the frontier is, and may set o.Next; p is
	// nil if there was no answer, or none that counts. With the result Failed nothing was
	// learned of the URL; the frontier's Retry is asked first whether it is tried again
	// at all. With Denied it may not be fetched. It returns the note that is to be kept;
	// nil keeps the old one. It is not told of URLs that come again as if nothing had
	// happened (Requeue).
	Ended(l frontier.Lease, p *Page, o *frontier.Outcome, note []byte) []byte
	// Dropped is told of a URL that is out of scope now, and leaves the frontier.
	Dropped(l frontier.Lease, note []byte)
}

// Before is what Revisits wants done with a lease. The zero value is a visit now.
type Before struct {
	// At, if it is set, puts the URL off until then: nobody is contacted.
	At time.Time
	// Note is kept with a URL that is put off; nil keeps the old one.
	Note []byte
	// Whole asks for the page without conditions, as if no ETag and no date were known.
	Whole bool
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

func (c *Crawler) before(l frontier.Lease) Before {
	note, ok := c.noteOf(l.Entry)
	if !ok {
		return Before{}
	}
	return c.opts.Revisits.Before(l, note)
}

// putOff ends a lease whose URL is to come at another time.
func (r *run) putOff(l frontier.Lease, b Before) error {
	r.c.counters.putOff.Add(1)
	o := frontier.Outcome{Result: frontier.Denied, Uncontacted: true, Next: b.At}
	r.c.keep(l, &o, b.Note)
	return r.done(l, o)
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
	c.keep(p.Lease, &p.Outcome, c.opts.Revisits.Ended(p.Lease, p, &p.Outcome, note))
}

// missed tells Revisits of a visit without an answer. later says that there may be
// one another time, as of a failure.
func (c *Crawler) missed(l frontier.Lease, o *frontier.Outcome, later bool) {
	note, ok := c.noteOf(l.Entry)
	if !ok {
		return
	}
	told := *o
	if later {
		told.Result = frontier.Failed
	}
	note = c.opts.Revisits.Ended(l, nil, &told, note)
	o.Next = told.Next
	c.keep(l, o, note)
}

func (c *Crawler) dropped(l frontier.Lease) {
	if note, ok := c.noteOf(l.Entry); ok {
		c.opts.Revisits.Dropped(l, note)
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

// WithNote is the Meta of an entry with another note; nil if the Meta is not the
// crawler's.
func WithNote(e frontier.Entry, note []byte) []byte {
	m, own := metaOf(e)
	if !own || len(note) > maxNote {
		return nil
	}
	m.note = note
	return m.replacing()
}

// Note is what Options.Revisits keeps with a URL; nil if there is nothing.
func Note(e frontier.Entry) []byte {
	m, _ := metaOf(e)
	return m.note
}
