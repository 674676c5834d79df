// This file lists the errors in sitemaps.

package sitemap

import (
	"errors"
	"fmt"
)

var (
	// ErrFormat is reported for a file that is neither a sitemap nor a feed, such as an error page.
	// It ends the file.
	ErrFormat = errors.New("neither a sitemap nor a feed")
	// ErrTooLarge is reported when a file has more than Options.MaxBytes. It ends
	// the file.
	ErrTooLarge = errors.New("file too large")
	// ErrTooMany is reported when a file has more than Options.MaxURLs entries. It
	// ends the file.
	ErrTooMany = errors.New("too many URLs")
	// ErrLocation is reported for an entry that its sitemap may not list. The entry is skipped.
	ErrLocation = errors.New("outside the sitemap's location")
	// ErrURL is reported, together with the reason, for an entry without a URL that can be crawled.
	// The entry is skipped.
	ErrURL = errors.New("no usable URL")
	// ErrDate is reported for a date that cannot be read. The entry is kept without
	// it.
	ErrDate = errors.New("unreadable date")
	// ErrPriority is reported for a priority that is not a number from 0 to 1. The entry is kept
	// without it.
	ErrPriority = errors.New("unreadable priority")
	// ErrSyntax is reported, together with the reason, for malformed XML. What
	// follows is read.
	ErrSyntax = errors.New("malformed XML")
)

// Error is an error in a file, with its position. It wraps one of the errors of this package or an
// error of the underlying reader.
type Error struct {
	URL  string // of the file: Options.URL
	Line int    // from 1; 0 if the file as a whole is meant
	Text string // the faulty text, shortened; may be empty
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	s := "sitemap: "
	if e.URL != "" {
		s += e.URL + ": "
	}
	if e.Line > 0 {
		s += fmt.Sprintf("line %d: ", e.Line)
	}
	s += e.Err.Error()
	if e.Text != "" {
		s += fmt.Sprintf(": %q", e.Text)
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
