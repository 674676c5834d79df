// This file holds the options of Revisits.

package incremental

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Options configure Revisits. The zero value works, and keeps nothing beyond the URLs.
type Options struct {
	// Schedule holds the scheduler's options: the budget, the limits of intervals, the probe. A
	// NewShareMax of zero means 0.5 here: half of the fetches are for never-crawled URLs, while
	// there are any and known pages are due.
	Schedule recrawl.Options
	// Dir is the folder for the state of the crawl as a whole. Empty means that none is stored.
	Dir string
	// SaveEvery is how often that state is saved while pages are visited; a young crawl also saves
	// it when its price has moved. Zero means 30 s.
	SaveEvery time.Duration
	// MinChange is the part of a page's content that must differ for a change, from 0 to 1; smaller
	// differences add up until they reach it (neardup.Page.Change: 0.05 is about five words in a
	// hundred). Zero means that any change of words counts. Keep it the same for the lifetime of a
	// crawl; otherwise changes are missed once.
	MinChange float64
	// Weight returns the value of a fresh copy of a page compared with others, from 1e-4 to 1e4;
	// pages with 0 are fetched once. Spam should be near 0. Nil means the Entry's Weight, where 0
	// counts as 1 and a negative one as 0. All workers call it concurrently.
	Weight func(e frontier.Entry, h frontier.History) float64
	// OnGone, if set, is called with each page that is found gone for the second time, so that its
	// copy can be deleted. All workers call it concurrently.
	OnGone func(e frontier.Entry)

	// Now returns the time. Nil means time.Now.
	Now func() time.Time
	// Logger receives what an operator should see. Nil discards it.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Schedule.NewShareMax = cmp.Or(o.Schedule.NewShareMax, max(0.5, o.Schedule.NewShareMin))
	o.SaveEvery = cmp.Or(o.SaveEvery, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) validate() error { // runs after withDefaults; recrawl.New judges Schedule
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(!(o.MinChange >= 0 && o.MinChange <= 1), "MinChange is %v; want 0 to 1", o.MinChange)
	return errors.Join(wrong...)
}

var _ crawler.Revisits = (*Revisits)(nil)
