// This file adds the URLs of a list to a frontier.

package changefeed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

const (
	addAtOnce = 1000 // URLs
	maxFaults = 20   // reported of each kind
)

// Options configure Add. The zero value accepts all URLs.
type Options struct {
	// At is when the URLs changed according to the list. Zero means now.
	At time.Time
	// Wanted returns why the crawl must not have a URL, or nil; use the Crawler's Wanted. Nil
	// accepts all URLs.
	Wanted func(e frontier.Entry) error
	// Normalize brings URLs to the crawl's normal form. Nil means urlnorm.New().Normalize.
	Normalize func(url string) (string, error)
}

// Result counts what happened to the URLs of a list, each once: URLs = New + Known + Unwanted +
// Wrong + Unheard.
type Result struct {
	URLs     int64 `json:"urls"`     // in the list
	New      int64 `json:"new"`      // were not known, and are admitted
	Known    int64 `json:"known"`    // hints for known URLs; they have an effect if the URL is scheduled
	Unwanted int64 `json:"unwanted"` // refused by Options.Wanted
	Wrong    int64 `json:"wrong"`    // malformed, of another host than listed, or refused by the frontier
	Unheard  int64 `json:"unheard"`  // known, but too many hints are pending (frontier.ErrHints): add them again later
	// Faults are the first 20 of each of Wrong, Unheard and Unwanted, in this order.
	Faults []Fault `json:"faults,omitempty"`
}

// Fault is why a URL was not added. It does not contain the URL, which may hold a password.
type Fault struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// Errors returns what an Adder says of entries that it gave to another frontier as a list of their URLs: the
// entry of each line is at an index.
func (r Result) Errors(index []int) (errs []error) {
	refused := errors.New("the frontier refused it")
	for _, kind := range []struct {
		n  int64
		is error
	}{{r.Wrong, refused}, {r.Unheard, frontier.ErrHints}} {
		for i := range kind.n {
			e := &frontier.EntryError{Index: index[len(index)-1], Err: kind.is}
			if i < maxFaults && len(r.Faults) > 0 {
				e.Index = index[min(max(1, r.Faults[0].Line), len(index))-1]
				if kind.is == refused {
					e.Err = errors.New(r.Faults[0].Reason)
				}
				r.Faults = r.Faults[1:]
			}
			errs = append(errs, e)
		}
	}
	return errs
}

// Error implements error.
func (f Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// adder is one Add.
type adder struct {
	f       Adder
	o       Options
	r       Result
	entries []frontier.Entry
	lines   []int // of entries

	wrong, unheard, unwanted []Fault
}

// Adder is what the changes are added to: a *frontier.Frontier or a *client.Client.
type Adder interface {
	Add(ctx context.Context, entries ...frontier.Entry) (int, error)
}

// Add adds the URLs of a list to a frontier. An error ends it: of the list's reader or its JSON,
// with the line, or of the frontier or ctx. What the Result counts until then has been added.
// Problems with single URLs are reported only in the Result.
func Add(ctx context.Context, f Adder, list io.Reader, o Options) (Result, error) {
	if o.At.IsZero() {
		o.At = time.Now()
	}
	if o.Normalize == nil {
		o.Normalize = urlnorm.New().Normalize
	}
	a := &adder{f: f, o: o}
	err := a.all(ctx, list)
	a.r.Faults = append(append(a.wrong, a.unheard...), a.unwanted...)
	return a.r, err
}

func (a *adder) all(ctx context.Context, list io.Reader) error {
	for x, err := range read(list, maxBody) {
		if err != nil {
			return errors.Join(a.flush(ctx), fmt.Errorf("changefeed: line %d: %w", x.line, err))
		}
		a.take(x)
		if len(a.entries) == addAtOnce {
			if err := a.flush(ctx); err != nil {
				return err
			}
		}
	}
	return a.flush(ctx)
}

// take converts a line to an entry.
func (a *adder) take(x item) {
	e := frontier.Entry{Hint: true, NotBefore: a.o.At}
	err := x.err
	if err == nil {
		e.URL, err = a.o.Normalize(x.url)
	}
	if err == nil && x.host != "" && !a.isOf(e.URL, x.host) {
		err = fmt.Errorf("it is not of the host %.100q that it is listed for", x.host)
	}
	if err != nil {
		a.r.URLs++
		a.r.Wrong++
		a.wrong = told(a.wrong, x.line, err)
		return
	}
	if a.o.Wanted != nil {
		if err := a.o.Wanted(e); err != nil {
			a.r.URLs++
			a.r.Unwanted++
			a.unwanted = told(a.unwanted, x.line, err)
			return
		}
	}
	a.entries, a.lines = append(a.entries, e), append(a.lines, x.line)
}

func told(faults []Fault, line int, err error) []Fault {
	if len(faults) == maxFaults {
		return faults
	}
	return append(faults, Fault{line, err.Error()})
}

// isOf reports whether a URL belongs to a host, which IndexNow names without a scheme.
func (a *adder) isOf(spelled, host string) bool {
	u, err := url.Parse(spelled)
	if err != nil {
		return false
	}
	if strings.EqualFold(u.Host, host) || strings.EqualFold(u.Hostname(), host) {
		return true
	}
	same, err := a.o.Normalize(u.Scheme + "://" + host + "/")
	if err != nil {
		return false
	}
	h, err := url.Parse(same)
	return err == nil && h.Host == u.Host
}

// flush adds the entries collected so far.
func (a *adder) flush(ctx context.Context) error {
	if len(a.entries) == 0 {
		return nil
	}
	n, err := a.f.Add(ctx, a.entries...)
	bad := frontier.EntryErrors(err)
	if err != nil && len(bad) == 0 {
		return fmt.Errorf("changefeed: from line %d on: %w", a.lines[0], err)
	}
	for _, e := range bad {
		if errors.Is(e, frontier.ErrHints) {
			a.r.Unheard++
			a.unheard = told(a.unheard, a.lines[e.Index], e.Err)
			continue
		}
		a.r.Wrong++
		a.wrong = told(a.wrong, a.lines[e.Index], e.Err)
	}
	a.r.URLs += int64(len(a.entries))
	a.r.New += int64(n)
	a.r.Known += int64(len(a.entries) - n - len(bad))
	a.entries, a.lines = a.entries[:0], a.lines[:0]
	return nil
}
