// This file tests whether a page's content was seen before.

package processing

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/internal/media"
)

// SeenOptions say what happens with duplicates.
type SeenOptions struct {
	// SkipLinks ignores the links of a page whose content another URL has, if both pages link to
	// the same places, each on its own host: the links of the first page were added, and those of a
	// mirror lead to the mirror. Pages of a paginated list may have the same words, but link to
	// other places, so their links are added.
	SkipLinks bool
	// OnMatch, if set, receives the match of each page with earlier ones. All workers call it
	// concurrently.
	OnMatch func(p *crawler.Page, m neardup.Match)
}

// ContentSeen returns a Handler that adds each page with a 2xx status to an index. A page that was
// visited before is reported as changed or, if only markup and similar parts differ
// (neardup.Page.Change), as unchanged.
func ContentSeen(x *neardup.Index, o SeenOptions) Handler {
	return func(_ context.Context, p *crawler.Page) error {
		if p.Status < 200 || p.Status > 299 || p.Body == nil || p.Truncated {
			return nil
		}
		body, err := p.Body.Bytes()
		if err != nil {
			return fmt.Errorf("processing: content seen: %w", err)
		}
		if len(body) == 0 {
			return nil // all empty pages are alike, and say nothing of each other
		}
		m, err := x.Add(p.Lease.Entry.URL, digest(x.Hasher(), p, body))
		if err != nil {
			return err
		}
		if p.Lease.History.Visits > 0 && m.Known {
			p.Outcome.Result = frontier.Unchanged
			if m.Change > 0 {
				p.Outcome.Result = frontier.Changed
			}
		}
		p.Duplicate = m.Kind.Duplicate()
		if o.SkipLinks && p.Duplicate && m.SameLinks {
			p.Add = nil
		}
		if o.OnMatch != nil {
			o.OnMatch(p, m)
		}
		return nil
	}
}

func digest(h *neardup.Hasher, p *crawler.Page, body []byte) neardup.Page {
	contentType := media.Sniff(p.Header, p.Body.Head(media.SniffSize)).String()
	x := h.Body(body, contentType)
	x.Links = places(p)
	return x
}

// places returns a fingerprint of a page's links. The site's own name is left out, so that the
// links of a mirror have the same fingerprint.
func places(p *crawler.Page) uint64 {
	if p.Doc == nil {
		return 1 // nowhere
	}
	site := siteOf(p.Lease.Entry.URL)
	links := make([]string, 0, len(p.Doc.Links))
	for _, l := range p.Doc.Links {
		links = append(links, strings.TrimPrefix(l.URL, site))
	}
	slices.Sort(links)
	h := fnv.New64a()
	for _, l := range slices.Compact(links) {
		_, _ = io.WriteString(h, l+"\n")
	}
	return max(2, h.Sum64())
}

// siteOf returns the beginning of a URL up to its path.
func siteOf(url string) string {
	if i := strings.Index(url, "://"); i >= 0 {
		if j := strings.IndexByte(url[i+3:], '/'); j >= 0 {
			return url[:i+3+j]
		}
	}
	return url
}
