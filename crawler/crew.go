// This file keeps slow hosts from holding up a crawl.
//
// Options.Workers bounds the pages that are processed at once, and the contacts with hosts that answer
// promptly. A waiting contact costs little, so another worker takes the place of one that waits: at once
// if its host has given no page yet, or gave the last one slowly; otherwise after a second. So no host
// takes workers from the others. Waiting is bounded, too: the number of contacts, and, as for workers,
// the number of large bodies. Beyond these bounds sites stand in line, in the order of their arrival; a quarter
// of the places is reserved for hosts that become slow. A crawl with one worker makes one contact after the other.

package crawler

import (
	"container/list"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

const (
	promptly = time.Second     // a contact that takes longer needs no worker
	slowly   = 5 * time.Second // a contact that takes longer begins without one the next time

	placesEach = 24      // places for each worker
	placesMost = 1 << 10 // and in all

	turnMost  = time.Minute     // a site in line tries again after this time at most
	lateMost  = 5 * time.Second // a site that does not try for so long after its time loses its turn
	lineMost  = 1 << 16         // sites in line; what comes then is in line when it is shorter
	shortEach = time.Minute     // between two warnings
)

// crew is what the workers of a Crawler share. Use newCrew.
type crew struct {
	log    *slog.Logger
	places chan struct{} // one for each lease without a worker; none if there is one worker
	large  chan struct{} // one for each of these that holds a large body
	desks  chan struct{} // one for each page that is processed

	mu    sync.Mutex
	hold  time.Duration            // guarded by mu; about how long a place is held
	ended time.Time                // guarded by mu; when one was last left, or the line began
	line  list.List                // guarded by mu; of *waiter, those who came first in front
	in    map[string]*list.Element // guarded by mu; by site
	taken int                      // guarded by mu; how many have left the line
	said  time.Time                // guarded by mu; when a lack of places was logged
}

// waiter is a site in line for a place.
type waiter struct {
	site   string
	number int       // how many came before
	due    time.Time // when it tries again
}

func newCrew(o *Options) *crew {
	places := max(1, min(placesEach*o.Workers, max(placesMost, o.Workers), descriptors()/2))
	if o.Workers == 1 {
		places = 0
	}
	return &crew{
		log: o.Logger, hold: promptly / 10, in: map[string]*list.Element{},
		places: make(chan struct{}, places), large: make(chan struct{}, o.Workers), desks: make(chan struct{}, o.Workers),
	}
}

// took records how long a contact without a worker took.
func (c *crew) took(d time.Duration, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold += (d - c.hold) / 16
	c.ended = now
}

// turn returns zero if a site may have one of the free places, otherwise after which time it tries again.
// A place is for the first in line: one that comes later waits although the place is free.
func (c *crew) turn(site string, free int, now time.Time) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.in[site]
	e := c.line.Front()
	for e != nil && e != own && free > 0 {
		next := e.Next()
		if now.Sub(e.Value.(*waiter).due) > lateMost {
			c.leaveLocked(e)
		} else {
			free--
		}
		e = next
	}
	if free > 0 {
		if own != nil {
			c.leaveLocked(own)
		}
		return 0
	}
	if now.Sub(c.said) >= shortEach {
		c.log.Warn("many hosts do not answer, or slowly: other hosts that have not answered yet wait for them; more Workers allow more contacts",
			"waiting", len(c.places), "most", cap(c.places), "hosts", c.line.Len()+1)
		c.said = now
	}
	if own == nil {
		if c.line.Len() == lineMost {
			return turnMost
		}
		if c.line.Len() == 0 {
			c.ended = now
		}
		own = c.line.PushBack(&waiter{site: site, number: c.taken + c.line.Len()})
		c.in[site] = own
	}
	w := own.Value.(*waiter)
	hold := min(max(c.hold, now.Sub(c.ended)), turnMost)
	wait = time.Duration(w.number-c.taken+1) * hold / time.Duration(cap(c.places))
	wait = min(max(wait, hold/32, time.Millisecond), turnMost) // a free place waits for the first in line
	w.due = now.Add(wait)
	return wait
}

func (c *crew) leaveLocked(e *list.Element) {
	delete(c.in, c.line.Remove(e).(*waiter).site)
	c.taken++
}

// shift is one worker's share of the crew's resources.
type shift struct {
	start  func()      // another worker
	seated bool        // it has a desk
	late   *time.Timer // of the last contact: it calls relieve

	mu       sync.Mutex
	relieved bool            // guarded by mu; another worker has its place, so the present lease is its last
	large    bool            // guarded by mu; the body is no longer small
	waits    bool            // guarded by mu; it waits for a host
	held     []chan struct{} // guarded by mu; what it returns at the end of the lease
}

// relieveLocked starts another worker in place of this one. It returns false if one of the pools for
// contacts without a worker is exhausted.
func (r *run) relieveLocked(pools ...chan struct{}) bool {
	s := r.shift
	for i, p := range pools {
		select {
		case p <- struct{}{}:
		default:
			for _, p := range pools[:i] {
				<-p
			}
			return false
		}
	}
	s.held = append(s.held, pools...)
	s.relieved = true
	r.c.counters.busy.Add(-1)
	s.start()
	return true
}

// relieve starts another worker in place of this one if it still waits for a host.
func (r *run) relieve() {
	c, s := r.c.crew, r.shift
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.waits || s.relieved:
	case s.large:
		r.relieveLocked(c.places, c.large)
	default:
		r.relieveLocked(c.places)
	}
}

// depart prepares a contact for a lease. If its site has given no page yet, or gave the last one
// slowly, it needs no worker, but a place. It returns how long the contact must wait for one:
// a site that has answered does not wait for its first page.
func (r *run) depart(l frontier.Lease) (wait time.Duration) {
	c, s := r.c.crew, r.shift
	site := siteOf(l.Entry.URL)
	pace := r.c.gate.paceOf(site)
	if pace == prompt || cap(c.places) == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.relieved:
	case pace == young:
		r.relieveLocked(c.places) // or it waits as a worker
	default:
		if wait = c.turn(site, cap(c.places)-cap(c.places)/4-len(c.places), r.c.now()); wait == 0 && !r.relieveLocked(c.places) {
			return promptly // hosts that became slow have just taken all
		}
	}
	return wait
}

// await sends a request with send, and returns when its result may be processed.
func (r *run) await(ctx context.Context, q fetch.Request, send func(context.Context, fetch.Request) (*fetch.Result, error)) (*fetch.Result, error) {
	c, s := r.c.crew, r.shift
	s.rise(c)
	s.wait(true)
	q.Large = func() {
		s.mu.Lock()
		s.large = true
		relieved := s.relieved
		s.mu.Unlock()
		if !relieved {
			return
		}
		select {
		case c.large <- struct{}{}:
			s.mu.Lock()
			s.held = append(s.held, c.large)
			s.mu.Unlock()
		case <-ctx.Done():
		}
	}
	began := time.Now()
	if s.late == nil {
		s.late = time.AfterFunc(promptly, r.relieve)
	} else {
		s.late.Reset(promptly)
	}
	res, err := send(ctx, q)
	s.late.Stop()
	took := time.Since(began)
	if s.wait(false) {
		c.took(took, r.c.now())
	}
	if !isRobots(q.URL) {
		switch {
		case took >= slowly || err != nil && took >= promptly:
			r.c.gate.gave(siteOf(q.URL), slow)
		case err == nil:
			r.c.gate.gave(siteOf(q.URL), prompt)
		}
	}
	if !s.sit(r.fetches, c) {
		err = r.fetches.Err()
	}
	return res, err
}

// wait notes that a fetch begins, or ends, and reports whether another worker has the place.
func (s *shift) wait(begins bool) (relieved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.large = begins, false
	return s.relieved
}

// sit waits for a desk, and returns false if ctx ends first.
func (s *shift) sit(ctx context.Context, c *crew) bool {
	if !s.seated {
		select {
		case c.desks <- struct{}{}:
			s.seated = true
		case <-ctx.Done():
		}
	}
	return s.seated
}

// rise leaves the desk to others.
func (s *shift) rise(c *crew) {
	if s.seated {
		<-c.desks
		s.seated = false
	}
}

// waitsForMemory lets others work while the page waits for memory for its links. What has such
// memory may wait for a desk, so nothing at a desk waits for memory.
func (r *run) waitsForMemory() {
	s := r.shift
	s.mu.Lock()
	if !s.relieved {
		r.relieveLocked(r.c.crew.large) // or it waits as a worker
	}
	s.mu.Unlock()
	s.rise(r.c.crew)
}

// end ends a lease. It reports whether another worker has the place.
func (s *shift) end(c *crew) (relieved bool) {
	s.rise(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.held {
		<-p
	}
	s.held = nil
	return s.relieved
}
