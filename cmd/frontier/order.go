// This file reads -order: which URLs come first.

package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/selector"
)

// orderFile is a file in -dir.
const orderFile = "importance"

// orderNames are the values of -order.
var orderNames = []string{"depth", "links", "trust"}

// orderFlags is this flag.
type orderFlags struct {
	name string
	file string // empty: in memory
	est  *importance.Estimator
}

func (x *orderFlags) define(fs *flagSet) {
	fs.StringVar(&x.name, "order", "depth", "`order` of URLs: depth, links (most linked first) or trust (what the seeds lead to; avoids spam)")
}

func (x *orderFlags) validate(o *options) {
	o.badIf(!slices.Contains(orderNames, x.name), "want depth, links or trust", "order")
}

// open prepares the options of the frontier and of the crawler.
func (x *orderFlags) open(s *settings, log *slog.Logger) (err error) {
	if x.name == "depth" {
		return nil
	}
	o := importance.Options{Keep: s.recrawl.on, Memory: int64(s.memory) / 8}
	if x.name == "trust" {
		o.Score, s.frontier.Selector = importance.Trust, selector.Strict()
	}
	if x.est, err = importance.New(o); err != nil {
		return err
	}
	s.frontier.Prioritizer, s.crawler.Importance = x.est, x.est
	s.recrawl.options.Weight = x.est.Weight
	if s.dir == "" {
		return nil
	}
	x.file = filepath.Join(s.dir, orderFile)
	err = x.est.Load(x.file)
	if errors.Is(err, importance.ErrCorrupt) {
		log.Warn("what was known of links is lost: the order is worse for a while", "error", err)
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// close saves what is known.
func (x *orderFlags) close() error {
	if x.file == "" {
		return nil
	}
	return x.est.Save(x.file)
}

// worth returns what is known of URLs for the Console; nil: nothing.
func (x *orderFlags) worth() func(frontier.Entry) console.Worth {
	if x.est == nil {
		return nil
	}
	return func(e frontier.Entry) console.Worth {
		k := x.est.Explain(e)
		w := console.Worth{Links: k.Links, Level: k.Level, Pages: k.Pages, Useful: k.Useful}
		if k.Score == importance.Trust {
			w.Cash = k.Worth
		}
		return w
	}
}

// figures are those of the page and of status.
func (x *orderFlags) figures() []console.Figure {
	if x.est == nil {
		return nil
	}
	c := x.est.Counts()
	list := []console.Figure{{Name: "links_found", Value: float64(c.Links)}, {Name: "links_noted", Value: float64(c.Noted)}}
	if x.name == "trust" {
		list = append(list, console.Figure{Name: "covered", Value: c.Covered})
	}
	return list
}
