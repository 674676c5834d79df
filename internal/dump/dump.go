// Package dump implements the format of exports: lines of JSON, as docs/export.md describes them. A
// Writer sorts its input and writes it; a Reader passes the content of lines to a Sink. Both own
// only the state of one export or import. They take no lock: for the frontier's state they call a
// Source or a Sink, which takes it.
package dump

import (
	"errors"

	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// Header is the content of the first line. Times are Unix milliseconds.
type Header struct {
	Moment int64     // that the export shows
	Key    [2]uint64 // of the marks
	Held   int64     // hosts without a line are left alone until then; 0: they are not
}

// URL is a URL with everything stored about it. Times are Unix milliseconds; 0: none.
type URL struct {
	URL      string
	Host     string // that was given with it; empty: it follows from the URL
	Crawl    uint32
	Priority int
	Depth    int
	Weight   float64
	Due      int64 // it waits from then on; 0: it waits now; instant.KeptMillis: it is finished
	Fails    int
	Meta     []byte
	record.History
}

// Source provides a Writer with state of the frontier.
type Source interface {
	// Alive returns the reason to end the export, if any.
	Alive() error
	// Delete takes the row of a deletion. Deleted reports whether a deletion covers a record.
	Delete(key string, value []byte) error
	Deleted(q *storage.Queue, seq uint64) bool
	// Forgot takes the row of what was forgotten.
	Forgot(key string, value []byte) error
	// Mark returns the mark of the URL of a record's body.
	Mark(q *storage.Queue, body []byte) (storage.Mark, error)
	// Host removes what is outdated from the row of a host.
	Host(name string, h *row.Host)
	// URL decodes a record's body.
	URL(body []byte, u *URL) error
}

// Sink receives the content of lines. An error is blamed on the line unless Stop made it. Arguments
// are valid only during the call.
type Sink interface {
	Header(h Header) error
	Crawl(c *row.Crawl) error
	Rule(s row.Scope, r *row.Rule) error
	// UsedByScope and UsedByCrawl take the use of limits.
	UsedByScope(s row.Scope, u row.Usage) error
	UsedByCrawl(id uint32, u row.Usage) error
	// Value takes a value of the program's.
	Value(key string, v []byte) error
	// Forgotten takes a number that marks are made with.
	Forgotten(x *row.Forgotten) error
	Group(name string, g *row.Group) error
	Host(name string, h *row.Host) error
	URL(u *URL) error
	Marks(ms []storage.Mark) error
	// Listed takes a URL of a plain list.
	Listed(url string) error
	// Malformed takes the fault of a line, with the line's number from 1 and its beginning.
	Malformed(line int64, text string, err error)
}

// stop is an error that is not the line's fault.
type stop struct{ error }

func (e *stop) Unwrap() error { return e.error }

// Stop marks err as not caused by the line: it ends the import.
func Stop(err error) error {
	if err == nil {
		return nil
	}
	return &stop{err}
}

// Stopped returns the error passed to Stop, if err came from there.
func Stopped(err error) error {
	var s *stop
	if errors.As(err, &s) {
		return s.error
	}
	return nil
}
