// This file rebuilds the accounts of a recrawl.Scheduler from the URLs of a frontier.

package adapter

import (
	"context"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/scope"
)

// Recount replaces the recrawl.Scheduler's accounts of pages by the pages of a frontier, as after a
// crash or the loss of its snapshot (recrawl.Scheduler.Recount). It reads all URLs (frontier.Scan),
// which takes some seconds per million; call it before pages are visited. It returns the number of
// pages. The error is the frontier's or ctx's; after an error the accounts are incomplete.
func (s *Scheduler) Recount(ctx context.Context, f *frontier.Frontier) (pages int, err error) {
	s.s.Recount(func(yield func(recrawl.Page) bool) {
		for u, scanErr := range inspect.New(f).Scan(ctx, scope.All()) {
			switch {
			case scanErr != nil:
				err = scanErr
				return
			case u.History.State == (frontier.State{}): // it was never visited
				continue
			}
			pages++
			if !yield(s.PageOf(u.Host, u.History)) {
				return
			}
		}
	})
	return pages, err
}
