// This file implements changed: it reports lists of changed URLs to a crawl that fetches pages again.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/crawler/incremental"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

func changedCommand() *cli.Command {
	c := operating("changed", "[FILE]", "tell a recrawl which URLs have changed: a list of them, or what IndexNow sent", nil,
		&cli.TimestampFlag{Name: "at", Usage: "`moment` since which they are other, as in 2027-01-31T08:00:00Z (default: now); a list that is given twice with it says nothing new", Config: cli.TimestampConfig{Layouts: []string{time.RFC3339}}})
	c.Action = func(ctx context.Context, cmd *cli.Command) (err error) {
		in, err := input(cmd)
		if err != nil {
			return err
		}
		defer in.Close()
		crawl, err := reachOr(ctx, cmd.String("dir"), openAsBegun)
		if err != nil {
			return err
		}
		defer func() { err = join(err, crawl.close()) }()
		x, err := crawl.Changed(ctx, in, cmd.Timestamp("at"))
		if err != nil {
			return err
		}
		return errors.Join(newPrinter(cmd).changed(x), notTaken(x))
	}
	return c
}

// notTaken returns an error if the operator must act on URLs of the list.
func notTaken(x changefeed.Result) error {
	switch {
	case x.Wrong > 0 && x.Unheard > 0:
		return fmt.Errorf("%d URLs are wrong, and %d were not heard: list these again in a while", x.Wrong, x.Unheard)
	case x.Wrong > 0:
		return fmt.Errorf("%d URLs are wrong", x.Wrong)
	case x.Unheard > 0:
		return fmt.Errorf("%d URLs were not heard, for too many hints wait: list them again in a while", x.Unheard)
	}
	return nil
}

// changed returns the function that takes such lists; nil if the crawl fetches nothing again.
func (w *recrawlFlags) changed(f *frontier.Frontier, crawl *crawler.Crawler, norm *urlnorm.Normalizer) func(context.Context, io.Reader, time.Time) (changefeed.Result, error) {
	if !w.on {
		return nil
	}
	o := changefeed.Options{Wanted: crawl.Wanted}
	if norm != nil {
		o.Normalize = norm.Normalize
	}
	return func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error) {
		o := o
		o.At = at
		return changefeed.Add(ctx, f, list, o)
	}
}

// openAsBegun opens the folder of a crawl at rest with the crawl's scope and the priorities of new URLs.
// Known URLs are judged when the crawl continues.
func openAsBegun(ctx context.Context, dir string) (*reached, error) {
	s := newSettings()
	if err := s.readKept(dir); err != nil {
		return nil, err
	}
	unread := secretOptions // nothing is fetched, so no secret is needed
	for _, n := range crawlNeeds {
		if slices.ContainsFunc(n.beside, func(b beside) bool { return slices.Contains(secretOptions, b.option) }) {
			unread = slices.Concat(unread, n.options)
		}
	}
	for _, name := range unread {
		s.find(name).read = nil
	}
	if err := s.judge(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", keptConfig, err)
	}
	if s.names != nil {
		defer s.names.Close()
	}
	closing := func() error { return nil }
	if s.recrawl.on {
		r, err := incremental.Open(s.recrawl.options) // without its folder: nothing is fetched
		if err != nil {
			return nil, err
		}
		r.Configure(&s.frontier)
		closing = r.Close
	}
	c, err := openWith(ctx, dir, openStore, s.frontier, func(f *frontier.Frontier, o *console.Options) error {
		crawl, err := crawler.New(f, s.crawler)
		if err == nil {
			o.Changed, o.Wanted = s.recrawl.changed(f, crawl, s.crawler.Normalizer), crawl.Wanted
		}
		return err
	})
	if err != nil {
		return nil, join(err, closing())
	}
	end := c.close
	c.close = func() error { return join(end(), closing()) }
	return c, nil
}
