// This file puts URLs ahead of everything that waits, without breaking politeness:
// they wait for their hosts like any other.

package frontier

import "context"

// CrawlNow admits entries as the most urgent: their priority is Immediate, above
// all others. A hand-out takes them before it chooses a crawl or asks the
// selector; crawls that have such URLs take turns. The clocks of hosts and groups,
// pauses and blocks hold for them as ever. They are durable when it returns.
//
// Known URLs are re-admitted as with Entry.Force: one that waits is moved, one
// that is scheduled comes now, one that is leased comes again after its Done.
// NotBefore is ignored. New ones of a call come before its known ones. Later tries
// and visits have the priority that the Prioritizer gives. The number returned and
// the errors are those of Add.
func (f *Frontier) CrawlNow(ctx context.Context, entries ...Entry) (int, error) {
	return f.addAs(ctx, entries, Immediate)
}

// isPriority reports whether the URLs of a store may have this priority.
func (f *Frontier) isPriority(p uint8) bool {
	return p >= 1 && int(p) <= f.opts.Priorities || p == Immediate
}
