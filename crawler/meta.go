// This file encodes what the crawler stores about a URL in Entry.Meta: the redirects that led to
// it, its ETag, and the note of Revisits.

package crawler

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
)

// metaVersion is the first byte of a Meta written by this package. Any other Meta belongs to the
// user, and the crawler ignores it.
const metaVersion = 0xC1

// metaVia is the first byte of a Meta that begins with the referring page.
const metaVia = 0xC2

// metaNeed is the first byte of one of a requisite; how many steps it is from the page
// that needs it follows, and then another Meta.
const metaNeed = 0xC3

// metaList is the first byte of one of a list of URLs; the length of the names of hosts, the names,
// and then another Meta follow.
const metaList = 0xC4

// maxNeed is the maximum number of steps from a page to a requisite: a style sheet, a style sheet
// that it imports, a font of that one.
const maxNeed = 3

// maxETag is the maximum length of a stored ETag.
const maxETag = 256

// meta is the content of a Meta of this package. The zero value is no Meta.
type meta struct {
	need  byte     // steps from the page that needs this requisite; 0 for pages
	list  bool     // a robots.txt or an index names it: see ListMeta
	hosts []string // of a list
	via   string   // the page that led here, with Options.Via
	chain []uint64 // the redirects that led here, in order; see hop
	etag  string   // of the last answer that was read
	note  []byte   // stored for Revisits
}

// metaOf reads an entry's Meta. own is false if it belongs to the user; the crawler then stores
// nothing for the URL.
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
	if e.Meta[0] == metaList {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return meta{}, true
		}
		names, rest := b[size:][:n], b[size:][n:]
		if len(rest) > 0 && (rest[0] == metaList || rest[0] == metaNeed) {
			return meta{}, true
		}
		m, own = metaOf(frontier.Entry{Meta: rest})
		m.list, m.hosts = true, strings.Fields(string(names))
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

// replacing returns the Meta that replaces an existing one. It is never nil, which would keep the
// old one.
func (m meta) replacing() []byte {
	if b := m.bytes(); b != nil {
		return b
	}
	return []byte{metaVersion, 0}
}

// bytes encodes m as a Meta; nil if there is nothing to remember.
func (m meta) bytes() []byte {
	if len(m.chain) == 0 && m.etag == "" && len(m.note) == 0 && m.via == "" && m.need == 0 && !m.list {
		return nil
	}
	var b []byte
	if m.need > 0 {
		b = []byte{metaNeed, m.need}
	}
	if m.list {
		names := strings.Join(m.hosts, " ")
		b = append(binary.AppendUvarint(append(b, metaList), uint64(len(names))), names...)
		if len(m.chain) == 0 && m.etag == "" && len(m.note) == 0 && m.via == "" {
			return b
		}
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

// redirected returns the Meta for the target of url's redirect, which h stands for. back means that target is
// url or one of the redirects that led to it. Such a redirect is a loop unless a cookie was set since the target
// was requested, and not too often.
func (m meta) redirected(h uint64, target string) (_ meta, back, loop bool) {
	chain := append(slices.Clone(m.chain), h)
	times, cookies, own := 0, false, true
	for _, h := range slices.Backward(chain) {
		cookies = cookies || times == 0 && h&setCookie != 0
		if h&^flags == hop(target) {
			times++
			own = own && h&foreign == 0
		}
	}
	return meta{chain: chain, need: m.need, list: m.list, hosts: m.hosts}, times > 0, times > 0 && (!cookies || !own || times > maxReturns)
}

// ListMeta returns the Meta of an entry that is a list of URLs (a sitemap) according to a robots.txt or
// an index. hosts are other hosts whose URLs it may list. The crawler keeps the mark through redirects
// and visits; ListOf returns it.
func ListMeta(hosts ...string) []byte { return meta{list: true, hosts: hosts}.bytes() }

// ListOf reports whether an entry is called a list of URLs, and the hosts in its ListMeta.
func ListOf(e frontier.Entry) (hosts []string, ok bool) {
	m, _ := metaOf(e)
	return m.hosts, m.list
}

// Via returns the page whose link or redirect led to this one, if Options.Via was set then, and the
// path from the seed in the letters of WARC's hopsFromSeed: L for each link, E for a requisite, R
// for each redirect since.
func (p *Page) Via() (url, hops string) {
	m, _ := metaOf(p.Lease.Entry)
	links := max(0, p.Lease.Entry.Depth-int(m.need))
	return m.via, strings.Repeat("L", links) + strings.Repeat("E", int(m.need)) + strings.Repeat("R", len(m.chain))
}

// needed reports whether an entry is a requisite of a page, and no page itself.
func needed(e frontier.Entry) bool { return len(e.Meta) > 0 && e.Meta[0] == metaNeed }

// was reports whether a URL is among the redirects that led here.
func (m meta) was(url string) bool {
	return slices.ContainsFunc(m.chain, func(h uint64) bool { return h&^flags == hop(url) })
}

// The flags of a redirect.
const (
	setCookie = 1 << iota // its answer set a cookie
	foreign               // its Meta is the user's, and must not be replaced
	flags     = setCookie | foreign
)

// maxReturns is how often redirects may lead back to a URL because cookies were set: once for the
// cookies, and once for a second cookie wall.
const maxReturns = 2

// hop returns a chain's record of a URL, without flags.
func hop(url string) uint64 { return sum(url) &^ flags }

func sum(url string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(url))
	return h.Sum64()
}

// validETag returns an ETag as a server sent it; empty if it is invalid, or too long (RFC 9110 section
// 8.8.3).
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
