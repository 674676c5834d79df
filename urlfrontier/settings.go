// This file keeps what the frontier has no rule for as values beside it: whether GetURLs is on, and
// limits of queues.

package urlfrontier

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier"
)

// Keys of values.
const (
	inactiveKey = "urlfrontier/inactive"
	limitKey    = "urlfrontier/limit/" // and the key of the queue
)

// settings are durable.
type settings struct {
	f *frontier.Frontier

	mu       sync.Mutex
	inactive bool             // guarded by mu; GetURLs returns nothing
	limits   map[string]int64 // guarded by mu; of completed URLs, by key
}

func openSettings(ctx context.Context, f *frontier.Frontier) (*settings, error) {
	s := &settings{f: f, limits: map[string]int64{}}
	_, inactive, err := f.Value(inactiveKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: settings: %w", err)
	}
	s.inactive = inactive
	for v, err := range f.Values(ctx, limitKey) {
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: settings: %w", err)
		}
		n, err := strconv.ParseInt(string(v.Value), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: settings: %q: %w", v.Key, err)
		}
		s.limits[strings.TrimPrefix(v.Key, limitKey)] = n
	}
	return s, nil
}

// setActive turns GetURLs on or off.
func (s *settings) setActive(ctx context.Context, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := []byte{1}
	if on {
		v = nil
	}
	if err := s.f.SetValue(ctx, inactiveKey, v); err != nil {
		return err
	}
	s.inactive = !on
	return nil
}

// setLimit sets that of a key; 0: none.
func (s *settings) setLimit(ctx context.Context, key string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var v []byte
	if n > 0 {
		v = strconv.AppendInt(nil, n, 10)
	}
	if err := s.f.SetValue(ctx, limitKey+key, v); err != nil {
		return err
	}
	if s.limits[key] = n; n == 0 {
		delete(s.limits, key)
	}
	return nil
}

// active reports whether GetURLs returns URLs.
func (s *settings) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.inactive
}

// limit is that of a key; 0: none.
func (s *settings) limit(key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[key]
}

// isSpent reports whether as many URLs of a key are completed, in all crawls, as its limit allows.
func (s *Server) isSpent(key string) bool {
	limit := s.settings.limit(key)
	if limit == 0 {
		return false
	}
	var n int64
	for _, id := range s.svc.Frontier().Crawls() {
		n += s.queueStats(id, key).Finished
	}
	return n >= limit
}

// withhold keeps a queue that has reached its limit from being served, and releases others.
func (s *Server) withhold(key string) error {
	spent := s.isSpent(key)
	return s.svc.Frontier().UpdateRule(frontier.Host(key), func(r *frontier.Rule) {
		if r.Paused = frontier.Unset; spent {
			r.Paused = frontier.On
		}
	})
}

// noteSpent notes a key with a limit of which a URL was completed.
func (s *Server) noteSpent(key string, finished bool) {
	if finished && s.settings.limit(key) > 0 {
		s.spent = append(s.spent, key)
	}
}

// withholdSpent withholds the queues that were noted and have reached their limits.
func (s *Server) withholdSpent() {
	for _, key := range s.spent {
		if err := s.withhold(key); err != nil {
			s.log.Error("urlfrontier: a queue at its limit is not withheld", "host", key, "error", err)
		}
	}
	s.spent = s.spent[:0]
}
