// This file makes the books of a recrawl.Scheduler anew from the URLs of a frontier.

package adapter

import (
	"context"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/recrawl"
)

// Recount replaces what the recrawl.Scheduler knows of which pages there are by those of
// a frontier, as after a crash, or when its snapshot was lost (recrawl.Scheduler.Recount).
// It reads all URLs (frontier.Scan), some seconds for each million, and is called
// before pages are visited. It returns how many pages there are. The error is the
// frontier's or ctx's; the books are incomplete then.
func (s *Scheduler) Recount(ctx context.Context, f *frontier.Frontier) (pages int, err error) {
	s.s.Recount(func(yield func(recrawl.Page) bool) {
		for u, scanErr := range f.Scan(ctx) {
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
