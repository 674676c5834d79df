// This file finds the state of one URL.
//
// There is no index of URLs. Whether one was ever admitted is known at once. To find
// where it is now, the search walks through the waiting URLs of its host and then, if it
// is not there, through scheduled URLs.

package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/timed"
	"github.com/seed-7440039f/frontier/internal/view"
)

// URLState is the state of a URL.
type URLState uint8

const (
	URLUnknown   URLState = iota // it was never admitted
	URLWaiting                   // it may be handed out as soon as its host may be contacted
	URLLeased                    // it is handed out
	URLScheduled                 // it waits for its time
	URLKnown                     // it was admitted and is done for good, or given up
	URLFinished                  // the same, and its record was kept: see Options.Keep
)

var urlStateNames = [...]string{"unknown", "waiting", "leased", "scheduled", "known", "finished"}

// String returns the state's name in lower case. It does not change between versions.
func (s URLState) String() string {
	if int(s) < len(urlStateNames) {
		return urlStateNames[s]
	}
	return "invalid URL state"
}

// Status describes a URL at one moment. For an unknown or known URL only State and Host are set.
type Status struct {
	State    URLState
	Host     string
	Priority int       // with which it is served
	Attempt  int       // of its next hand-out, or of the present one, from 1
	Until    time.Time // the lease's deadline, or when it is scheduled for; else zero
	Entry    frontier.Entry
	History  frontier.History
}

// Status reports the state of a URL, by the URL, Host and Crawl of e. A URL that was added with a Host
// is found under that one only; under another it is known, at best. It takes the lock only for moments, but
// reads the URLs of its host that wait on disk, and if the URL is known and not among
// them, all scheduled URLs: ctx ends that. A URL in an Add or Done that has not returned
// is reported as it is before or after that call. With Options.NoDedup URLs that are done
// are unknown. Status returns the error of Normalize or HostKey for a bad URL, ctx's,
// ErrClosed, or the Spill's; it skips damaged blocks.
func (v *Inspector) Status(ctx context.Context, e frontier.Entry) (Status, error) {
	host, url, err := v.f.Named(&e)
	if err != nil {
		return Status{}, err
	}
	s := urlSearch{v.f, ctx, view.NewSearch(v.f.Core(), host, e.Crawl, []byte(url))}
	none := Status{Host: host}
	known, err := v.f.Known(ctx, host, e.Crawl, url)
	if err != nil || !known && !v.f.Options().NoDedup {
		return none, err
	}
	for i := range 5 { // until it cannot have moved past the search
		settled, err := s.search(i == 0)
		if err != nil {
			return none, err
		}
		if s.State != view.Nowhere {
			return s.status(), nil
		}
		if settled {
			break
		}
	}
	if known {
		none.State = URLKnown
	}
	return none, nil
}

// status describes the URL that was found.
func (s *urlSearch) status() Status {
	x := Status{State: URLWaiting, Host: s.Host, Priority: s.Priority}
	x.Entry, x.Attempt, x.History = s.f.Described(s.Body, s.Host, s.Crawl)
	switch {
	case s.State == view.Leased:
		x.State, x.Until = URLLeased, s.f.Core().Clock.Wall(s.At)
	case s.State == view.Scheduled && s.At == instant.Never:
		x.State, x.Entry.Finished = URLFinished, true
	case s.State == view.Scheduled:
		x.State, x.Until = URLScheduled, s.f.Core().Clock.Day(s.At)
	}
	return x
}

// urlSearch is the search for one URL.
type urlSearch struct {
	f   source
	ctx context.Context
	*view.Search
}

// search looks everywhere once. If nothing is found, settled reports that the URL was not
// on its way from one place to another.
func (s *urlSearch) search(first bool) (settled bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	list := s.f.Timed().List()
	if err := s.f.LockAdvancedOpen(); err != nil {
		return false, err
	}
	s.f.Core().Timed.EndList(list)
	moving, last := first && s.f.Busy(), s.f.Core().Timed.Last()
	if s.Begin(s.f.ForgottenUntil(s.Host, s.Crawl)); s.Walk != nil {
		moving = moving || s.f.Core().Hosts.At(s.Owner).Pins > 0
	}
	s.f.Unlock()
	moved, err := false, s.ofHost()
	if err == nil && s.State == view.Nowhere {
		moved, err = s.f.Timed().EachTimed(s.ctx, list.All(), s.IsOf, func(r *timed.Loaded) bool { s.Take(r); return false })
	}
	if err != nil || s.State != view.Nowhere {
		return true, err
	}
	if err := s.f.LockOpen(); err != nil {
		return false, err
	}
	moving = moving || moved || s.Walk != nil && s.Taken || s.f.Core().Timed.Last() != last
	s.f.Unlock()
	if !moving || s.f.Options().Spill == nil {
		return !moving, nil
	}
	return false, s.f.Settle(s.ctx)
}

// scheduledAtOnce is how many scheduled records are looked at under one lock.
const scheduledAtOnce = 2048

// ofHost looks through the host's URLs, in memory and on disk.
func (s *urlSearch) ofHost() error {
	s.f.Lock()
	defer func() {
		s.f.Lock()
		s.End()
		s.f.Unlock()
	}()
	for s.LookScheduled(scheduledAtOnce) { // before the walk: at its time a record begins to wait
		s.f.Unlock() // others may have it
		s.f.Lock()
	}
	for s.Step(view.AtOnce) && !s.f.Closed() {
		s.f.Unlock() // others may have it
		s.f.Lock()
	}
	s.f.Unlock()
	for i := 0; i < len(s.Parts) && s.State == view.Nowhere; i++ {
		p := &s.Parts[i]
		records, err := s.f.ReadPart(s.ctx, p.Part, p.Want)
		if err != nil && !isCorrupt(err) {
			return err
		}
		if !slices.ContainsFunc(records, s.Has) {
			continue
		}
		s.f.Lock()
		s.Read(p, records, s.f.ForgottenUntil(s.Host, s.Crawl))
		s.f.Unlock()
	}
	return nil
}
