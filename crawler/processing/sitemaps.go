// This file finds sitemaps and reads those that were fetched.

package processing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/crawler/sitemap"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// SitemapOptions say how sitemaps are used. The zero value works.
type SitemapOptions struct {
	// UserAgent is the crawler's.
	UserAgent string
	// Normalizer spells URLs: the crawler's. Nil means urlnorm.New().
	Normalizer *urlnorm.Normalizer
	// Hint makes an entry of what a sitemap says of a URL; false leaves it out. Nil
	// means that the entry's Weight is the site's priority. Claims is for crawls that
	// fetch pages again. It is called by all workers at once.
	Hint func(e *frontier.Entry, s sitemap.Entry) bool
	// MaxBytes is how much of a sitemap is read, as sent and as unpacked. Zero means
	// 50 MiB, as the protocol allows. Beyond the Fetcher's MaxBody it holds if the
	// crawler's Options.Larger is that of the Sitemaps.
	MaxBytes int64
	// MaxFiles is how many sitemaps of one robots.txt are fetched. Zero means 1,000.
	MaxFiles int
	// Logger is told of what is wrong with sitemaps. Nil means silence.
	Logger *slog.Logger
}

// Claims is a Hint for crawls that fetch pages again: what a sitemap says of when a page
// changed becomes a hint (frontier.Entry.Hint). Of its site's priorities nothing is
// taken: a site that calls all of its pages important would get more than others. A
// time to come by more than a day, or of no meaning, is no claim.
func Claims(e *frontier.Entry, s sitemap.Entry) bool {
	now := time.Now()
	switch t := s.Modified; {
	case t.IsZero(), t.After(now.Add(24 * time.Hour)), t.Unix() < 0:
	case t.After(now): // of a clock that is ahead, or of a day that began elsewhere
		e.Hint, e.NotBefore = true, now
	default:
		e.Hint, e.NotBefore = true, t
	}
	return true
}

// Sitemaps adds what sitemaps and feeds name. It is a crawler.Robots, to see robots.txt
// files, and its Handle reads sitemaps and feeds that were fetched like any page: under a lease
// of their host, obeying robots.txt, each once, with the crawler's own limits of size
// and depth; index files are a link deeper each. Feeds that
// pages have links to are fetched if the crawler's Extractor has link.Feed among its
// Kinds. It is safe for concurrent use.
type Sitemaps struct {
	f    *frontier.Frontier
	opts SitemapOptions // read-only

	mu       sync.Mutex
	vouchers map[string][]string // guarded by mu; at most maxVouchers; see vouched
}

const (
	maxVouchers = 10_000 // files on other hosts than those whose robots.txt names them
	maxHosts    = 100    // hosts of one of them

	maxAlternates = 50_000 // URLs of a sitemap that are no entries of it, but alternates of such

	// metaVouched begins the Meta of a sitemap that another host's robots.txt names:
	// the names of such hosts follow, with blanks between them.
	metaVouched = "sitemap of "
)

// NewSitemaps returns a Sitemaps for a crawl with f.
func NewSitemaps(f *frontier.Frontier, o SitemapOptions) *Sitemaps {
	if o.Normalizer == nil {
		o.Normalizer = urlnorm.New()
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 50 << 20
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = 1000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Hint == nil {
		o.Hint = func(e *frontier.Entry, s sitemap.Entry) bool {
			e.Weight = s.Priority
			return true
		}
	}
	return &Sitemaps{f: f, opts: o, vouchers: map[string][]string{}}
}

// Places returns where the sites of seeds usually have their sitemap if no robots.txt
// names one, to be seeds too.
func (s *Sitemaps) Places(seeds ...string) (urls []string) {
	known := map[string]bool{}
	for _, seed := range seeds {
		if p := sitemap.Places(seed); len(p) > 0 && !known[p[0]] {
			known[p[0]] = true
			urls = append(urls, p[0])
		}
	}
	return urls
}

// Read implements crawler.Robots after RFC 9309, and adds the sitemaps that the file
// names to the frontier. Those out of the crawl's scope it will not fetch.
func (s *Sitemaps) Read(site string, status int, body []byte) (crawler.Rules, bool) {
	file := robots.FromStatus(status, body)
	if file.Access() == robots.Unreachable {
		return nil, false
	}
	var entries []frontier.Entry
	for _, raw := range file.Sitemaps() {
		if len(entries) == s.opts.MaxFiles {
			s.opts.Logger.Warn("a robots.txt names too many sitemaps; the rest is left out", "first", entries[0].URL, "taken", len(entries))
			break
		}
		if u, err := s.opts.Normalizer.Normalize(raw); err == nil {
			entries = append(entries, s.vouch(frontier.Entry{URL: u, Depth: 1}, hostName(site)))
		}
	}
	if len(entries) > 0 {
		// A frontier that is full or closing will say so to the crawler, too.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := s.f.Add(ctx, entries...); err != nil {
			s.opts.Logger.Warn("sitemaps not added", "first", entries[0].URL, "error", err)
		}
	}
	return file.Group(s.opts.UserAgent), true
}

// vouch notes that a host's robots.txt names a sitemap, in the entry for the time when
// the crawl goes on, and in memory for when another host's named it before.
func (s *Sitemaps) vouch(e frontier.Entry, hosts ...string) frontier.Entry {
	hosts = slices.DeleteFunc(hosts, func(h string) bool { return h == "" || h == hostName(e.URL) })
	if len(hosts) == 0 {
		return e
	}
	e.Meta = []byte(metaVouched + strings.Join(hosts, " "))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vouchers[e.URL] == nil && len(s.vouchers) >= maxVouchers {
		return e
	}
	for _, h := range hosts {
		if known := s.vouchers[e.URL]; len(known) < maxHosts && !slices.Contains(known, h) {
			s.vouchers[e.URL] = append(slices.Clip(known), h)
		}
	}
	return e
}

// vouched are the hosts beside its own whose URLs a sitemap may name.
func (s *Sitemaps) vouched(e frontier.Entry) []string {
	s.mu.Lock()
	hosts := slices.Clone(s.vouchers[e.URL])
	s.mu.Unlock()
	if names, ok := strings.CutPrefix(string(e.Meta), metaVouched); ok {
		hosts = append(hosts, strings.Fields(names)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

func hostName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Handle is a Handler: it adds what a sitemap or feed names to the page's links. A
// file may name all URLs of its host, and of hosts whose robots.txt names it or an index
// that names it (sitemaps.org, "Sitemaps & Cross Submits"); others are left out. What its entries have as
// alternates (hreflang) is linked to as by any page.
func (s *Sitemaps) Handle(_ context.Context, p *crawler.Page) error {
	if p.Status < 200 || p.Status > 299 || p.Body == nil || !maybeSitemap(p.URL, p.Body.Head(512), p.Doc != nil) {
		return nil
	}
	at := p.Lease.Entry
	hosts := s.vouched(at)
	r := sitemap.NewReader(p.Body.Reader(), sitemap.Options{
		URL: p.URL, ContentType: p.Header.Get("Content-Type"), Locations: sitemap.OwnHost, Hosts: hosts, Normalizer: s.opts.Normalizer,
		MaxBytes: s.opts.MaxBytes, Alternates: true,
	})
	taken := 0
	var first error
	named := map[string]bool{} // false: as an alternate only
	var others []sitemap.Entry
	left := 0
	add := func(found sitemap.Entry) {
		e := frontier.Entry{URL: found.URL, Depth: at.Depth + 1, Crawl: at.Crawl}
		if found.Sitemap {
			e = s.vouch(e, slices.Clone(hosts)...)
		}
		if found.URL != at.URL && s.opts.Hint(&e, found) {
			p.Add = append(p.Add, e)
			taken++
		}
	}
	for found, err := range r.All() {
		if err != nil {
			if errors.Is(err, sitemap.ErrFormat) {
				return nil // another kind of file
			}
			if first == nil {
				first = err
			}
			continue
		}
		if !found.Alternate {
			named[found.URL] = true
			add(found)
			continue
		}
		switch _, known := named[found.URL]; {
		case known:
		case len(others) == maxAlternates:
			left++
		default:
			named[found.URL] = false
			others = append(others, found)
		}
	}
	for _, found := range others {
		if !named[found.URL] { // else its entry says more
			add(found)
		}
	}
	switch {
	case p.Broken != "":
		s.opts.Logger.Warn("the end of a sitemap is missing: what it has more is not known", "url", p.URL, "taken", taken, "bytes", p.Body.Size())
	case left > 0 || p.Truncated || errors.Is(first, sitemap.ErrTooLarge) || errors.Is(first, sitemap.ErrTooMany):
		s.opts.Logger.Warn("a sitemap is too large: its rest is left out", "url", p.URL, "taken", taken, "bytes", p.Body.Size(), "max_bytes", s.opts.MaxBytes)
	case first != nil:
		s.opts.Logger.Info("a sitemap has errors", "url", p.URL, "taken", taken, "errors", r.Errors(), "first", first)
	}
	return nil
}

// Larger is a crawler.Options.Larger that reads sitemaps up to MaxBytes.
func (s *Sitemaps) Larger(url string, _ http.Header, head []byte) int64 {
	if !maybeSitemap(url, head, true) || bytes.HasPrefix(bytes.TrimSpace(head), []byte("<")) && bytes.Contains(bytes.ToLower(head), []byte("<html")) {
		return 0
	}
	return s.opts.MaxBytes
}

// maybeSitemap reports whether an answer looks like a sitemap or feed: XML or gzip by its
// first bytes, or a text file whose first line is a URL. Of a page with links in it
// they must say more.
func maybeSitemap(at string, head []byte, links bool) bool {
	head = bytes.TrimLeft(head, "\uFEFF \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		u, err := url.Parse(at)
		return err == nil && bytes.HasSuffix([]byte(u.Path), []byte(".gz")) && bytes.Contains([]byte(u.Path), []byte("sitemap"))
	case bytes.HasPrefix(head, []byte("http://")), bytes.HasPrefix(head, []byte("https://")):
		return true
	}
	if !links {
		return bytes.HasPrefix(head, []byte("<"))
	}
	for _, root := range []string{"<?xml", "<urlset", "<sitemapindex", "<rss", "<feed", "<rdf"} { // it has links in its header, or calls itself HTML
		if len(head) >= len(root) && strings.EqualFold(string(head[:len(root)]), root) {
			return true
		}
	}
	return false
}

var _ crawler.Robots = (*Sitemaps)(nil)
