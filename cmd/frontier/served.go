// This file crawls with a frontier of another process.

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/crawler"
)

// servedFlags select that frontier.
type servedFlags struct {
	address string
	crawl   string
	token   string
	secret  string // the value that token names
}

func (f *servedFlags) define(fs *flagSet) {
	fs.StringVar(&f.address, "frontier", "", "`address` of a frontier that is served: http://HOST:PORT, https://HOST:PORT or unix:PATH, or several of one frontier with commas between them; it keeps the crawl, its hosts' clocks, rules and limits (default: one in this process)")
	fs.StringVar(&f.crawl, "frontier-crawl", "", "`name` of the crawl there (default: DEFAULT, and URLs of any crawl are fetched)")
	fs.StringVar(&f.token, "frontier-token", "", "token that the server asks for, as env:NAME or file:PATH")
}

// Options without effect beside -frontier, because the server has them: whole themes, and single ones.
var (
	themesOfServer  = []string{"limits of each host", "fetching again", "copies", "the status page"}
	optionsOfServer = []string{
		"dir", "memory", "sync", "max-pages-per-host", "delay", "delay-factor", "min-delay", "max-delay", "group-delay", "backoff-base", "backoff-max",
		"probes", "backoff-forgive", "quarantine-after", "quarantine-probe", "host-concurrency", "group-concurrency", "retry-tries", "retry-wait", "rule", "order",
	}
)

func (f *servedFlags) apply(o *options) {
	if f.address == "" {
		return
	}
	for _, x := range o.all {
		if x.from != fromDefault && x.Value.String() != x.DefValue && (slices.Contains(themesOfServer, x.theme) || slices.Contains(optionsOfServer, x.Name)) {
			o.fault([]string{x.Name}, "%s cannot be combined with %s: the server decides that", o.shown(x.Name), o.shown("frontier"))
		}
	}
	if f.token != "" {
		value, secret, err := named(f.token)
		if f.secret = value; err == nil && !secret {
			err = errors.New("a token stands in no command line and no configuration: give it as env:NAME or file:PATH")
		}
		if err != nil {
			o.fault([]string{"frontier-token"}, "%s: %w", o.shown("frontier-token"), err)
		}
	}
	c, err := client.New(f.address, client.Options{})
	if err != nil {
		o.wrong(err, "frontier")
		return
	}
	_ = c.Close()
}

// crawlServed crawls with a server's frontier. Without an error it returns how the crawl ended.
func (s *settings) crawlServed(ctx context.Context, log *slog.Logger, stdout io.Writer) (end ending, err error) {
	if s.names != nil {
		defer s.names.Close()
	}
	defer func() { err = join(err, s.record.close()) }()
	if err := s.record.open("", log); err != nil {
		return end, err
	}
	f, err := client.New(s.served.address, client.Options{Crawl: s.served.crawl, Token: s.served.secret, Logger: log})
	if err != nil {
		return end, err
	}
	defer func() { err = join(err, f.Close()) }()
	done, err := openDoneLog(s.doneLog)
	if err != nil {
		return end, err
	}
	defer func() { err = join(err, done.Close()) }()
	closeModules, err := s.modules.open(s, f, log)
	defer func() { err = join(err, closeModules()) }()
	if err != nil {
		return end, err
	}
	s.crawler.OnDone = func(l frontier.Lease, o frontier.Outcome) {
		done.add(l, o)
		s.bound.add(o)
	}
	s.crawler.OnEnd = s.record.record()
	s.crawler.Logger = log
	s.crawler.Cut = cutBy(ctx)
	c, err := crawler.New(f, s.crawler)
	if err != nil {
		return end, err
	}
	s.warnOfContact(log)
	if err := s.addSeedsTo(ctx, c, log); err != nil {
		return end, err
	}
	defer context.AfterFunc(ctx, func() {
		log.Info("stopping: Ctrl-C again cuts the fetches under way", "fetches", c.Progress().Busy)
	})()
	if err := c.Run(ctx); err != nil && err != ctx.Err() {
		return end, err
	}
	p := c.Progress()
	s.summarize(p, log, stdout)
	return s.endOfServed(ctx, p), s.modules.report(stdout)
}

// endOfServed returns how a run ended that finished or was stopped. Its counts are those of the crawl
// that -frontier-crawl names.
func (s *settings) endOfServed(ctx context.Context, p crawler.Progress) ending {
	left := p.Frontier.Waiting + p.Frontier.Scheduled
	const on = "the server keeps them, and the same command goes on"
	limit, bounded := boundOf(ctx)
	switch {
	case bounded:
		return ending{exitLimit, "limit reached (" + limit.Error() + "): " + wait(left) + s.alsoUnadded() + "; " + on}
	case ctx.Err() != nil:
		return ending{exitStopped, "stopped: " + wait(left) + "; " + on}
	case s.crawler.MaxPages > 0 && p.Pages >= s.crawler.MaxPages:
		return ending{exitLimit, "limit reached (-max-pages): " + wait(left) + "; " + on}
	case left > 0:
		return ending{exitStopped, "held: " + wait(left) + ", of hosts or crawls that are paused or at a limit at the server"}
	case p.Pages+p.Unchanged == 0 && p.Trouble != "":
		return ending{exitNothing, "nothing was fetched: " + s.trouble(p)}
	}
	return ending{exitOK, "ended: nothing is left to crawl at the server"}
}
