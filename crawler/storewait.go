// This file lets a crawl wait while its store fails. A full disk or a lack of file descriptors is
// temporary, or an operator fixes it, and waiting costs nothing; a crawl that had ended would have
// to be restarted. URLs whose outcomes could not be written wait in the frontier and are fetched
// again. One worker at a time tries, with growing pauses. A store that must be reopened ends the
// crawl at once.

package crawler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	storeFirst = time.Second      // before the first try; twice as long before each further one
	storeMost  = 30 * time.Second // between two tries
	storeCalm  = 5                // times storeFirst without a failure the store works again: small writes go well, for moments
	storeLong  = 15 * time.Minute // after this time without a write the crawl ends with the store's error
)

// storeWait tracks whether the store accepts writes. Use newStoreWait. Safe for concurrent use.
type storeWait struct {
	log         *slog.Logger
	now         func() time.Time
	first, long time.Duration // storeFirst, storeLong

	mu     sync.Mutex
	since  time.Time     // guarded by mu; of the first failure since the store worked; zero: it does
	latest time.Time     // guarded by mu; of the latest failure
	wrote  time.Time     // guarded by mu; of the first failure, or a write since
	trying bool          // guarded by mu; a worker has a lease to test the store
	next   time.Time     // guarded by mu; time of the next try
	pause  time.Duration // guarded by mu; before that
	works  chan struct{} // guarded by mu; closed when the store works again; nil while it does
}

func newStoreWait(log *slog.Logger, now func() time.Time) *storeWait {
	return &storeWait{log: log, now: now, first: storeFirst, long: storeLong}
}

// acquire waits until a worker may take a lease, and returns false when ctx has ended. A worker
// that tries ends its try with failed or release.
func (s *storeWait) acquire(ctx context.Context) (try, ok bool) {
	for {
		s.mu.Lock()
		if s.since.IsZero() {
			s.mu.Unlock()
			return false, ctx.Err() == nil
		}
		wait := s.next.Sub(s.now())
		if wait <= 0 && !s.trying {
			s.trying = true
			s.mu.Unlock()
			return true, ctx.Err() == nil
		}
		works := s.works
		s.mu.Unlock()
		if !await(ctx, max(wait, s.first), works) {
			return false, false
		}
	}
}

// release ends a try.
func (s *storeWait) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trying = false
}

// worked is called after each write. Until there was no failure for some time, workers continue to
// try one at a time, but without pauses.
func (s *storeWait) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return
	}
	now := s.now()
	if now.Sub(s.latest) < storeCalm*s.first {
		s.pause, s.next, s.wrote = s.first, now, now
		return
	}
	s.log.Warn("the store works again: the crawl goes on", "elapsed", now.Sub(s.since))
	s.since = time.Time{}
	close(s.works)
	s.works = nil
}

// failed reports whether the crawl should wait for the store after an error of the frontier. try
// means that the error ended a try.
func (s *storeWait) failed(err error, try bool) bool {
	if _, ok := errors.AsType[*frontier.SelectorError](err); ok || errors.Is(err, frontier.ErrClosed) || errors.Is(err, frontier.ErrReopen) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.latest = now
	if s.since.IsZero() {
		s.since, s.wrote, s.pause, s.works, s.trying = now, now, s.first, make(chan struct{}), false
		if s.long > 0 {
			s.log.Warn("the store fails: the crawl waits until it works again", "error", err)
		}
		s.next = now.Add(s.pause)
	}
	if try {
		s.pause, s.trying = min(2*s.pause, storeMost), false
		s.next = now.Add(s.pause)
	}
	return now.Sub(s.wrote) < s.long
}
