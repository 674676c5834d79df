// This file turns crawl's command line into options, and reports everything that is wrong with it. It
// opens nothing.

package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/scope"
)

// settings are the settings of a command line.
type settings struct {
	*options
	dir     string
	doneLog string
	sync    bool
	memory  byteSize
	log     logFlags
	bound   runBounds
	begin   repeated // seeds as given
	seeds   []string // seeds, normalized
	lists   repeated // files of seeds
	listed  seedsFound
	store   *frontier.Frontier // keeps how many of them are added, with -dir
	unadded int64              // seeds of files, not yet added

	example bool      // print the settings, do not crawl
	resumed bool      // the file is the one stored in the folder
	line    *lastLine // on the terminal; nil: none

	frontier frontier.Options
	fetch    fetch.Options // of crawler.Fetcher
	names    *dns.Resolver
	crawler  crawler.Options
	limits   *scope.Limits // of each host; nil: unchanged
	parts    []backup.Part // the parts of a checkpoint

	pace      paceFlags
	bounds    limitFlags
	rules     ruleFlags
	scope     scopeFlags
	wanted    filterFlags
	web       fetchFlags
	sites     siteFlags
	protocols protocolFlags
	modules   moduleFlags
	recrawl   recrawlFlags
	order     orderFlags
	console   consoleFlags
	kept      keptScope
	copies    checkpointFlags
	record    recordFlags
	served    servedFlags
}

// Themes of the options that select URLs.
const (
	whereBegins = "where it begins"
	whereGoes   = "where it goes"
	whichWanted = "which URLs and answers are wanted"
)

// seedsKey is the option for the command's arguments.
const (
	seedsKey     = "seeds"
	seedsFileKey = "seeds-file"
)

// newSettings returns the defaults, and the options that change them.
func newSettings() *settings {
	s := &settings{options: newOptions(), bound: runBounds{began: time.Now()}}
	s.define("the crawl", s.defineCrawl)
	s.define("a frontier of several crawlers", s.served.define)
	s.define(whereBegins, func(fs *flagSet) {
		fs.Var(&s.begin, seedsKey, "URLs or hosts; the arguments of the command")
		fs.Var(&s.lists, seedsFileKey, "`file` of seeds, one in each line, of any size; # begins a comment; repeatable; '' clears the list")
	})
	s.define(whereGoes, func(fs *flagSet) { s.scope.define(fs, &s.crawler) })
	s.define(whichWanted, func(fs *flagSet) { s.wanted.define(fs, &s.crawler) })
	s.define("how hosts are treated", func(fs *flagSet) { s.pace.define(fs, s) })
	s.define("limits of each host", s.bounds.define)
	s.define("what holds for some hosts", func(fs *flagSet) {
		s.rules.define(fs)
		s.sites.define(fs)
	})
	s.define("how pages are fetched", func(fs *flagSet) {
		s.web.define(fs, &s.fetch)
		s.protocols.define(fs)
	})
	s.define("what is made of pages", s.modules.define)
	s.define("fetching again", s.recrawl.define)
	s.define("copies", s.copies.define)
	s.define("what became of URLs", s.record.define)
	s.define("the status page", s.console.define)
	return s
}

func (s *settings) defineCrawl(fs *flagSet) {
	fs.StringVar(&s.dir, "dir", "", "`folder` that keeps the crawl; if it exists the crawl goes on (default: in memory)")
	fs.IntVar(&s.crawler.Workers, "workers", 16, "pages processed at once at most, and contacts with hosts that answer promptly; up to 24 times as many wait for other hosts; 1: one contact at a time")
	fs.Int64Var(&s.crawler.MaxPages, "max-pages", 0, "stop after so many pages in this run (default: never)")
	fs.Int64Var(&s.crawler.MaxPagesPerHost, "max-pages-per-host", 0, "pages of one host in this run; its other URLs wait for the next (default: all)")
	s.bound.define(fs)
	s.order.define(fs)
	fs.Var(s.memory.set(0), "memory", "`bytes` of memory for the frontier; k, M, G may follow (default: 512M with -dir, else 256M)")
	fs.DurationVar(&s.crawler.Grace, "grace", 10*time.Second, "how long fetches may go on after Ctrl-C")
	fs.BoolVar(&s.sync, "sync", false, "survive power loss too, not only kill -9 (slower)")
	fs.StringVar(&s.doneLog, "done-log", "", "append each URL to this `file` once its visit is recorded")
	s.log.define(fs)
}

// judge completes the settings from their options. The error lists every fault.
func (s *settings) judge(ctx context.Context) error {
	if err := s.takeScope(); err != nil {
		s.report(err)
	}
	s.settle()
	s.bound.apply(ctx)
	s.judgeNeeds(crawlNeeds)
	s.judgeCrawl()
	s.pace.apply(s)
	s.bounds.apply(s)
	s.rules.apply(s)
	s.modules.validate(s.options)
	s.order.validate(s.options)
	s.recrawl.validate(s.options)
	s.copies.validate(s.options)
	s.record.validate(s.options)
	s.console.validate(s.options)
	s.wanted.apply(s.options, &s.crawler)
	s.sites.apply(s)
	s.web.apply(s)
	s.scope.compile(s)
	s.protocols.apply(s)
	s.addSeeds(ctx)
	s.scope.apply(s)
	s.judgeWider()
	s.served.apply(s.options)
	return s.err()
}

func (s *settings) judgeCrawl() {
	s.frontier.MemoryBudget = int64(s.memory)
	s.badIf(s.memory > 0 && s.memory < leastMemory, "want at least 8M", "memory")
	for _, name := range []string{"dir", "checkpoint-dir", "temp", "warc", "seen", "stats"} {
		path := s.find(name).Value.String()
		info, err := os.Stat(path)
		s.badIf(err == nil && !info.IsDir(), "want a folder, and this is a file", name)
		s.badIf(path != "" && name == "temp" && !writable(path), "want a folder that is there and can be written", name)
	}
	if f, err := frontier.Open(context.Background(), frontier.Options{MemoryBudget: int64(s.memory)}); err != nil {
		s.wrong(err, "memory")
	} else {
		_ = f.Close() // without a store, which may need more
	}
	s.log.validate(s.options)
	s.bound.validate(s.options)
	s.badIf(s.crawler.Workers < 1 || s.crawler.Workers > 1<<16, "want 1 to 65536", "workers")
	s.badIf(s.crawler.MaxPages < 0, "want >= 0", "max-pages")
	s.badIf(s.crawler.MaxPagesPerHost < 0, "want >= 0", "max-pages-per-host")
	s.badIf(s.crawler.Grace < 0, "want >= 0", "grace")
	s.crawler.Grace = cmp.Or(s.crawler.Grace, 1) // because 0 means the default to Options
}

// leastMemory is the least memory of a frontier, in bytes.
const leastMemory = 8 << 20

func writable(dir string) bool {
	f, err := os.CreateTemp(dir, ".")
	return err == nil && errors.Join(f.Close(), os.Remove(f.Name())) == nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
