// This file is the layout of an index on disk. All numbers are big-endian.
//
//	meta                        -> version, rows, shingle, keepNumbers, hash key
//	r id                        -> record: a URL, its page, and who had that first
//	b print                     -> id of the page with these bytes
//	t print                     -> id of the page with these words
//	s band hash id              -> nothing; a page with this super-shingle
//	h host 0 id                 -> nothing; the pages of a host
//	m host 0 host 0 id          -> id; the two pages of two hosts, in order of names, at a
//	                               path where they were the same when the later was added;
//	                               who counts looks whether they still are
//
// Only first pages have b, t and s rows. An id is a keyed hash of a URL.

package neardup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dchest/siphash"
	"github.com/dgraph-io/badger/v4"
)

const formatVersion = 2

var (
	metaKey      = []byte("\x00meta")
	recordPrefix = []byte("r")
)

// errCorrupt is part of errors about rows that cannot be read.
var errCorrupt = errors.New("damaged row")

// id is a URL's name on disk.
type id [12]byte

func (x *Index) id(url string) (i id) {
	a, b := siphash.Hash128(x.hasher.k0, x.hasher.k1, []byte(url))
	binary.BigEndian.PutUint64(i[:8], a)
	binary.BigEndian.PutUint32(i[8:], uint32(b))
	return i
}

func idOf(b []byte) (i id) {
	copy(i[:], b)
	return i
}

func recordKey(i id) []byte { return append([]byte("r"), i[:]...) }

func hostPrefix(host string) []byte { return []byte("h" + host + "\x00") }

// mirrorRow returns the row of two hosts' pages at one path.
func mirrorRow(host string, i id, other string, j id) (key, value []byte) {
	if other < host {
		i, j = j, i
	}
	return append(mirrorPrefix(host, other), i[:]...), j[:]
}

func mirrorPrefix(host, other string) []byte {
	return []byte("m" + min(host, other) + "\x00" + max(host, other) + "\x00")
}

// prints returns the keys by which identical pages are found.
func (x *Index) prints(p *Page) [][]byte {
	prints := [][]byte{append([]byte("b"), p.Bytes[:]...), append([]byte("t"), p.Text[:]...)}
	return prints[:min(1+p.Words, 2)] // the text of pages without words says nothing
}

// bands returns the prefixes of a page's super-shingles.
func (x *Index) bands(p *Page) [][]byte {
	if p.Words < MinWords {
		return nil
	}
	bands := make([][]byte, 0, bins/x.rows)
	var raw [2 * bins]byte
	for i := 0; i+x.rows <= bins; i += x.rows {
		b := raw[:0]
		for _, v := range p.Sketch[i : i+x.rows] {
			b = binary.BigEndian.AppendUint16(b, v)
		}
		h := siphash.Hash(x.hasher.k0, x.hasher.k1, b)
		bands = append(bands, binary.BigEndian.AppendUint64([]byte{'s', byte(i)}, h))
	}
	return bands
}

// record is what is stored about a URL.
type record struct {
	url   string
	page  Page
	first id // the first URL with this content, possibly this one
}

// hasLinks is a bit of the number of words.
const hasLinks = 1 << 31

func (r *record) bytes() []byte {
	b := append([]byte(nil), r.first[:]...)
	b = append(append(b, r.page.Bytes[:]...), r.page.Text[:]...)
	words := uint32(min(r.page.Words, hasLinks-1))
	if r.page.Links != 0 {
		words |= hasLinks
	}
	b = binary.BigEndian.AppendUint32(b, words)
	if r.page.Links != 0 {
		b = binary.BigEndian.AppendUint64(b, r.page.Links)
	}
	if r.page.Words >= MinWords {
		for _, v := range r.page.Sketch {
			b = binary.BigEndian.AppendUint16(b, v)
		}
	}
	return append(b, r.url...)
}

func parseRecord(b []byte) (*record, error) {
	const fixed = len(id{}) + 2*len(Print{}) + 4
	if len(b) < fixed {
		return nil, fmt.Errorf("%w: a record of %d bytes", errCorrupt, len(b))
	}
	var r record
	b = b[copy(r.first[:], b):]
	b = b[copy(r.page.Bytes[:], b):]
	b = b[copy(r.page.Text[:], b):]
	words := binary.BigEndian.Uint32(b)
	r.page.Words = int(words &^ hasLinks)
	b = b[4:]
	if words&hasLinks != 0 {
		if len(b) < 8 {
			return nil, fmt.Errorf("%w: a record without its links", errCorrupt)
		}
		r.page.Links = binary.BigEndian.Uint64(b)
		b = b[8:]
	}
	if r.page.Words >= MinWords {
		if len(b) < 2*bins {
			return nil, fmt.Errorf("%w: a record without its sketch", errCorrupt)
		}
		for i := range r.page.Sketch {
			r.page.Sketch[i] = binary.BigEndian.Uint16(b[2*i:])
		}
		b = b[2*bins:]
	}
	r.url = string(b)
	return &r, nil
}

// getRecord returns nil if there is none.
func getRecord(txn *badger.Txn, i id) (r *record, err error) {
	item, err := txn.Get(recordKey(i))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = item.Value(func(v []byte) error {
		r, err = parseRecord(v)
		return err
	})
	return r, err
}

// getID returns zero if there is none.
func getID(txn *badger.Txn, key []byte) (i id, err error) {
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return i, nil
	}
	if err != nil {
		return i, err
	}
	err = item.Value(func(v []byte) error {
		i = idOf(v)
		return nil
	})
	return i, err
}

// deleteIf deletes a row if it leads to i.
func deleteIf(txn *badger.Txn, key []byte, i id) error {
	other, err := getID(txn, key)
	if err != nil || other != i {
		return err
	}
	return txn.Delete(key)
}

// meta defines the meaning of a folder's rows.
type meta struct {
	version     byte
	rows        int
	shingle     int
	keepNumbers bool
	key         [16]byte
}

func (m meta) String() string {
	return fmt.Sprintf("version %d, %d values in a super-shingle, shingles of %d words, numbers kept %v", m.version, m.rows, m.shingle, m.keepNumbers)
}

func (m meta) bytes() []byte {
	keep := byte(0)
	if m.keepNumbers {
		keep = 1
	}
	return append([]byte{m.version, byte(m.rows), byte(m.shingle), keep}, m.key[:]...)
}

func parseMeta(b []byte) (m meta, err error) {
	if len(b) > 0 && b[0] != formatVersion && b[0] != 0 {
		return meta{version: b[0]}, nil // the rest has that version's format
	}
	if len(b) != 4+len(m.key) {
		return m, fmt.Errorf("%w: meta of %d bytes", errCorrupt, len(b))
	}
	m = meta{version: b[0], rows: int(b[1]), shingle: int(b[2]), keepNumbers: b[3] == 1}
	copy(m.key[:], b[4:])
	return m, nil
}

// hostAndPath splits a URL; the path includes the query. A host that is longer than any host name
// is dropped.
func hostAndPath(raw string) (host, path string) {
	const longest = 255 // RFC 1035, section 2.3.4
	u, err := url.Parse(raw)
	if err != nil {
		return "", raw
	}
	if host = u.Hostname(); len(host) > longest {
		return "", u.RequestURI()
	}
	return strings.ToLower(host), u.RequestURI()
}

// onHost returns a URL with another host's name in it, and reports whether it can.
func onHost(raw, host string) (string, bool) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority := rest[:end]
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		host = authority[:i+1] + host
	}
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexAny(authority, "]@") {
		host += authority[i:]
	}
	return scheme + "://" + host + rest[end:], true
}

// cutPair reads a mirror row's hosts and the page of the first.
func cutPair(key []byte) (host, other string, page id) {
	parts := bytes.SplitN(bytes.TrimPrefix(key, []byte("m")), []byte{0}, 3)
	if len(parts) < 3 {
		return "", "", id{}
	}
	return string(parts[0]), string(parts[1]), idOf(parts[2])
}
