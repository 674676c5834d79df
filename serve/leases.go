// This file hands leases out, and remembers how they ended.

package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// streams are those that leases were handed out by, by token.
type streams struct {
	mu sync.Mutex
	by map[uint64]*stream // guarded by mu
}

func (x *streams) of(token uint64) *stream {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.by[token]
}

func (x *streams) set(token uint64, st *stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by == nil {
		x.by = map[uint64]*stream{}
	}
	x.by[token] = st
}

// drop forgets leases that have ended.
func (x *streams) drop(tokens ...uint64) {
	for _, token := range tokens {
		x.mu.Lock()
		st := x.by[token]
		delete(x.by, token)
		x.mu.Unlock()
		if st != nil {
			st.over(token)
		}
	}
}

// update replaces a lease by one that succeeds it.
func (x *streams) update(old, l frontier.Lease) {
	st := x.of(old.Token())
	if st == nil {
		return
	}
	if old.Token() != l.Token() {
		x.drop(old.Token())
		x.set(l.Token(), st)
	}
	st.out(l)
}

// Take asks for leases.
type Take struct {
	Hosts   int           // at most; 0: as many as Max
	PerHost int           // URLs of each host; 0: 1
	Max     int           // leases at most; 0: Hosts x PerHost
	Host    string        // only of this host; empty: any
	Crawls  []uint32      // only of these; empty: any
	Lease   time.Duration // how long they last; 0: Options.LeaseTime of the frontier
	Wait    time.Duration // for the first
}

// errFilter is returned for what the frontier cannot choose by.
var errFilter = errors.New("serve: leases of one host, or of some crawls, or several of one host, cannot be asked for yet")

// Take hands leases out. Without any it returns when to ask again, if that is known, and
// ErrExhausted if nothing is left.
func (s *Service) Take(ctx context.Context, t Take) (leases []frontier.Lease, next time.Time, err error) {
	if t.Host != "" || len(t.Crawls) > 0 || t.PerHost > 1 {
		return nil, next, errFilter
	}
	most := t.Max
	if t.Hosts > 0 && (most == 0 || t.Hosts < most) {
		most = t.Hosts
	}
	for range max(1, most) {
		var l frontier.Lease
		if l, next, err = s.f.TryNext(); err != nil {
			break
		}
		leases = append(leases, l)
	}
	if len(leases) == 0 && t.Wait > 0 && (errors.Is(err, frontier.ErrNotDue) || errors.Is(err, frontier.ErrExhausted)) {
		wait, cancel := context.WithTimeout(ctx, t.Wait)
		defer cancel()
		l, werr := s.f.Next(wait)
		switch {
		case werr == nil:
			leases = []frontier.Lease{l}
		case wait.Err() == nil:
			err = werr
		}
	}
	if len(leases) == 0 {
		return nil, next, err
	}
	if t.Lease > 0 {
		for i := range leases {
			if err := s.f.Extend(&leases[i], t.Lease); err != nil {
				return leases, next, nil // it has ended: the client finds out
			}
		}
	}
	return leases, next, nil
}

// giveBack returns leases that did not reach the client.
func (s *Service) giveBack(leases []frontier.Lease) {
	for _, l := range leases {
		_ = s.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}) // unless it has ended
		s.streams.drop(l.Token())
	}
}

// ended are leases that ended lately, so that the same Done twice does no harm.
type ended struct {
	mu   sync.Mutex
	by   map[uint64]int // guarded by mu; the place in ring
	ring []endedLease   // guarded by mu
	at   int            // guarded by mu
}

type endedLease struct {
	token, body uint64
	at          time.Time
	answer      []byte // nil: nothing was added
}

const (
	endedFor    = 10 * time.Minute
	endedAtMost = 1 << 18
)

func (e *ended) note(x endedLease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[uint64]int{}
	}
	if len(e.ring) < endedAtMost {
		e.by[x.token] = len(e.ring)
		e.ring = append(e.ring, x)
		return
	}
	delete(e.by, e.ring[e.at].token)
	e.ring[e.at] = x
	e.by[x.token] = e.at
	e.at = (e.at + 1) % len(e.ring)
}

// find returns how a lease ended, if it was by the same body.
func (e *ended) find(token, body uint64) (endedLease, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.by[token]
	if !ok || e.ring[i].body != body || time.Since(e.ring[i].at) > endedFor {
		return endedLease{}, false
	}
	return e.ring[i], true
}
