// This file lets operators inspect and control a running crawl: its page, socket and metrics.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/incremental"
)

// consoleFlags are the flags about the page and the metrics.
type consoleFlags struct {
	page  string
	names list
	token string
	file  string // contains the token
	stop  func() // stops the crawl in good order

	metrics   string
	metricsAt net.Listener // nil: the metrics have no port of their own

	at      net.Listener // the page's; nil: no page
	missing error        // why the page could not be had

	shown *console.Console // nil: no console
}

// defaultPage is the page's address, unless another process uses it.
const defaultPage = "127.0.0.1:8347"

func (c *consoleFlags) define(fs *flagSet) {
	fs.StringVar(&c.page, "page", defaultPage, "`address` of the status page, whose URL is logged; off: none. If the default's port is taken it is another one; any other address that cannot be had is an error")
	fs.Var(&c.names, "page-names", "host `names` under which the page may be asked for, beside localhost; * for any; comma-separated")
	fs.StringVar(&c.token, "page-token", "", "`token` that changes on the page need, and looks at it from other machines; better in -page-token-file, or in the environment as FRONTIER_PAGE_TOKEN, which no list of processes shows (default: a random one, which is in the file page-token of -dir)")
	fs.StringVar(&c.file, "page-token-file", "", "`file` whose first line is the token")
	fs.StringVar(&c.metrics, "metrics-listen", "", "`address` of a port for Prometheus that has only /metrics, which the page has too; the same people may read both")
}

// validate reports invalid values.
func (c *consoleFlags) validate(o *options) {
	o.badIf(c.page == "", "want host:port, or off", "page")
	if err := console.CheckNames(c.names); err != nil {
		o.wrong(err, "page-names")
	}
	if c.token == "" || c.file == "" {
		return
	}
	switch token, file := "page-token", "page-token-file"; {
	case o.stronger(token, file):
		c.file = ""
		o.silence(file)
	case o.stronger(file, token):
		c.token = ""
		o.silence(token)
	default:
		o.fault([]string{token, file}, "%s cannot be combined with %s", o.shown(token), o.shown(file))
	}
}

// listen listens on the page's and the metrics' addresses before the crawl begins. It fails only for an
// address that was given.
func (c *consoleFlags) listen(given bool) (err error) {
	if c.metrics != "" {
		if c.metricsAt, err = net.Listen("tcp", c.metrics); err != nil {
			return fmt.Errorf("-metrics-listen %s cannot be had: %w", c.metrics, err)
		}
	}
	if c.page == "off" {
		return nil
	}
	c.at, c.missing = net.Listen("tcp", c.page)
	switch given = given && c.page != defaultPage; {
	case c.missing == nil:
	case given:
		return fmt.Errorf("-page %s cannot be had: %w; -page off does without", c.page, c.missing)
	case inUse(c.missing):
		c.at, c.missing = net.Listen("tcp", "127.0.0.1:0")
	}
	return nil
}

// close closes the listeners.
func (c *consoleFlags) close() {
	for _, l := range []net.Listener{c.at, c.metricsAt} {
		if l != nil {
			_ = l.Close() // may be closed already, by its server
		}
	}
}

// open serves a crawl's Console, with o's options and the flags', until the returned function is called.
func (c *consoleFlags) open(f *frontier.Frontier, crawl *crawler.Crawler, s *settings, o console.Options, log *slog.Logger) (func(), error) {
	if c.page == "off" && c.metricsAt == nil && s.dir == "" && s.line == nil {
		return func() {}, nil
	}
	token, known, err := c.secret()
	if err != nil {
		return nil, err
	}
	o.Title, o.Token, o.Names, o.MemoryBudget, o.Stop, o.Logger = "frontier", token, c.names, budget(s), c.stop, log
	o.Figures = func() []console.Figure { return append(shownFigures(crawl.Progress()), s.order.figures()...) }
	if s.recrawl.revisits != nil {
		o.Recrawl = func() *console.Recrawl { return recrawled(s.recrawl.revisits.Report()) }
	}
	o.Importance = s.order.worth()
	o.Changed = s.recrawl.changed(f, crawl, s.crawler.Normalizer)
	if s.crawler.Normalizer != nil {
		o.Normalize = s.crawler.Normalizer.Typed
	}
	o.Wanted, o.Parked, o.Lot = crawl.Wanted, parkedIn(f), crawler.Lot
	o.Crawl = func() console.Crawl {
		p := crawl.Progress()
		return console.Crawl{Pages: p.Pages, MaxPages: s.crawler.MaxPages, Workers: s.crawler.Workers, Away: p.Away}
	}
	o.Settings, o.Ends, o.Newest = s.shownSettings(), s.record.shown(s.dir), s.record.newest(s.dir)
	if s.dir != "" {
		o.Title = filepath.Base(s.dir)
		o.Disk = func() int64 { return diskOf(s.dir) }
	}
	con, err := console.New(f, o)
	if err != nil {
		return nil, err
	}
	warn := func(what string, err error) { log.Warn(what, "error", err) }
	where := ""
	if c.at != nil || c.metricsAt != nil {
		if where, err = keepToken(s.dir, con.Token(), known); err != nil {
			return nil, join(err, con.Close())
		}
	}
	say := func(url string) { log.Info("the crawl has a page", "url", url, "token", where) }
	if c.missing != nil {
		warn("there is no page of this crawl", c.missing)
	}
	if c.at != nil && !loopback(c.at.Addr()) {
		log.Warn("other machines can reach the page of this crawl: it wants its token for all, and answers under -page-names only; it speaks plain http, so put TLS before it", "address", c.at.Addr())
	}
	if c.metricsAt != nil {
		log.Info("the crawl has metrics", "url", "http://"+shown(c.metricsAt.Addr().String())+"/metrics")
		if !loopback(c.metricsAt.Addr()) {
			log.Warn("other machines can reach the metrics of this crawl: they want the page's token, and answer under -page-names only", "address", c.metricsAt.Addr(), "token", where)
		}
	}
	end := serveConsole(con, forCommands(s.dir, warn), c.at, c.metricsAt, say)
	c.shown = con
	return func() { end(); _ = con.Close() }, nil
}

// stopping shows on the page that the crawl is stopping.
func (c *consoleFlags) stopping() {
	if c.shown != nil {
		c.shown.Stopping()
	}
}

// ended shows on the page how the crawl ended, and waits until its readers have seen it.
func (c *consoleFlags) ended(ctx context.Context, end ending) {
	if c.shown != nil {
		c.shown.Ended(cutBy(ctx), strings.ToUpper(end.words[:1])+end.words[1:])
	}
}

// shownSettings returns the options that were given, without secrets.
func (s *settings) shownSettings() []console.Setting {
	all := []console.Setting{{Name: "workers", Value: strconv.Itoa(s.crawler.Workers)}}
	for _, x := range s.all {
		if x.from == fromDefault || x.off || x.Name == "page-token" || x.Name == "workers" {
			continue
		}
		values := []string{fmt.Sprint(x.now)}
		if several, ok := x.now.([]string); ok {
			values = several
		}
		for i, v := range values {
			values[i] = fetch.Redact(v)
		}
		all = append(all, console.Setting{Name: x.Name, Value: strings.Join(values, ", ")})
	}
	return all
}

// parkedIn returns a function that explains why a URL of f is parked.
func parkedIn(f *frontier.Frontier) func(context.Context, uint32, string, string) (string, error) {
	return func(ctx context.Context, crawl uint32, host, url string) (string, error) {
		return crawler.Parked(ctx, f, crawl, host, url)
	}
}

// loopback reports whether only this machine can reach an address.
func loopback(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// secret returns the token that was given, and where from; empty: none was.
func (c *consoleFlags) secret() (token, known string, err error) {
	switch {
	case c.token != "":
		return c.token, "that of -page-token", nil
	case c.file != "":
		if token, err = firstLine(c.file); err != nil {
			return "", "", fmt.Errorf("-page-token-file: %w", err)
		}
		return token, "that in " + c.file, nil
	}
	if token = os.Getenv("FRONTIER_PAGE_TOKEN"); token != "" {
		known = "that of FRONTIER_PAGE_TOKEN"
	}
	return token, known, nil
}

// pageTokenFile holds the page's token if no option does. Only the folder's owner can read it.
const pageTokenFile = "page-token"

// keepToken returns where to find a page's token, for the log, which never shows the token itself. If no
// option says where, it writes the token to a file in dir.
func keepToken(dir, token, known string) (where string, err error) {
	if dir == "" {
		return cmp.Or(known, "unknown, so nothing changes on the page: set -dir, -page-token-file or FRONTIER_PAGE_TOKEN"), nil
	}
	file := filepath.Join(dir, pageTokenFile)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) { // an earlier run's; its mode may differ
		return "", err
	}
	if known != "" {
		return known, nil
	}
	return "that in " + file, os.WriteFile(file, []byte(token+"\n"), 0o600)
}

// recrawled converts a recrawl's report.
func recrawled(x incremental.Report) *console.Recrawl {
	s := x.Schedule
	return &console.Recrawl{
		Pages: s.Pages, Freshness: s.Freshness, Price: s.Price, Budget: s.Budget, Demand: s.Demand,
		NewShare: x.NewShare(), Wasted: x.Wasted(), Visits: x.Visits,
	}
}

// budget returns the bound of the frontier's memory.
func budget(s *settings) int64 {
	switch {
	case s.frontier.MemoryBudget > 0:
		return s.frontier.MemoryBudget
	case s.dir != "":
		return 512 << 20
	}
	return 256 << 20
}

// shownFigures returns a crawler's figures by name.
func shownFigures(p crawler.Progress) []console.Figure {
	x := func(name string, n int64) console.Figure { return console.Figure{Name: name, Value: float64(n)} }
	return []console.Figure{
		x("pages", p.Pages), x("redirects", p.Redirects), x("gone", p.Gone), x("refused", p.Refused), x("unchanged", p.Unchanged), x("failed", p.Failed),
		x("denied", p.Denied), x("unreachable", p.Unreachable), x("filtered", p.Filtered), x("blocked", p.Blocked), x("robots", p.Robots),
		x("bytes", p.Bytes), x("links", p.Links), x("dropped", p.Dropped), x("busy", p.Busy),
	}
}

// watched records an outcome, and how its host's gap was kept.
func watched(w *console.Watch, l frontier.Lease, o frontier.Outcome) {
	w.Outcome(l, o)
	switch o.Result {
	case frontier.Denied, frontier.Requeue, frontier.PutOff: // without a contact
		return
	}
	w.Contact(l.Host, l.LeasedAt, l.Due, o.Ended)
}

// diskOf returns a folder's bytes on disk. Files that vanish meanwhile count 0.
func diskOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			n += allocated(info)
		}
		return nil
	})
	return n
}

// inUse reports whether an error says that an address is in use.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || err != nil && strings.Contains(err.Error(), "in use")
}
