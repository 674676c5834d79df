// This file holds what users see of reading one file: its options, its entries, and
// the loop that gives them out. Which bytes make an entry is decided in entries.go
// for XML and in text.go for text.

package sitemap

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Format is what kind of file was read.
type Format uint8

// The formats of files.
const (
	Unknown Format = iota // nothing was read yet, or it is neither sitemap nor feed
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
	// Sitemap says that the URL is that of another file: this one is an index.
	Sitemap bool
	// Alternate says that the URL is that of the same page in another language or for
	// other devices (xhtml:link): see Options.Alternates. Nothing else is said of it.
	Alternate bool
	// Modified is when the page is said to have changed last (of a feed, when it was
	// published, if nothing else is said); zero if unknown. A date without a time is
	// its midnight in UTC.
	Modified time.Time
	// Changes is how often the page is said to change.
	Changes Frequency
	// Priority is how important the page is to its site, from 0 to 1: 0.5 if
	// nothing is said, as the protocol has it.
	Priority float64
	// HasPriority tells a priority of 0.5 from none.
	HasPriority bool
	// Line is where the entry begins, from 1.
	Line int
}

// Locations says which URLs a file may name.
type Locations uint8

const (
	// OwnFolder are URLs of the file's own scheme, host, port and folder, and of
	// Options.Hosts: what the protocol allows.
	OwnFolder Locations = iota
	// OwnHost are URLs of the file's host whatever the folder, scheme and port, and
	// of Options.Hosts.
	OwnHost
	// AnyURL are all.
	AnyURL
)

// Options say how a file is read. Zero fields have the values of sitemaps.org.
type Options struct {
	// URL is where the file is from. Relative URLs refer to it, and Locations. If it
	// is empty there are no relative URLs, and all locations are allowed.
	URL string
	// ContentType is the Content-Type header, of which only a charset counts.
	ContentType string
	// Locations says which URLs may be named.
	Locations Locations
	// Hosts are names of hosts whose robots.txt names this file: all of their URLs
	// may be in it.
	Hosts []string
	// Alternates gives out what entries of sitemaps name as their alternates (hreflang),
	// each before its entry, wherever it is: these are links, and no claims of the site.
	// A file that is written as search engines ask for names each of n alternates n
	// times. They do not count as entries.
	Alternates bool
	// Normalizer resolves and spells URLs. Nil means urlnorm.New().
	Normalizer *urlnorm.Normalizer
	// MaxBytes is how much is read after decompression. Zero means 50 MiB.
	MaxBytes int64
	// MaxURLs is how many entries are given out. Zero means 50,000.
	MaxURLs int
	// MaxErrors is how many errors are given out; later ones that do not end the
	// file are merely counted. Zero means 100.
	MaxErrors int
}

func (o Options) withDefaults() Options {
	if o.Normalizer == nil {
		o.Normalizer = urlnorm.New()
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 50 << 20
	}
	if o.MaxURLs <= 0 {
		o.MaxURLs = 50_000
	}
	if o.MaxErrors <= 0 {
		o.MaxErrors = 100
	}
	return o
}

// Reader reads one file. It is not safe for concurrent use.
type Reader struct {
	opts   Options
	src    io.Reader
	urls   resolver
	format Format
	given  int // entries given out
	errs   int // errors met
	yield  func(Entry, error) bool
	at     int  // line where the text ended
	over   bool // the caller or a limit ended the loop
}

// NewReader returns a Reader of src, which it reads only when asked for entries.
func NewReader(src io.Reader, o Options) *Reader {
	o = o.withDefaults()
	return &Reader{opts: o, src: src, urls: newResolver(o)}
}

// Format returns what the file turned out to be; it is known from the first entry on.
func (r *Reader) Format() Format { return r.format }

// Errors returns how many errors were met so far, those not given out included.
func (r *Reader) Errors() int { return r.errs }

// All returns what is in the file, once: either an entry or an [*Error] at a time,
// in the order of the file.
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

// emit gives an entry out.
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

// complain reports an error after which reading goes on.
func (r *Reader) complain(line int, text string, err error) {
	if r.errs++; r.errs <= r.opts.MaxErrors && !r.over {
		r.over = !r.yield(Entry{}, r.error(line, text, err))
	}
}

// fail reports an error that ends the file. It is given out whatever MaxErrors is.
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
