// This file stores settings that the frontier has no rule for as its values: whether GetURLs is active,
// and limits of queues.

package urlfrontier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// Keys of values.
const (
	inactiveKey = "urlfrontier/inactive"
	limitKey    = "urlfrontier/limit/" // prefix of a queue's key
)

// settings are the stored settings.
type settings struct {
	f *frontier.Frontier

	holding sync.Mutex // held while a host is paused or released; taken before mu

	mu       sync.Mutex
	inactive bool             // guarded by mu; GetURLs returns nothing
	limits   map[string]int64 // guarded by mu; most completed URLs, by key
}

// openLimit parses a limit: the most completed URLs of a key.
func openLimit(b []byte) (most int64, err error) {
	most, err = strconv.ParseInt(string(b), 10, 64)
	if err == nil && most <= 0 {
		err = fmt.Errorf("%q: no limit is like that", b)
	}
	return most, err
}

// CheckValue returns what is wrong with a value of this package, for serve.Options.CheckValue.
func CheckValue(key string, value []byte) error {
	of, ok := strings.CutPrefix(key, limitKey)
	if !ok {
		return nil
	}
	_, err := openLimit(value)
	if of == "" {
		err = errors.New("there is no queue without a key")
	}
	if err != nil {
		return fmt.Errorf("urlfrontier: settings: %q: %w", key, err)
	}
	return nil
}

func openSettings(ctx context.Context, f *frontier.Frontier) (*settings, error) {
	s := &settings{f: f, limits: map[string]int64{}}
	_, inactive, err := f.Value(inactiveKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: settings: %w", err)
	}
	s.inactive = inactive
	limits, err := f.Values(ctx, limitKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: settings: %w", err)
	}
	for key, v := range limits {
		l, err := openLimit(v)
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: settings: %q: %w", key, err)
		}
		s.limits[strings.TrimPrefix(key, limitKey)] = l
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

// setLimit sets the limit of a key; 0 removes it.
func (s *settings) setLimit(ctx context.Context, key string, most int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if most == 0 {
		if err := s.f.SetValue(ctx, limitKey+key, nil); err != nil {
			return err
		}
		delete(s.limits, key)
		return nil
	}
	if err := s.f.SetValue(ctx, limitKey+key, strconv.AppendInt(nil, most, 10)); err != nil {
		return err
	}
	s.limits[key] = most
	return nil
}

// active reports whether GetURLs returns URLs.
func (s *settings) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.inactive
}

// limit returns the limit of a key; 0: none.
func (s *settings) limit(key string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[key]
}

// limited returns the keys with limits.
func (s *settings) limited() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.limits))
}

// isSpent reports whether the completed URLs of a key, in all crawls, have reached most.
func (s *Server) isSpent(key string, most int64) (bool, error) {
	if most == 0 {
		return false, nil
	}
	var n int64
	for _, id := range s.svc.Inspector().Crawls() {
		q, err := s.queueStats(id, key)
		if err != nil {
			return false, err
		}
		if n += q.Finished; n >= most {
			return true, nil
		}
	}
	return false, nil
}

// setLimit sets the limit of a queue, and holds or releases its host. The limit of a held host is always
// in the store: otherwise a crash could leave the host held for ever.
func (s *Server) setLimit(ctx context.Context, key string, most int64) error {
	s.settings.holding.Lock()
	defer s.settings.holding.Unlock()
	spent, err := s.isSpent(key, most)
	if err == nil && !spent {
		err = s.hold(key, false)
	}
	if err == nil {
		err = s.settings.setLimit(ctx, key, most)
	}
	if err == nil && spent {
		err = s.hold(key, true)
	}
	return err
}

// withhold holds the host of a queue that has reached its limit, and reports whether it has. When there
// is room again it releases the host.
func (s *Server) withhold(key string) (spent bool, err error) {
	s.settings.holding.Lock()
	defer s.settings.holding.Unlock()
	most := s.settings.limit(key)
	if most == 0 {
		return false, nil
	}
	if spent, err = s.isSpent(key, most); err == nil {
		err = s.hold(key, spent)
	}
	return spent, err
}

// hold holds or releases a host. It does not touch pauses, which belong to operators.
func (s *Server) hold(key string, on bool) error {
	f, host := s.svc.Frontier(), scope.Host(key)
	if rule, _ := f.Rule(host); rule.Held == on {
		return nil
	}
	return f.UpdateRule(host, func(r *frontier.Rule) { r.Held = on })
}

// tryWithhold is withhold for callers that ignore errors.
func (s *Server) tryWithhold(key string) bool {
	spent, err := s.withhold(key)
	if err != nil {
		s.log.Error("urlfrontier: a host is served, or not, in spite of its limit", "host", key, "error", err)
	}
	return spent
}

// noteSpent notes a key with a limit after one of its URLs was completed.
func (s *Server) noteSpent(key string, finished bool) {
	if finished && s.settings.limit(key) > 0 {
		s.spent = append(s.spent, key)
	}
}

// withholdSpent withholds the noted queues that have reached their limits.
func (s *Server) withholdSpent() {
	slices.Sort(s.spent)
	for _, key := range slices.Compact(s.spent) {
		s.tryWithhold(key)
	}
	s.spent = s.spent[:0]
}

// withinLimits drops leases of hosts whose limits another API has used up. Their URLs wait again, and the
// hosts are held.
func (s *Server) withinLimits(leases []frontier.Lease) (within []frontier.Lease) {
	var over []frontier.Lease
	key, spent := "", false
	for _, l := range leases {
		if l.Host != key { // leases of one host are adjacent
			key = l.Host
			spent = s.settings.limit(key) > 0 && s.tryWithhold(key)
		}
		if spent {
			over = append(over, l)
		} else {
			within = append(within, l)
		}
	}
	s.putBack(over)
	return within
}
