// This file wraps the Scheduler of package recrawl/adapter, and adds what only a crawler knows about a
// visit.

package incremental

import (
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
)

// scheduler is a frontier.Rechecker and a frontier.Hinter.
type scheduler struct {
	*adapter.Scheduler
	r *Revisits
}

// Next implements frontier.Scheduler. A URL without a note leaves the schedule: it belongs to the
// user, or is no longer wanted. So does a URL that was never read and whose tries are used up.
func (x scheduler) Next(v frontier.Visit) (time.Time, frontier.State) {
	n, ok := parseNote(crawler.Note(v.Entry))
	if !ok || v.Outcome.Result == frontier.Failed && !n.read {
		if v.Before.State != (frontier.State{}) {
			x.r.schedule.Forget(x.PageOf(v.Host, v.Before))
		}
		return time.Time{}, frontier.State{}
	}
	n.tell(&v.Outcome)
	return x.Scheduler.Next(v)
}

// Recheck implements frontier.Rechecker.
func (x scheduler) Recheck(e frontier.Entry, host string, h frontier.History, now time.Time) (time.Time, frontier.State) {
	due, keep := x.Scheduler.Recheck(e, host, h, now)
	if due.After(now) {
		x.r.counts.putOff()
	}
	return due, keep
}
