// This file implements crawl.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier"
	frontierprometheus "github.com/seed-7440039f/frontier/adapters/prometheus"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/figures"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
)

// printFlag is -print-config: print the settings, do not crawl.
func printFlag() cli.Flag {
	return &cli.BoolFlag{Name: "print-config", Usage: "print all options as a configuration file, and do nothing", HideDefault: true}
}

// crawlCommand returns the crawl command. It stores its exit status in code.
func crawlCommand(code *int) *cli.Command {
	return newSettings().command(code, "crawl", "crawl web sites from their URLs, or go on where the crawl in -dir stopped")
}

// recrawlCommand returns crawl -recrawl with shorter names of its flags. It stores its exit status in
// code.
func recrawlCommand(code *int) *cli.Command {
	s := newSettings()
	s.find("recrawl").typed = []string{"true"}
	c := s.command(code, "recrawl", "crawl for ever: fetch pages again when they are likely to have changed")
	for _, f := range c.Flags {
		if short, ok := strings.CutPrefix(f.Names()[0], "recrawl-"); ok {
			f := f.(*cli.GenericFlag)
			f.Aliases = []string{short}
		}
	}
	return c
}

// command returns a command that crawls with these settings, completed from its command line and
// configuration file.
func (s *settings) command(code *int, name, usage string) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: "[SEED...]",
		Flags: append(s.flags(), &cli.StringFlag{Name: "config", Usage: "read the options from this TOML `file`, those that no flag gives"}, printFlag()),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			s.find(seedsKey).typed = cmd.Args().Slice()
			s.example = cmd.Bool("print-config")
			if path := cmd.String("config"); path != "" {
				if err := s.readConfig(path); err != nil {
					return usageError(fmt.Sprintf("%s: -config: %v", name, err))
				}
			}
			return s.start(ctx, cmd, code)
		},
	}
}

// start crawls if the settings are valid.
func (s *settings) start(ctx context.Context, cmd *cli.Command, code *int) error {
	ctx = s.bound.begin(ctx)
	defer s.bound.stop(nil)
	if err := s.judge(ctx); err != nil {
		return usageError(cmd.Name + ": " + err.Error())
	}
	if s.example {
		return s.printConfig(cmd.Root().Writer)
	}
	if s.served.address == "" {
		if err := s.console.listen(s.given("page")); err != nil {
			return usageError(cmd.Name + ": " + err.Error())
		}
	}
	defer s.console.close()
	*code = s.run(ctx, cmd.Root().Writer, cmd.Root().ErrWriter)
	return nil
}

// run crawls, and returns the exit status.
func (s *settings) run(ctx context.Context, stdout, stderr io.Writer) int {
	if s.served.address == "" && s.log.moving() && canMove(stderr) {
		s.line = &lastLine{out: stderr}
		stderr = s.line
	}
	log, stdout := s.log.open(stdout, stderr)
	ctx, s.console.stop = context.WithCancel(ctx)
	defer s.console.stop()
	crawl := s.crawl
	if s.served.address != "" {
		crawl = s.crawlServed
	}
	var end ending
	err := ctx.Err()
	if err == nil {
		end, err = crawl(ctx, log, stdout)
	}
	limit, bounded := boundOf(ctx)
	switch {
	case err == nil:
	case err == ctx.Err() && bounded:
		end = ending{exitLimit, fmt.Sprintf("limit reached (%s) before the crawl began; the same command goes on from here", limit)}
	case err == ctx.Err(): // stopped before it began
		end = ending{exitStopped, "stopped; the same command goes on from here"}
	default:
		end = ending{exitError, advised(s.dir, err).Error()}
	}
	s.log.end(log, stderr, end)
	return end.status
}

// crawl opens everything, crawls, and closes everything. Without an error it returns how the crawl ended.
func (s *settings) crawl(ctx context.Context, log *slog.Logger, stdout io.Writer) (end ending, err error) {
	if s.names != nil {
		defer s.names.Close()
	}
	defer func() { err = join(err, s.record.close()) }()
	if s.dir != "" {
		store, err := openStore(s.dir, spill.Options{Sync: s.sync, MemoryBudget: storeMemory(s.memory), Logger: log})
		if err != nil {
			return end, err
		}
		defer func() { err = join(err, store.Close()) }()
		s.frontier.Spill = store
		if err := s.keepJudged(); err != nil {
			return end, err
		}
		if err := s.record.open(s.dir, log); err != nil {
			return end, err
		}
		s.parts = append(s.parts, s.record.part(s.recrawl.part(s.dir, store.CopyTo)))
	} else if err := s.record.open("", log); err != nil {
		return end, err
	}
	if err := s.order.open(s, log); err != nil {
		return end, err
	}
	defer func() { err = join(err, s.order.close()) }()
	if err := s.recrawl.open(s, log); err != nil {
		return end, err
	}
	defer func() { err = join(err, s.recrawl.close()) }()
	s.frontier.Logger = log
	watch, hooks := console.NewWatch(), frontierprometheus.NewHooks()
	s.frontier.OnEvent = func(e event.Event) {
		watch.Event(e)
		hooks.Event(e)
		s.record.ends.event(e)
	}
	var givenUp atomic.Pointer[crawler.Crawler]
	s.frontier.OnGiveUp = func(e frontier.Entry, o frontier.Outcome) {
		if c := givenUp.Load(); c != nil {
			c.GivenUp(e, o)
		}
	}
	f, err := frontier.Open(ctx, s.frontier)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return end, ctx.Err()
	}
	if err != nil {
		return end, err
	}
	defer func() { err = join(err, f.Close()) }()
	s.store = f
	if s.limits != nil && s.anew("limit-") {
		if err := f.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = *s.limits }); err != nil {
			return end, err
		}
	}
	if s.anew("rule") {
		if err := s.rules.set(f); err != nil {
			return end, err
		}
	}

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
	take, stop, err := s.copies.start(ctx, s.parts, log)
	if err != nil {
		return end, err
	}
	defer stop()
	s.crawler.OnDone = func(l frontier.Lease, o frontier.Outcome) {
		done.add(l, o)
		watched(watch, l, o)
		hooks.Done(l, o)
		s.bound.add(o)
	}
	s.crawler.Held = s.whilePaused(f, &givenUp, log)
	s.crawler.OnEnd = s.record.record()
	s.crawler.Logger = log
	if s.dir != "" {
		s.crawler.TrapsFile = filepath.Join(s.dir, "traps")
	}
	if err := s.recrawl.attach(ctx, f, s, log); err != nil {
		return end, err
	}
	s.crawler.Cut = cutBy(ctx)
	if s.line != nil {
		s.crawler.ProgressEvery = math.MaxInt64 // the progress line shows it
	}
	measure := figures.OnFetch(hooks.Hooks)
	s.crawler.OnFetch = func(url string, res *fetch.Result, err error) {
		watch.Request(url, res, err)
		measure(url, res, err)
	}
	c, err := crawler.New(f, s.crawler)
	if err != nil {
		return end, err
	}
	givenUp.Store(c)
	if s.kept.wider { // before keep: a kill between them would leave the URLs parked
		if err := c.Unpark(); err != nil {
			return end, err
		}
	}
	if s.dir != "" {
		if err := s.keep(); err != nil {
			return end, err
		}
	}
	s.warnOfContact(log)
	closeConsole, err := s.console.open(f, c, s, console.Options{Watch: watch, Checkpoint: take, Metrics: s.metrics(f, c, hooks)}, log)
	if err != nil {
		return end, err
	}
	defer closeConsole()
	if err := s.addSeedsTo(ctx, c, log); err != nil {
		return end, err
	}
	told := make(chan struct{})
	untold := context.AfterFunc(ctx, func() {
		s.console.stopping()
		log.Info("stopping: Ctrl-C again cuts the fetches under way", "fetches", c.Progress().Busy)
		close(told)
	})
	hide := s.showProgress(ctx)
	err = c.Run(ctx)
	hide()
	if !untold() {
		<-told
	}
	if err != nil && err != ctx.Err() {
		return end, err
	}
	p := c.Progress()
	s.summarize(p, log, stdout)
	s.recrawl.report(stdout)
	end = s.endOf(ctx, f, p)
	s.console.ended(ctx, end)
	return end, s.modules.report(stdout)
}

// addSeedsTo adds the seeds, until a bound is reached. It logs bad ones, and fails if none is left to
// crawl.
func (s *settings) addSeedsTo(ctx context.Context, c *crawler.Crawler, log *slog.Logger) (err error) {
	defer func() {
		if _, bounded := boundOf(ctx); bounded && errors.Is(err, ctx.Err()) {
			err = nil
		}
	}()
	s.unadded = int64(s.listed.Seeds)
	n, err := c.Seed(ctx, s.seeds...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	bad := frontier.EntryErrors(err)
	if err != nil && len(bad) == 0 {
		return err
	}
	own := s.ownFaults(bad)
	listed, refused, more, err := s.addListed(ctx, c)
	if err != nil {
		return err
	}
	n, own = n+listed, append(own, more...)
	if refused > len(more) {
		own = append(own, fmt.Errorf("and %d more of -seeds-file", refused-len(more)))
	}
	before := c.Progress()
	left := before.Frontier.Waiting - before.Parked + before.Frontier.Scheduled
	switch {
	case len(own) > 0 && left == 0:
		return fmt.Errorf("no seed can be crawled: %w", errors.Join(own...))
	case len(own) > 0:
		log.Warn("seeds left out", "error", errors.Join(own...))
	case n == 0 && left == 0:
		log.Info("all seeds are known and nothing is left to crawl; frontier now URL fetches one again", "dir", s.dir)
	}
	return nil
}

// summarize prints what a crawl did.
func (s *settings) summarize(p crawler.Progress, log *slog.Logger, stdout io.Writer) {
	left := p.Frontier.Waiting - p.Parked - p.NextRun
	fmt.Fprintf(stdout, "%d pages, %d redirects, %d gone, %d refused, %d failed fetches, %d URLs given up, %d denied by robots.txt, %d unreachable, %d blocked; %d waiting, %d scheduled\n",
		p.Pages, p.Redirects, p.Gone, p.Refused, p.Failed, p.Frontier.GivenUp, p.Denied, p.Unreachable, p.Blocked, left, p.Frontier.Scheduled)
	if p.Requisites > 0 {
		fmt.Fprintf(stdout, "beside the pages: %d of what they need to be shown\n", p.Requisites)
	}
	if p.Broken > 0 {
		fmt.Fprintf(stdout, "cut short: %d of the pages lack their end, at each try; what came of them is kept\n", p.Broken)
	}
	if p.Unread > 0 {
		fmt.Fprintf(stdout, "not read: %d of the pages have an unknown coding, or are called sitemaps and are none; frontier ends and the crawl log say why\n", p.Unread)
	}
	if p.Unreachable > 0 {
		fmt.Fprintf(stdout, "robots.txt files not read: %d, whose sites wait; frontier ends and the crawl log say why\n", p.Unreachable)
	}
	if p.Blocked > 0 {
		fmt.Fprintf(stdout, "blocked: at addresses that are not public, or that -deny-network names; -allow-network %s contacts them all the same\n", s.private())
	}
	for _, rule := range slices.Sorted(maps.Keys(p.FilteredBy)) {
		fmt.Fprintf(stdout, "not wanted by %s: %d\n", rule, p.FilteredBy[rule])
	}
	if p.Parked > 0 {
		log.Warn("waiting URLs are outside the scope of this command: they are parked, and come back when the scope is wide enough again", "urls", p.Parked)
		fmt.Fprintf(stdout, "parked, outside the scope: %d; %s\n", p.Parked, s.bringsBack("the same command with a wider scope, as by -scope-also HOST, brings them back"))
	}
	if p.NextRun > 0 {
		fmt.Fprintf(stdout, "parked until the next run: %d; %s\n", p.NextRun, s.bringsBack("frontier resume "+s.dir+" brings them back"))
	}
}

// bringsBack describes how parked URLs return.
func (s *settings) bringsBack(how string) string {
	if s.dir == "" {
		return "they are not kept, as there was no -dir"
	}
	return how
}

// join joins two errors. A lone error stays as it is, because a context's error is not a failure unless
// closing failed, too.
func join(err, closing error) error {
	if closing == nil {
		return err
	}
	return errors.Join(err, closing)
}

// doneLog is the file of -done-log. With a nil file it does nothing.
type doneLog struct {
	mu   sync.Mutex
	file *os.File // guarded by mu
	err  error    // guarded by mu; the first failed write
}

func openDoneLog(name string) (*doneLog, error) {
	if name == "" {
		return &doneLog{}, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("-done-log: %w", err)
	}
	return &doneLog{file: f}, nil
}

// add writes the URL of a visit that will not be repeated.
func (d *doneLog) add(l frontier.Lease, o frontier.Outcome) {
	switch o.Result {
	case frontier.Visited, frontier.Changed, frontier.Unchanged, frontier.Gone:
	default:
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil || d.err != nil {
		return
	}
	_, d.err = d.file.WriteString(oneLine(l.Entry.URL) + "\n")
}

// oneLine percent-encodes line breaks and terminal control characters. Normalized URLs contain neither.
func oneLine(url string) string {
	var b strings.Builder
	for _, r := range fetch.Redact(url) {
		if unicode.IsPrint(r) || r == '\u202f' { // the space in numbers
			b.WriteRune(r)
			continue
		}
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Close closes the file and returns the first error.
func (d *doneLog) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil {
		return nil
	}
	return errors.Join(d.err, d.file.Close())
}
