// This file encodes what the crawler itself needs to remember of a URL, in
// Entry.Meta: the redirects that led to it, its ETag, and the note of Revisits.

package crawler

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// metaVersion is the first byte of a Meta written by this package. A Meta that
// begins otherwise is the user's own and says nothing to the crawler.
const metaVersion = 0xC1

// metaVia is the first byte of one that begins with the page that led here.
const metaVia = 0xC2

// metaNeed is the first byte of one of a requisite; how many steps it is from the page
// that needs it follows, and then another Meta.
const metaNeed = 0xC3

// maxNeed is how many steps from a page requisites are followed: a style sheet, one that
// it imports, a font of that.
const maxNeed = 3

// maxETag is how long an ETag may be that is remembered.
const maxETag = 256

// meta is what a Meta of this package says. The zero value is no Meta.
type meta struct {
	need  byte     // steps from the page that needs this requisite; 0 for pages
	via   string   // the page that led here, with Options.Via
	chain []uint64 // sums of the URLs that redirected here, in order
	etag  string   // of the last answer that was read
	note  []byte   // what Revisits keeps
}

// metaOf reads an entry's Meta. own is false if it is the user's, who then has to
// remember for himself.
func metaOf(e frontier.Entry) (m meta, own bool) {
	if len(e.Meta) == 0 {
		return meta{}, true
	}
	b := e.Meta[1:]
	if e.Meta[0] == metaNeed {
		if len(b) < 2 || b[0] == 0 || b[1] == metaNeed {
			return meta{}, true
		}
		m, own = metaOf(frontier.Entry{Meta: b[1:]})
		m.need = b[0]
		return m, own
	}
	switch e.Meta[0] {
	case metaVersion:
	case metaVia:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return meta{}, true
		}
		m.via, b = string(b[size:][:n]), b[size:][n:]
	default:
		return meta{}, false
	}
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size)/8 {
		return m, true
	}
	b = b[size:]
	for range n {
		m.chain = append(m.chain, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	n, size = binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return m, true
	}
	b = b[size:]
	if n <= maxETag {
		m.etag = string(b[:n])
	}
	if uint64(len(b)) > n {
		m.note = b[n:]
	}
	return m, true
}

// replacing is the Meta that takes the place of another one: never nil, which would
// keep that.
func (m meta) replacing() []byte {
	if b := m.bytes(); b != nil {
		return b
	}
	return []byte{metaVersion, 0}
}

// bytes is the Meta; nil if there is nothing to remember.
func (m meta) bytes() []byte {
	if len(m.chain) == 0 && m.etag == "" && len(m.note) == 0 && m.via == "" && m.need == 0 {
		return nil
	}
	var b []byte
	if m.need > 0 {
		b = []byte{metaNeed, m.need}
	}
	if m.via != "" {
		b = append(binary.AppendUvarint(append(b, metaVia), uint64(len(m.via))), m.via...)
	} else {
		b = append(b, metaVersion)
	}
	b = binary.AppendUvarint(b, uint64(len(m.chain)))
	for _, s := range m.chain {
		b = binary.LittleEndian.AppendUint64(b, s)
	}
	b = binary.AppendUvarint(b, uint64(len(m.etag)))
	return append(append(b, m.etag...), m.note...)
}

// redirected is what is remembered of the target of url's redirect. loop says that
// the target is on the way to url itself.
func (m meta) redirected(url, target string) (_ meta, loop bool) {
	chain := append(slices.Clone(m.chain), sum(url))
	return meta{chain: chain, need: m.need}, slices.Contains(chain, sum(target))
}

// Via returns the page whose link, or redirect, led to this one, if Options.Via was set
// then, and the way from the seed in the letters of WARC's hopsFromSeed: L for each link,
// E for what a page needs, R for the redirects since the last of them.
func (p *Page) Via() (url, hops string) {
	m, _ := metaOf(p.Lease.Entry)
	links := max(0, p.Lease.Entry.Depth-int(m.need))
	return m.via, strings.Repeat("L", links) + strings.Repeat("E", int(m.need)) + strings.Repeat("R", len(m.chain))
}

// needed reports whether an entry is a requisite of a page, and no page itself.
func needed(e frontier.Entry) bool { return len(e.Meta) > 0 && e.Meta[0] == metaNeed }

// was reports whether a URL is among those that redirected here.
func (m meta) was(url string) bool { return slices.Contains(m.chain, sum(url)) }

func sum(url string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(url))
	return h.Sum64()
}

// validETag returns an ETag as a server sent it; empty if it is none, or too long
// (RFC 9110 section 8.8.3).
func validETag(s string) string {
	tag := s
	if len(tag) > 2 && tag[:2] == "W/" {
		tag = tag[2:]
	}
	if len(s) > maxETag || len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return ""
	}
	for _, c := range []byte(tag[1 : len(tag)-1]) {
		if c <= ' ' || c == '"' || c == 0x7f {
			return ""
		}
	}
	return s
}
