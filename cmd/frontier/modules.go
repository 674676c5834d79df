// This file reads the flags of the crawler's modules: archive, content-seen test, statistics, sitemaps.

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/crawler/processing"
	"github.com/seed-7440039f/frontier/crawler/warc"
)

// moduleFlags are the flags of the modules.
type moduleFlags struct {
	warc      string
	noRobots  bool
	noArchive bool
	seen      string
	skip      bool
	sitemaps  bool
	largest   byteSize
	threshold float64
	stats     string

	statistics *processing.Statistics // nil: none
	pages      *neardup.Index         // nil: none
}

func (m *moduleFlags) define(fs *flagSet) {
	fs.StringVar(&m.warc, "warc", "", "keep all answers in WARC files in this `folder`")
	fs.BoolVar(&m.noRobots, "warc-no-robots", false, "keep robots.txt files out of them")
	fs.BoolVar(&m.noArchive, "warc-honour-noarchive", false, "keep pages out of them that ask for it (noarchive in a robots meta element or X-Robots-Tag)")
	fs.StringVar(&m.seen, "seen", "", "remember pages' content in this `folder`, and tell of mirrors, as they are noticed and all at the end")
	fs.Float64Var(&m.threshold, "seen-threshold", 0.85, "share of a page's text that another has if it counts as the same, under -seen")
	fs.BoolVar(&m.skip, "skip-duplicates", false, "do not follow the links of pages whose content was seen at another URL that leads to the same places; needs -seen")
	fs.StringVar(&m.stats, "stats", "", "count answers by status, media type, size, time and host in this `folder`, over restarts; its stats.json is never older than a minute and an answer")
	fs.BoolVar(&m.sitemaps, "sitemaps", false, "read sitemaps and feeds, also those that robots.txt files name, feeds that pages name, and the seeds' /sitemap.xml")
	fs.Var(m.largest.set(50<<20), "max-sitemap", "`bytes` of a sitemap that are read, under -sitemaps; beyond -max-body from a file of -temp")
}

// validate reports invalid values.
func (m *moduleFlags) validate(o *options) {
	o.badIf(m.largest <= 0, "want > 0", "max-sitemap")
	o.badIf(!(m.threshold > 0 && m.threshold <= 1), "want > 0 and <= 1", "seen-threshold")
}

// open adds the modules to the crawl's options. The returned function closes them.
func (m *moduleFlags) open(s *settings, f crawler.Frontier, log *slog.Logger) (_ func() error, err error) {
	var closers []func() error
	closeAll := func() (err error) {
		for _, c := range closers {
			err = errors.Join(err, c())
		}
		return err
	}
	if m.warc == "" { // which keeps the received part of a long body
		s.crawler.Responses = append(s.crawler.Responses, filter.NoMedia(s.fetch.MaxBody))
	}
	agent := s.crawler.UserAgent
	var handlers []processing.Handler
	if m.warc != "" {
		w, err := warc.Open(m.warc, warc.Options{Remember: 100_000, Sync: s.sync, TempDir: s.fetch.TempDir, Logger: log, Info: warc.Header{{Name: "http-header-user-agent", Value: agent}}})
		if err != nil {
			return closeAll, err
		}
		closers = append(closers, w.Close)
		processing.AddArchive(&s.crawler, w, processing.ArchiveOptions{NoRobots: m.noRobots, HonourNoArchive: m.noArchive})
		handlers = append(handlers, s.crawler.OnPage)
	}
	if m.seen != "" {
		x, err := neardup.Open(m.seen, neardup.Options{Threshold: m.threshold, Sync: s.sync, Logger: log, OnMirror: func(m neardup.Mirror) {
			log.Info("a host is a mirror", "host", m.Host, "of", m.Of, "same", m.Same, "pages", m.Pages)
		}})
		if err != nil {
			return closeAll, err
		}
		m.pages = x
		closers = append(closers, x.Close)
		s.parts = append(s.parts, backup.Part{Name: "seen", Copy: x.CopyTo})
		handlers = append(handlers, processing.ContentSeen(x, processing.SeenOptions{SkipLinks: m.skip}))
	}
	if m.stats != "" {
		x, err := processing.OpenStatistics(m.stats, processing.StatisticsOptions{})
		if err != nil {
			return closeAll, err
		}
		m.statistics = x
		closers = append(closers, x.Close)
		s.parts = append(s.parts, backup.Part{Name: "stats", Copy: x.CopyTo})
		handlers = append(handlers, x.Handle)
	}
	if m.sitemaps {
		o := processing.SitemapOptions{UserAgent: agent, Logger: log, MaxBytes: int64(m.largest)}
		if s.crawler.Revisits != nil {
			o.Hint = processing.Claims
		}
		sm := processing.NewSitemaps(f, o)
		s.crawler.Robots, s.crawler.Larger = sm, sm.Larger
		if s.crawler.Extractor == nil {
			s.crawler.Extractor = crawler.HTML{Options: link.Options{Kinds: link.Pages | link.Feed}}
		}
		s.seeds = append(s.seeds, sm.Places(s.seeds...)...)
		handlers = append(handlers, sm.Handle)
	}
	if len(handlers) > 0 {
		s.crawler.OnPage = processing.Chain(handlers...)
	}
	return closeAll, nil
}

// report prints what the modules found.
func (m *moduleFlags) report(out io.Writer) error {
	if m.statistics != nil {
		fmt.Fprint(out, m.statistics.Report())
	}
	if m.pages == nil {
		return nil
	}
	mirrors, err := m.pages.Mirrors()
	for _, x := range mirrors {
		fmt.Fprintf(out, "%s is a mirror of %s: it has %d of %d pages\n", oneLine(x.Host), oneLine(x.Of), x.Same, x.Pages)
	}
	return err
}
