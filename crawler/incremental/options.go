// This file holds what can be set about revisits.

package incremental

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Options configure Revisits. The zero value works, and keeps nothing beyond the URLs.
type Options struct {
	// Schedule are the scheduler's: the budget, the bounds of intervals, the probe. A
	// NewShareMax of zero means 0.5 here: half of the fetches are for URLs never
	// crawled, while there are any and others are due.
	Schedule recrawl.Options
	// Dir is the folder for what is kept of the crawl as a whole. Empty: nothing is.
	Dir string
	// SaveEvery is how often that is written, while pages are visited; a young crawl's
	// also when its price has moved. Zero means 30 s.
	SaveEvery time.Duration
	// MinChange is how much of a page's content must be other for a change, from 0 to 1;
	// less is left to add up (neardup.Page.Change: 0.05 are about five words of a hundred).
	// Zero: any change of words counts. It must stay as it is while URLs are kept, or
	// changes are missed once.
	MinChange float64
	// Weight is what a fresh copy of a page is worth to the crawl, beside others, from
	// 1e-4 to 1e4; 0: it is fetched once. Spam should be near 0. Nil means the Entry's
	// Weight, of which 0 counts as 1 and a negative one as 0. It is called by all workers
	// at once.
	Weight func(e frontier.Entry, h frontier.History) float64
	// OnGone, if set, is told of each page that is gone for the second time, so that
	// the copy is of no use. It is called by all workers at once.
	OnGone func(e frontier.Entry)

	// Now tells the time. Nil means time.Now.
	Now func() time.Time
	// Logger gets what an operator should see. Nil means silence.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Schedule.NewShareMax == 0 {
		o.Schedule.NewShareMax = max(0.5, o.Schedule.NewShareMin)
	}
	if o.SaveEvery == 0 {
		o.SaveEvery = 30 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults; recrawl.New judges Schedule
	var errs []error
	if !(o.MinChange >= 0 && o.MinChange <= 1) {
		errs = append(errs, fmt.Errorf("MinChange is %v; want 0 to 1", o.MinChange))
	}
	if o.SaveEvery < 0 {
		errs = append(errs, fmt.Errorf("SaveEvery is %v; want >= 0", o.SaveEvery))
	}
	return errors.Join(errs...)
}

var _ crawler.Revisits = (*Revisits)(nil)
