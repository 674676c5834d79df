// This file converts XML to entries: which elements hold a URL, a date and so on in sitemaps, index
// files and feeds, and where an entry ends if its end tag is missing.

package sitemap

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"strconv"
	"strings"
)

// field is the purpose of an element inside an entry.
type field uint8

const (
	noField field = iota
	locField
	guidField // of RSS: a URL if there is no other
	dateField
	publishedField // a date, if there is no other
	changesField
	priorityField
)

// roots are the elements that files begin with.
var roots = map[string]Format{"urlset": URLSet, "sitemapindex": Index, "rss": RSS, "RDF": RSS, "feed": Atom}

// entryElements are the elements that are entries. The first of them identifies a file without a
// root.
var entryElements = map[string]Format{"url": URLSet, "sitemap": Index, "item": RSS, "entry": Atom}

// fields are the elements that count, by format.
var fields = map[Format]map[string]field{
	URLSet: {"loc": locField, "lastmod": dateField, "changefreq": changesField, "priority": priorityField},
	Index:  {"loc": locField, "lastmod": dateField},
	RSS:    {"link": locField, "guid": guidField, "pubDate": publishedField, "date": publishedField, "updated": dateField},
	Atom:   {"link": locField, "updated": dateField, "modified": dateField, "published": publishedField, "issued": publishedField},
}

// xmlReader is the state between tags.
type xmlReader struct {
	*Reader
	s     *scanner
	depth int  // open elements inside the entry; 0 is the entry itself
	open  bool // inside an entry
	name  string
	base  string // base of relative URLs in a feed, in addition to the file's URL

	entry     Entry
	loc, guid string
	date      string
	published string
	entryBase string

	field  field  // of the element whose text is being read
	within int    // elements open inside it
	value  []byte // its text
	long   bool   // more than is kept
}

// maxValue is how many bytes of an element's text are kept.
const maxValue = 16 << 10

// readXML reads a file to its end, or to an error of the text's reader.
func (r *Reader) readXML(in *bufio.Reader) error {
	x := &xmlReader{Reader: r, s: &scanner{in: in, line: 1, bad: r.complain}}
	for !r.over {
		t, err := x.s.next()
		if err != nil {
			return x.end(err)
		}
		switch t.kind {
		case textRun:
			x.text(t.text)
		case startTag:
			x.start(&t)
		case endTag:
			x.close(&t)
		case emptyTag:
			x.start(&t)
			x.close(&t)
		}
	}
	return nil
}

// end closes what is open at the end of the file, or where reading failed: an entry counts if its
// URL was read to its end.
func (x *xmlReader) end(err error) error {
	x.at = x.s.line
	if x.open {
		x.unclosed(x.s.line)
	}
	if x.over || err != io.EOF {
		return err
	}
	if x.format == Unknown {
		return ErrFormat
	}
	return nil
}

func (x *xmlReader) start(t *token) {
	name := t.local()
	if x.format == Unknown && !x.identify(t, name) {
		return
	}
	if x.open && x.field != noField && !blank(x.value) && fields[x.format][name] != noField && x.ownVocabulary(t, fields[x.format][name]) {
		x.s.complain(t.line, "an element is not closed", string(x.value))
		x.endField(t.line)
		x.depth--
	}
	switch {
	case x.open && x.field != noField && (string(t.name) != x.name || blank(x.value)):
		x.within++ // markup inside a value: its text counts
		return
	case x.isEntry(name) && (!x.open || string(t.name) == x.name):
		if x.open {
			x.unclosed(t.line)
		}
		x.begin(t)
	case x.open:
		x.depth++
		if x.depth == 1 {
			x.startField(t, name)
			x.alternate(t, name)
		}
	case x.format == Atom && name == "feed":
		x.base = t.attr("xml:base")
	}
}

// isEntry reports whether elements with that name are entries of this file. Their name, not the
// root's, decides whether they list a page or another file.
func (x *xmlReader) isEntry(name string) bool {
	f := entryElements[name]
	return f != Unknown && (f == x.format || f <= Index && x.format <= Index)
}

// identify decides the format by the first element, and reports whether it is known.
func (x *xmlReader) identify(t *token, name string) bool {
	f, ok := roots[name]
	if !ok {
		f, ok = entryElements[name]
	}
	if !ok {
		if strings.EqualFold(name, "html") {
			x.fail(t.line, "<"+name+">", ErrFormat)
		}
		return false
	}
	x.format = f
	return true
}

// blank reports whether an element has had no text yet. This distinguishes
// <loc><url>...</url></loc>, which occurs, from a <url> after the text of a <loc>, which is the
// next entry.
func blank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

func (x *xmlReader) begin(t *token) {
	x.open, x.depth, x.name = true, 0, string(t.name)
	x.entry = Entry{Line: t.line, Priority: 0.5, Sitemap: entryElements[t.local()] == Index}
	x.loc, x.guid, x.date, x.published = "", "", "", ""
	x.entryBase = x.base
	x.field, x.within = noField, 0
	if x.format == Atom {
		x.entryBase = cmp.Or(t.attr("xml:base"), x.base)
	}
	if x.format == RSS {
		x.guid = t.attr("rdf:about")
	}
}

// startField begins an element of an entry, if it is a relevant one.
func (x *xmlReader) startField(t *token, name string) {
	f := fields[x.format][name]
	if f == noField || !x.ownVocabulary(t, f) {
		return
	}
	if f == locField && x.format == Atom {
		x.atomLink(t)
		return
	}
	x.field, x.within, x.value, x.long = f, 0, x.value[:0], false
}

// alternate returns the link of an entry to the same page in another language.
func (x *xmlReader) alternate(t *token, name string) {
	if !x.opts.Alternates || x.format > Index || x.entry.Sitemap || name != "link" || !strings.EqualFold(strings.TrimSpace(t.attr("rel")), "alternate") {
		return
	}
	u, err := x.urls.spell(strings.TrimSpace(t.attr("href")), "", URLSet) // wherever it is
	if err != nil {
		x.complain(t.line, t.attr("href"), err)
		return
	}
	if !x.over {
		x.over = !x.yield(Entry{URL: u, Alternate: true, Priority: 0.5, Line: t.line}, nil)
	}
}

// ownVocabulary reports whether an element belongs to the entry's vocabulary: it has the same
// prefix. Dates of feeds may be Dublin Core's (dc:date).
func (x *xmlReader) ownVocabulary(t *token, f field) bool {
	prefix := prefixOf(string(t.name))
	return prefix == prefixOf(x.name) || x.format == RSS && (f == publishedField || f == dateField) && (prefix == "dc" || prefix == "atom")
}

func prefixOf(name string) string { return name[:max(0, strings.IndexByte(name, ':'))] }

// atomLink reads the first link to the entry's own page (RFC 4287 section 4.2.7).
func (x *xmlReader) atomLink(t *token) {
	if rel := t.attr("rel"); x.loc != "" || rel != "" && rel != "alternate" {
		return
	}
	x.loc = t.attr("href")
	x.entryBase = cmp.Or(t.attr("xml:base"), x.entryBase)
}

func (x *xmlReader) text(b []byte) {
	if x.field == noField {
		return
	}
	if len(x.value)+len(b) > maxValue {
		x.long = true
		return
	}
	x.value = append(x.value, b...)
}

func (x *xmlReader) close(t *token) {
	if !x.open {
		return
	}
	switch {
	case string(t.name) == x.name && (x.field == noField || x.within == 0):
		if x.field != noField {
			x.s.complain(t.line, "an element is not closed", string(x.value))
			x.endField(t.line)
		}
		x.finish()
	case x.field != noField && x.within > 0:
		x.within--
	case x.field != noField:
		x.endField(t.line)
		x.depth--
	case x.depth > 0:
		x.depth--
	}
}

func (x *xmlReader) endField(line int) {
	value := strings.TrimSpace(string(x.value))
	f := x.field
	x.field = noField
	if x.long {
		x.complain(line, value, ErrURL)
		return
	}
	if value == "" {
		return
	}
	switch f {
	case locField:
		x.loc = cmp.Or(x.loc, value)
	case guidField:
		x.guid = value
	case dateField:
		x.date = value
	case publishedField:
		x.published = value
	case changesField:
		x.entry.Changes = parseFrequency(value)
	case priorityField:
		p, err := strconv.ParseFloat(strings.Replace(value, ",", ".", 1), 64)
		if err != nil || !(p >= 0 && p <= 1) {
			x.complain(line, value, ErrPriority)
			return
		}
		x.entry.Priority, x.entry.HasPriority = p, true
	}
}

// unclosed ends an entry whose end tag is missing. A value that was not closed either is not used,
// since it may be incomplete.
func (x *xmlReader) unclosed(line int) {
	x.s.complain(line, "an entry is not closed", "<"+x.name+">")
	x.field = noField
	if x.loc == "" && x.guid == "" {
		x.open = false
		return
	}
	x.finish()
}

// finish returns the entry.
func (x *xmlReader) finish() {
	x.open = false
	e := x.entry
	raw := x.loc
	if raw == "" {
		raw = x.guid
		if !strings.HasPrefix(raw, "http://") && !strings.HasPrefix(raw, "https://") {
			raw = "" // a guid need not be a URL
		}
	}
	var err error
	format := x.format
	if e.Sitemap {
		format = Index
	} else if format == Index {
		format = URLSet
	}
	if e.URL, err = x.urls.resolve(raw, x.entryBase, format); err != nil {
		x.complain(e.Line, raw, err)
		return
	}
	for _, date := range []string{x.date, x.published} {
		if date == "" || !e.Modified.IsZero() {
			continue
		}
		var ok bool
		if e.Modified, ok = parseDate(date); !ok {
			x.complain(e.Line, date, ErrDate)
		}
	}
	x.emit(e)
}
