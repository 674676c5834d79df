// This file bounds the memory that the links of all pages under way take together.
//
// Each page has a small fixed amount for its links. Pages that may need more share a pool. Such a page
// acquires a share before its links are read, as much as its content could make necessary. It returns
// what they did not need after reading, and the rest once the frontier has the links. No page with a
// share waits for more, so every wait ends, and pages get shares in the order of their requests. While a
// page waits, another worker takes the place of its worker, so other hosts wait neither for memory nor
// for a worker.

package crawler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"unsafe"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// linkMemory hands out shares of a number of bytes.
type linkMemory struct {
	size int64

	mu      sync.Mutex
	free    int64        // guarded by mu; less than 0 if links took more than their share
	waiting []*linkShare // guarded by mu; in the order of arrival
}

// linkShare is a share that a page waits for.
type linkShare struct {
	bytes int64
	ready chan struct{} // closed when the page has it
}

const (
	ownLinks    = 1 << 20  // bytes that each page has for its links
	sharedLinks = 48 << 20 // bytes that all pages share for what they need beyond ownLinks
)

// beyond returns what a page that needs n bytes must share.
func beyond(n int64) int64 { return max(0, n-ownLinks) }

// acquire waits for a share, and returns its size: a page that may need more than the whole pool gets all
// of it. It calls waits before it waits. If ctx ends first, it returns ctx's error.
func (m *linkMemory) acquire(ctx context.Context, n int64, waits func()) (int64, error) {
	n = min(n, m.size)
	m.mu.Lock()
	if n == 0 || len(m.waiting) == 0 && n <= m.free {
		m.free -= n
		m.mu.Unlock()
		return n, nil
	}
	s := &linkShare{n, make(chan struct{})}
	m.waiting = append(m.waiting, s)
	m.mu.Unlock()
	waits()
	select {
	case <-s.ready:
		return n, nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiting, s); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
		m.serveLocked() // those behind it may need less
		return 0, ctx.Err()
	}
	return n, nil // it came at the same time
}

// release gives bytes of a share back; less than 0 are taken without waiting.
func (m *linkMemory) release(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	m.serveLocked()
}

func (m *linkMemory) serveLocked() {
	for len(m.waiting) > 0 && m.waiting[0].bytes <= m.free {
		m.free -= m.waiting[0].bytes
		close(m.waiting[0].ready)
		m.waiting = m.waiting[1:]
	}
}

const (
	// linkBytes is the memory of a link besides its text, until the frontier has it: as a link, as an
	// entry, and in its page's set of known links. Growing lists count twice.
	linkBytes = int64(2*(unsafe.Sizeof(link.Link{})+unsafe.Sizeof(frontier.Entry{})) + 64)

	// attributes are the characters without which there is no link in an attribute, mayBeLinks
	// those without which there is none at all: one for each attribute, for each further image of a
	// set, for each url() and import of a style sheet.
	attributes = "="
	mayBeLinks = "=,(@"
)

// mayNeed returns the most memory that a page's links may take.
func (c *Crawler) mayNeed(p *Page) int64 {
	most := int64(1) // the icon of a page that names none
	for _, fields := range p.Header {
		for _, f := range fields {
			most += int64(len(f) / len("<>;rel=x"))
		}
	}
	text, base := int64(0), int64(len(p.URL))
	h, ok := c.opts.Extractor.(HTML)
	if read, _ := h.reader(p); !ok || read != nil {
		chars := mayBeLinks
		if ok && h.Kinds&^link.Pages == 0 {
			chars = attributes
		}
		links, otherBase := countLinks(p.Body, chars)
		most += links
		text = p.Body.Size()
		if !ok || otherBase {
			base = min(base+text, urlnorm.MaxLength)
		}
	}
	most = min(most, int64(c.opts.MaxLinks))
	return most*linkBytes + text + min(most*base+3*text, link.MaxURLs)
}

// countLinks returns how many links a document may have at most, by the characters that they need,
// and whether it may have a base of its own.
func countLinks(b *spool.Body, chars string) (n int64, base bool) {
	count := func(text []byte) {
		for i := range len(chars) {
			n += int64(bytes.Count(text, []byte{chars[i]}))
		}
		base = base || mayHaveBase(text)
	}
	if b.InMemory() {
		text, _ := b.Bytes()
		count(text)
		return n, base
	}
	base = true // it is long, and the element may be cut in two here
	buf := make([]byte, 32<<10)
	for r := b.Reader(); ; {
		k, err := io.ReadFull(r, buf)
		if count(buf[:k]); err != nil {
			return n, base
		}
	}
}

// mayHaveBase reports whether a text has a base element, or is in an encoding in which that cannot
// be seen.
func mayHaveBase(text []byte) bool {
	if bytes.IndexByte(text, 0) >= 0 {
		return true
	}
	for {
		i := bytes.IndexByte(text, '<')
		if i < 0 || len(text) < i+len("<base") {
			return false
		}
		if text = text[i+1:]; bytes.EqualFold(text[:len("base")], []byte("base")) {
			return true
		}
	}
}

// takes returns the memory that a page's links take. Entries that are links of Doc share their URLs with
// these.
func takes(p *Page) (n int64) {
	if p.Doc != nil {
		for i := range p.Doc.Links {
			l := &p.Doc.Links[i]
			n += int64(len(l.URL) + len(l.Raw) + len(l.Text))
		}
		n += int64(cap(p.Doc.Links)) * int64(unsafe.Sizeof(link.Link{}))
	}
	if p.Doc == nil {
		for i := range p.Add {
			n += int64(len(p.Add[i].URL))
		}
	}
	return n + int64(cap(p.Add))*int64(unsafe.Sizeof(frontier.Entry{}))
}

// settleShare makes a page's share as large as what its links take beyond ownLinks.
func (c *Crawler) settleShare(p *Page) {
	n := beyond(takes(p))
	c.links.release(p.share - n)
	p.share = n
}

// Flush adds the entries in Add to the frontier at once, and empties Add. An OnPage that may find
// more than some thousand links calls it now and then, so that it need not hold all of them. What
// the frontier refuses is logged and counted as for the other links. After an error Add is as
// before, and OnPage should return the error: the page comes again. What was flushed before a page
// comes again is known then.
func (p *Page) Flush(ctx context.Context) error {
	if p.crawler == nil || len(p.Add) == 0 {
		return nil
	}
	_, err := p.crawler.frontier.Add(ctx, p.Add...)
	if p.unflushed = p.crawler.tookLinks(p.Lease, p.Add, nil, err); p.unflushed != nil {
		return fmt.Errorf("crawler: links: %w", p.unflushed)
	}
	clear(p.Add)
	p.Add = p.Add[:0]
	return nil
}
