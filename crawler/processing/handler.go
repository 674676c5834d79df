// This file puts modules in a row.

package processing

import (
	"context"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler"
)

// Handler sees a page: a crawler.Options.OnPage.
type Handler func(ctx context.Context, p *crawler.Page) error

// Chain returns a Handler that calls the given ones in order, until one fails. Nil Handlers are
// skipped.
func Chain(all ...Handler) Handler {
	return func(ctx context.Context, p *crawler.Page) error {
		for _, h := range all {
			if h == nil {
				continue
			}
			if err := h(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// ForTypes returns a Handler that calls h only with answers of some media types, such as
// "text/html", "image/*" and "none": those without a Content-Type. Mercator selects its processing
// modules in this way.
func ForTypes(h Handler, types ...string) Handler {
	return func(ctx context.Context, p *crawler.Page) error {
		t := mediaType(p)
		kind, _, _ := strings.Cut(t, "/")
		if slices.Contains(types, t) || slices.Contains(types, kind+"/*") {
			return h(ctx, p)
		}
		return nil
	}
}
