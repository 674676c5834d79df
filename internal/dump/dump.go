// Package dump is the format of exports: lines of JSON, as docs/export.md describes them. A
// Writer sorts what it is given and writes it; a Reader hands what lines say to a Sink.
// Both own only what belongs to one export or import. They take no lock: what needs the
// frontier's they ask a Source or a Sink, which takes it.
package dump

import (
	"errors"

	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// Header is what the first line says. Times are Unix milliseconds.
type Header struct {
	Moment int64     // that the export shows
	Key    [2]uint64 // of the marks
	Held   int64     // hosts without a line are left alone until then; 0: they are not
}

// URL is a URL with all that is known of it. Times are Unix milliseconds; 0: none.
type URL struct {
	URL      string
	Crawl    uint32
	Priority int
	Depth    int
	Weight   float64
	Due      int64 // it waits from then on; 0: it waits now
	Fails    int
	Meta     []byte
	record.History
}

// Source answers what a Writer asks.
type Source interface {
	// Alive returns why the export should end, if it should.
	Alive() error
	// Delete takes the row of a deletion. Deleted reports whether a record fell to one.
	Delete(key string, value []byte) error
	Deleted(q *storage.Queue, seq uint64) bool
	// Mark returns the mark of the URL of a record's body.
	Mark(crawl uint32, body []byte) (storage.Mark, error)
	// Host leaves of what a row says of a host what still counts.
	Host(name string, h *row.Host)
	// URL decodes a record's body.
	URL(body []byte, u *URL) error
}

// Sink takes what lines say. An error is the line's fault unless Stop made it. What it is
// given is valid during the call.
type Sink interface {
	Header(h Header) error
	Crawl(c *row.Crawl) error
	Rule(s row.Scope, r *row.Rule) error
	// UsedByScope and UsedByCrawl take what was used of limits.
	UsedByScope(s row.Scope, u row.Usage) error
	UsedByCrawl(id uint32, u row.Usage) error
	Group(name string, g *row.Group) error
	Host(name string, h *row.Host) error
	URL(u *URL) error
	Marks(ms []storage.Mark) error
	// Listed takes a URL of a plain list.
	Listed(url string) error
	// Malformed takes what is wrong with a line, counted from 1, and the line's beginning.
	Malformed(line int64, text string, err error)
}

// stop is an error that is not the line's fault.
type stop struct{ error }

func (e *stop) Unwrap() error { return e.error }

// Stop makes err one that is not the line's fault: it ends the import.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stop{err}
}

// Stopped returns the error that Stop was given, if err is one of those.
func Stopped(err error) error {
	var s *stop
	if errors.As(err, &s) {
		return s.error
	}
	return nil
}
