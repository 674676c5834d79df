// This file gives a list to a frontier.

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
	maxFaults = 20   // told of each kind
)

// Options say how a list is taken. The zero value takes all URLs.
type Options struct {
	// At is when the URLs are said to have changed. Zero means now.
	At time.Time
	// Wanted says why the crawl is not to have a URL, or nil: Wanted of the Crawler. Nil
	// means that it is to have each.
	Wanted func(e frontier.Entry) error
	// Normalize spells URLs as the crawl has them. Nil means urlnorm.New().Normalize.
	Normalize func(url string) (string, error)
}

// Result is what became of a list. A URL counts once: URLs = New + Known + Unwanted +
// Wrong + Unheard.
type Result struct {
	URLs     int64 `json:"urls"`     // that the list has
	New      int64 `json:"new"`      // were not known, and are admitted
	Known    int64 `json:"known"`    // are hinted at; that has an effect if they are scheduled
	Unwanted int64 `json:"unwanted"` // the crawl is not to have
	Wrong    int64 `json:"wrong"`    // are no URLs, or of another host than they are listed for, or were refused by the frontier
	Unheard  int64 `json:"unheard"`  // are known, but too many hints wait (frontier.ErrHints): to be listed again in a while
	// Faults are the first 20 of Wrong, of Unheard, and of Unwanted, in this order.
	Faults []Fault `json:"faults,omitempty"`
}

// Fault is why a URL was not taken. The URL is not named: it may hold a password.
type Fault struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

// Error implements error.
func (f Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Reason) }

// adder is one Add.
type adder struct {
	f       *frontier.Frontier
	o       Options
	r       Result
	entries []frontier.Entry
	lines   []int // of entries

	wrong, unheard, unwanted []Fault
}

// Add gives the URLs of a list to a frontier. Its error is that of the list's reader or
// of its JSON, with the line, or the frontier's or ctx's, and ends it: what the Result
// counts until then is taken. What is wrong with URLs is only in the Result.
func Add(ctx context.Context, f *frontier.Frontier, list io.Reader, o Options) (Result, error) {
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

// take makes an entry of a line.
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

// isOf tells whether a URL is of a host, which IndexNow names without a scheme.
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

// flush adds what was taken so far.
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
