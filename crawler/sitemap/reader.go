// This file is the public side of reading one file: its options, its entries, and the loop that
// returns them. entries.go finds entries in XML, text.go in text.

package sitemap

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Format is the kind of a file.
type Format uint8

// The formats of files.
const (
	Unknown Format = iota // nothing was read yet, or it is neither a sitemap nor a feed
	URLSet                // XML sitemap
	Index                 // sitemap index
	Text                  // one URL a line
	RSS                   // any version, RDF too
	Atom
)

// String returns the format's name.
func (f Format) String() string {
	return [...]string{"unknown", "urlset", "index", "text", "rss", "atom"}[min(f, Atom)]
}

// Entry is one URL that a file names.
type Entry struct {
	URL string // absolute, in normal spelling
	// Sitemap means that the URL leads to another such file: this one is an index.
	Sitemap bool
	// Alternate means that the URL leads to the same page in another language or for other devices
	// (xhtml:link): see Options.Alternates. The other fields are not set.
	Alternate bool
	// Modified is when the page last changed according to the file; in a feed without such a date,
	// when it was published; zero if unknown. A date without a time means midnight in UTC.
	Modified time.Time
	// Changes is how often the page is said to change.
	Changes Frequency
	// Priority is the importance of the page within its site, from 0 to 1: 0.5 if not stated, as
	// the protocol defines.
	Priority float64
	// HasPriority distinguishes a stated priority of 0.5 from none.
	HasPriority bool
	// Line is where the entry begins, from 1.
	Line int
}

// Locations defines which URLs a file may list.
type Locations uint8

const (
	// OwnFolder permits URLs with the file's scheme, host, port and folder, and those of
	// Options.Hosts, according to the protocol.
	OwnFolder Locations = iota
	// OwnHost permits URLs of the file's host with any folder, scheme and port, and those of
	// Options.Hosts.
	OwnHost
	// AnyURL are all.
	AnyURL
)

// Options configure a Reader. Zero fields have the values of sitemaps.org.
type Options struct {
	// URL is the URL of the file, for relative URLs and Locations. If it is empty, relative URLs
	// are errors, and all locations are allowed.
	URL string
	// ContentType is the Content-Type header; only its charset is used.
	ContentType string
	// Locations defines which URLs the file may list.
	Locations Locations
	// Hosts are the hosts whose robots.txt lists this file: it may list all of their URLs.
	Hosts []string
	// Alternates also returns the alternates (hreflang) of sitemap entries, at any location, each
	// before its entry: they are links, not claims of the site. A file written as search engines
	// require lists each of n alternates n times. They do not count as entries.
	Alternates bool
	// Normalizer resolves and spells URLs. Nil means urlnorm.New().
	Normalizer *urlnorm.Normalizer
	// MaxBytes limits what is read after decompression. Zero means 50 MiB.
	MaxBytes int64
	// MaxURLs is the maximum number of entries. Zero means 50,000.
	MaxURLs int
	// MaxErrors is the number of errors returned; further errors that do not end the file are only
	// counted. Zero means 100.
	MaxErrors int
}

func (o Options) withDefaults() Options {
	if o.Normalizer == nil {
		o.Normalizer = urlnorm.New()
	}
	o.MaxBytes = cmp.Or(max(0, o.MaxBytes), 50<<20)
	o.MaxURLs = cmp.Or(max(0, o.MaxURLs), 50_000)
	o.MaxErrors = cmp.Or(max(0, o.MaxErrors), 100)
	return o
}

// Reader reads one file. It is not safe for concurrent use.
type Reader struct {
	opts   Options
	src    io.Reader
	urls   resolver
	format Format
	given  int // entries returned
	errs   int // errors met
	yield  func(Entry, error) bool
	at     int  // line where the text ended
	over   bool // the caller or a limit ended the loop
}

// NewReader returns a Reader of src, which it reads only when entries are requested.
func NewReader(src io.Reader, o Options) *Reader {
	o = o.withDefaults()
	return &Reader{opts: o, src: src, urls: newResolver(o)}
}

// Format returns the format of the file; it is known from the first entry on.
func (r *Reader) Format() Format { return r.format }

// Errors returns the number of errors so far, including those that were not returned.
func (r *Reader) Errors() int { return r.errs }

// All returns the contents of the file, once: one entry or one [*Error] at a time, in the order of
// the file.
func (r *Reader) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if r.over {
			return
		}
		r.yield = yield
		r.read()
		r.over = true
	}
}

func (r *Reader) read() {
	body := decompress(r.src, r.opts.MaxBytes)
	text, err := decode(body, r.opts.ContentType)
	if err != nil {
		r.fail(0, "", err)
		return
	}
	in := bufio.NewReaderSize(text, bufferSize)
	head, err := in.Peek(headSize)
	if len(head) == 0 {
		if err == io.EOF {
			err = ErrFormat
		}
		r.fail(0, "", err)
		return
	}
	if looksLikeXML(head) {
		err = r.readXML(in)
	} else {
		r.format = Text
		err = r.readText(in)
	}
	if err != nil && !errors.Is(err, io.EOF) && !r.over {
		r.fail(r.at, "", err)
	}
}

// emit returns an entry to the caller of All.
func (r *Reader) emit(e Entry) {
	if r.over {
		return
	}
	if r.given == r.opts.MaxURLs {
		r.fail(e.Line, "", ErrTooMany)
		return
	}
	r.given++
	r.over = !r.yield(e, nil)
}

// complain reports an error after which reading continues.
func (r *Reader) complain(line int, text string, err error) {
	if r.errs++; r.errs <= r.opts.MaxErrors && !r.over {
		r.over = !r.yield(Entry{}, r.error(line, text, err))
	}
}

// fail reports an error that ends the file, whatever MaxErrors is.
func (r *Reader) fail(line int, text string, err error) {
	if r.errs++; !r.over {
		r.yield(Entry{}, r.error(line, text, err))
	}
	r.over = true
}

func (r *Reader) error(line int, text string, err error) *Error {
	const most = 100
	if len(text) > most {
		text = text[:most] + "..."
	}
	return &Error{URL: r.opts.URL, Line: line, Text: text, Err: err}
}
