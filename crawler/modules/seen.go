// This file tests whether a page's content was seen before.

package modules

import (
	"context"
	"fmt"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/near"
)

// SeenOptions say what follows from a duplicate.
type SeenOptions struct {
	// SkipLinks does not add the links of pages whose content another URL has. Those
	// of the first one were added, and to follow a mirror's leads to the mirror.
	SkipLinks bool
	// OnMatch, if set, is told what each page is to those before it. It is called by
	// all workers at once.
	OnMatch func(p *crawler.Page, m near.Match)
}

// ContentSeen returns a Handler that adds each page with a status of 2xx to an index.
// A page that was visited before is reported as changed or, if that is only in markup and
// the like (near.Page.Change), as unchanged.
func ContentSeen(x *near.Index, o SeenOptions) Handler {
	return func(_ context.Context, p *crawler.Page) error {
		if p.Status < 200 || p.Status > 299 || p.Body == nil || p.Truncated {
			return nil
		}
		body, err := p.Body.Bytes()
		if err != nil {
			return fmt.Errorf("modules: content seen: %w", err)
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
		if o.SkipLinks && m.Kind.Duplicate() {
			p.Add = nil
		}
		if o.OnMatch != nil {
			o.OnMatch(p, m)
		}
		return nil
	}
}

func digest(h *near.Hasher, p *crawler.Page, body []byte) near.Page {
	contentType := p.Header.Get("Content-Type")
	if contentType == "" && p.Doc != nil {
		contentType = "text/html"
	}
	return h.Body(body, contentType)
}
