// This file determines whether a page has changed.

package incremental

import (
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/internal/media"
)

const (
	trustRun  = 16 // answers 304 in a row that are believed
	doubtRun  = 3  // the same after one 304 may have been wrong
	noTrust   = 2  // from this doubt on, 304 is never trusted
	firstBad  = 400
	firstMove = 300
)

// whole reports whether to request the page without conditions, because its server may answer 304
// forever.
func (n *note) whole() bool {
	switch {
	case n.doubt >= noTrust, n.ending == seemed: // a 304 would mean nothing
		return true
	case n.doubt > 0:
		return n.run >= doubtRun
	}
	return n.run >= trustRun
}

// Read implements crawler.Revisits: it compares the page with its last copy.
func (r *Revisits) Read(p *crawler.Page, raw []byte) []byte {
	n, _ := parseNote(raw)
	o := &p.Outcome
	switch {
	case o.Result == frontier.Unchanged: // 304
		if !p.Conditional {
			o.Result = frontier.Visited // the request had no condition
			break
		}
		n.run = min(n.run+1, runMask)
	case o.Result == frontier.Gone:
		n.copied, n.run = copied{}, 0
	case p.Broken != "": // a missing part is not a change
	case p.Status >= firstBad || p.Body == nil && p.Status < firstMove:
	default:
		now, words, ok := r.digest(p)
		switch {
		case !ok:
		case p.Status < firstMove && r.soft.judge(p.Lease.Host, p.Lease.Entry.URL, n.copied, now, words):
			o.Result, n.run = frontier.Gone, 0 // its copy stays, to compare with when it is back
		default:
			r.compare(&n, o, now, p.Conditional)
		}
	}
	return n.bytes()
}

// digest returns the stored form of an answer, and its number of words.
func (r *Revisits) digest(p *crawler.Page) (copied, int, bool) {
	if p.Status >= firstMove {
		d := r.hasher.Other([]byte(p.Header.Get("Location")))
		return copyOf(&d, r.keyPrint, false), 0, true
	}
	body, err := p.Body.Bytes()
	if err != nil {
		r.opts.Logger.Warn("a page cannot be read, and is not compared", "url", p.URL, "error", err)
		return copied{}, 0, false
	}
	contentType := media.Sniff(p.Header, p.Body.Head(media.SniffSize)).String()
	d := r.hasher.Body(body, contentType)
	return copyOf(&d, r.keyPrint, r.opts.MinChange > 0), d.Words, true
}

// compare sets the result of an answer with content.
func (r *Revisits) compare(n *note, o *frontier.Outcome, now copied, conditional bool) {
	checked := n.whole() // not only because there are no conditions to send
	run := n.run
	n.run = 0
	if !n.has || n.key != now.key {
		n.copied = now // it cannot be determined whether it has changed
		return
	}
	change := now.change(n.copied)
	if change == 0 || change < r.opts.MinChange {
		o.Result = frontier.Unchanged
		return
	}
	o.Result = frontier.Changed
	n.copied = now
	switch {
	case conditional:
		n.doubt = 0 // it reports changes when asked
	case checked && run > 0:
		n.doubt = min(n.doubt+1, noTrust)
	}
}
