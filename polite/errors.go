// This file declares the errors that a caller may meet.

package polite

import (
	"errors"
	"fmt"
	"time"
)

// ErrHandedBack means that the lease of a request was handed back so that robots.txt could be
// read in its host's turn. The URL waits again, first of its host. Done returns
// frontier.ErrNotLeased for the lease; no other error must be expected, and nothing is lost.
var ErrHandedBack = errors.New("polite: handed back to read robots.txt")

// ErrLeaseUsed means that a second request was made under a lease. One lease allows one contact.
var ErrLeaseUsed = errors.New("polite: the lease was used for another request")

// BusyError means that a host may not be contacted now. Nothing was sent.
type BusyError struct {
	Host string
	// Until is when the host may be contacted, if nothing else happens before; zero if the time is
	// not known.
	Until time.Time

	delay time.Duration // the Crawl-delay, if that is what must pass
}

// Error implements error.
func (e *BusyError) Error() string {
	if e.Until.IsZero() {
		return fmt.Sprintf("polite: %s may not be contacted now", e.Host)
	}
	return fmt.Sprintf("polite: %s may not be contacted before %s", e.Host, e.Until.Format(time.RFC3339))
}

// RedirectError means that a request under a lease was redirected. The lease does not cover the
// target, which has to wait for its own turn: Visit.Outcome adds it to the frontier.
type RedirectError struct {
	From, To string
}

// Error implements error.
func (e *RedirectError) Error() string {
	return fmt.Sprintf("polite: the lease of %q does not cover its redirect to %q", e.From, e.To)
}

// DeniedError means that robots.txt forbids a URL. Nothing was sent.
type DeniedError struct {
	URL     string
	Pattern string // of the rule that forbids it
	Line    int    // of the rule in robots.txt
}

// Error implements error.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("polite: robots.txt forbids %q: line %d, %s", e.URL, e.Line, e.Pattern)
}

// UnreachableError means that a site's robots.txt could not be read, so that nothing may be
// fetched from the site (RFC 9309 section 2.3.1.4). Nothing was sent for the request.
type UnreachableError struct {
	Site   string    // scheme, host and port
	Until  time.Time // robots.txt is not requested again before
	Status int       // of the last answer; 0 if there was none
	Err    error     // why there was none, or none that could be read

	aside bool // the URL should let others of its host pass
}

// Error implements error.
func (e *UnreachableError) Error() string {
	what := fmt.Sprintf("status %d", e.Status)
	if e.Err != nil {
		what = e.Err.Error()
	}
	return fmt.Sprintf("polite: robots.txt of %s is unreachable until %s: %s", e.Site, e.Until.Format(time.RFC3339), what)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }
