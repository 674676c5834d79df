// This file finds and reads sitemaps.

package processing

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/robots"
	"github.com/seed-7440039f/frontier/crawler/sitemap"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/internal/media"
)

// SitemapOptions say how sitemaps are used. The zero value works.
type SitemapOptions struct {
	// UserAgent is the crawler's.
	UserAgent string
	// Normalizer spells URLs: the crawler's. Nil means urlnorm.New().
	Normalizer *urlnorm.Normalizer
	// Hint turns an entry of a sitemap into an entry for the frontier; false leaves it out. Nil
	// sets the entry's Weight to the priority in the sitemap. Claims is a Hint for continuous
	// crawls. All workers call it concurrently.
	Hint func(e *frontier.Entry, s sitemap.Entry) bool
	// MaxBytes limits how much of a sitemap is read, both as sent and as unpacked. It can exceed the
	// Fetcher's MaxBody only if the crawler's Options.Larger is Sitemaps.Larger. Zero means 50 MiB, the
	// limit of the protocol.
	MaxBytes int64
	// MaxFiles is how many sitemaps of one robots.txt are fetched. Zero means 1,000.
	MaxFiles int
	// Logger receives problems with sitemaps. Nil discards them.
	Logger *slog.Logger
}

// Claims is a Hint for continuous crawls: the modification time in a sitemap becomes a hint
// (frontier.Entry.Hint). The sitemap's priorities are ignored, since a site that calls all of its
// pages important would gain an advantage. A time more than a day in the future, or a malformed
// one, is not a claim.
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

// Sitemaps adds the URLs listed in sitemaps and feeds. It implements crawler.Robots, to see
// robots.txt files, and its Handle reads sitemaps and feeds. These are fetched like any page: under
// a lease of their host, obeying robots.txt, each once, within the crawler's limits of size and
// depth; each level of index files counts as one link of depth. Feeds linked from pages are fetched
// if the crawler's Extractor includes link.Feed in its Kinds. It is safe for concurrent use.
type Sitemaps struct {
	f    crawler.Frontier
	opts SitemapOptions // read-only

	mu       sync.Mutex
	vouchers map[string][]string // guarded by mu; at most maxVouchers; see vouched
}

const (
	maxVouchers = 10_000 // files on other hosts than the robots.txt that lists them
	maxHosts    = 100    // hosts whose robots.txt lists one of them

	maxAlternates = 50_000 // URLs of a sitemap that are only alternates of its entries

	partBytes = 256 << 10 // of URLs that are held at once; they are in the frontier before the next
)

// NewSitemaps returns a Sitemaps for a crawl with f.
func NewSitemaps(f crawler.Frontier, o SitemapOptions) *Sitemaps {
	o.Normalizer = cmp.Or(o.Normalizer, urlnorm.New())
	o.MaxBytes = cmp.Or(max(0, o.MaxBytes), 50<<20)
	o.MaxFiles = cmp.Or(max(0, o.MaxFiles), 1000)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Hint == nil {
		o.Hint = func(e *frontier.Entry, s sitemap.Entry) bool {
			e.Weight = s.Priority
			return true
		}
	}
	return &Sitemaps{f: f, opts: o, vouchers: map[string][]string{}}
}

// Places returns the usual sitemap URLs of the sites of seeds, for sites whose robots.txt lists
// none. Add them as seeds.
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

// Read implements crawler.Robots according to RFC 9309, and adds the sitemaps listed in the file to
// the frontier. Sitemaps out of the crawl's scope are not fetched.
func (s *Sitemaps) Read(site string, status int, body []byte) (crawler.Rules, bool) {
	file := robots.FromStatus(status, body)
	if file.Access() == robots.Unreachable {
		return nil, false
	}
	var entries []frontier.Entry
	for _, raw := range file.Sitemaps() {
		if len(entries) == s.opts.MaxFiles {
			s.opts.Logger.Warn("a robots.txt lists too many sitemaps; the rest is skipped", "first", entries[0].URL, "taken", len(entries))
			break
		}
		u, err := sitemap.Resolve(s.opts.Normalizer, site+"/robots.txt", raw)
		if err != nil {
			s.opts.Logger.Warn("a Sitemap line of a robots.txt is no URL", "site", site, "line", raw[:min(len(raw), 100)], "error", err)
			continue
		}
		entries = append(entries, s.vouch(frontier.Entry{URL: u, Depth: 1}, hostName(site)))
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

// vouch records that a robots.txt, or an index that one names, calls a URL a sitemap, and which other
// hosts' URLs it may list: in the entry, for when the crawl is resumed, and in memory, in case the
// frontier knows the URL already.
func (s *Sitemaps) vouch(e frontier.Entry, hosts ...string) frontier.Entry {
	hosts = slices.DeleteFunc(hosts, func(h string) bool { return h == "" || h == hostName(e.URL) })
	e.Meta = crawler.ListMeta(hosts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.vouchers[e.URL]
	if !ok && len(s.vouchers) >= maxVouchers {
		return e
	}
	for _, h := range hosts {
		if len(known) < maxHosts && !slices.Contains(known, h) {
			known = append(slices.Clip(known), h)
		}
	}
	s.vouchers[e.URL] = known
	return e
}

// vouched reports whether a URL is called a sitemap, and returns the other hosts whose URLs it may list.
func (s *Sitemaps) vouched(e frontier.Entry) (hosts []string, ok bool) {
	s.mu.Lock()
	known, ok := s.vouchers[e.URL]
	s.mu.Unlock()
	more, named := crawler.ListOf(e)
	hosts = append(slices.Clone(known), more...)
	slices.Sort(hosts)
	return slices.Compact(hosts), ok || named
}

func hostName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Handle is a Handler: it adds the URLs listed in a sitemap or feed to the page's links. A file that
// robots.txt or an index calls a sitemap is read as one, whatever its name, type and encoding; other
// files are if they look like one. A file may list all URLs of its host, and of hosts whose robots.txt
// lists it or an index that lists it (sitemaps.org, "Sitemaps & Cross Submits"); others are ignored. The
// alternates of its entries (hreflang) are treated as links of an ordinary page.
func (s *Sitemaps) Handle(ctx context.Context, p *crawler.Page) error {
	if p.Status < 200 || p.Status > 299 || p.Body == nil {
		return nil
	}
	at := p.Lease.Entry
	hosts, called := s.vouched(at)
	if !called && !sitemap.Recognize(p.Body.Head(4<<10), media.Of(p.Header).String()) {
		return nil
	}
	reader := func() *sitemap.Reader {
		return sitemap.NewReader(p.Body.Reader(), sitemap.Options{
			URL: p.URL, ContentType: media.Of(p.Header).String(), Locations: sitemap.OwnHost, Hosts: hosts, Normalizer: s.opts.Normalizer,
			MaxBytes: s.opts.MaxBytes, Alternates: true,
		})
	}
	taken, held := 0, 0
	add := func(found sitemap.Entry) error {
		e := frontier.Entry{URL: found.URL, Depth: at.Depth + 1, Crawl: at.Crawl}
		if found.Sitemap {
			e = s.vouch(e, slices.Clone(hosts)...)
		}
		if found.URL == at.URL || !s.opts.Hint(&e, found) {
			return nil
		}
		p.Add = append(p.Add, e)
		taken++
		if held += len(e.URL); held < partBytes {
			return nil
		}
		held = 0
		return p.Flush(ctx)
	}
	var first error
	seed := maphash.MakeSeed()
	var named []uint64 // hashes of the entries
	alternates := false
	r := reader()
	for found, err := range r.All() {
		switch {
		case errors.Is(err, sitemap.ErrFormat):
			if called && (p.Doc == nil || len(p.Doc.Links) == 0) { // otherwise it is a page, and is read as one
				p.Unread = "it is called a sitemap, and is " + err.(*sitemap.Error).Err.Error()
				s.opts.Logger.Warn("a sitemap cannot be read", "url", p.URL, "error", err)
			}
			return nil
		case err != nil:
			first = cmp.Or(first, err)
		case found.Alternate:
			alternates = true // if there is an entry for it, that says more
		default:
			named = append(named, maphash.String(seed, found.URL))
			if err := add(found); err != nil {
				return err
			}
		}
	}
	if p.Body.Cut() {
		return ctx.Err()
	}
	left := 0
	if alternates { // the file is read once more, rather than held
		slices.Sort(named)
		others := map[uint64]bool{}
		for found, err := range reader().All() {
			if err != nil || !found.Alternate {
				continue
			}
			h := maphash.String(seed, found.URL)
			if _, known := slices.BinarySearch(named, h); known || others[h] {
				continue
			}
			if len(others) == maxAlternates {
				left++
				continue
			}
			others[h] = true
			if err := add(found); err != nil {
				return err
			}
		}
	}
	switch {
	case p.Broken != "":
		s.opts.Logger.Warn("a sitemap is incomplete: its rest is unknown", "url", p.URL, "taken", taken, "bytes", p.Body.Size())
	case left > 0 || p.Truncated || errors.Is(first, sitemap.ErrTooLarge) || errors.Is(first, sitemap.ErrTooMany):
		s.opts.Logger.Warn("a sitemap is too large: its rest is left out", "url", p.URL, "taken", taken, "bytes", p.Body.Size(), "max_bytes", s.opts.MaxBytes)
	case first != nil && taken == 0:
		p.Unread = "no URL could be taken from this sitemap: " + first.Error()
		s.opts.Logger.Warn("no URL could be taken from a sitemap", "url", p.URL, "errors", r.Errors(), "first", first)
	case first != nil:
		s.opts.Logger.Info("a sitemap has errors", "url", p.URL, "taken", taken, "errors", r.Errors(), "first", first)
	}
	return nil
}

// Larger is a crawler.Options.Larger that reads sitemaps up to MaxBytes.
func (s *Sitemaps) Larger(e frontier.Entry, h http.Header, head []byte) int64 {
	if _, named := s.vouched(e); named || sitemap.Recognize(head, media.Of(h).String()) {
		return s.opts.MaxBytes
	}
	return 0
}

var _ crawler.Robots = (*Sitemaps)(nil)
