// This file keeps what the frontier has no rule for as values beside it: whether GetURLs is on, and
// limits of queues.

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
)

// Keys of values.
const (
	inactiveKey = "urlfrontier/inactive"
	limitKey    = "urlfrontier/limit/" // and the key of the queue
)

// settings are durable.
type settings struct {
	f *frontier.Frontier

	pausing sync.Mutex // held while a host is paused or released; taken before mu

	mu       sync.Mutex
	inactive bool             // guarded by mu; GetURLs returns nothing
	limits   map[string]limit // guarded by mu; by key
}

// limit is that of a key.
type limit struct {
	most int64           // URLs that may be completed; 0: any number
	held bool            // the server has paused the host, or is about to
	was  frontier.Switch // what Paused was before
}

// append appends what is stored of a limit.
func (l limit) append(b []byte) []byte {
	b = strconv.AppendInt(b, l.most, 10)
	if l.held {
		b = append(b, ' ', '0'+byte(l.was))
	}
	return b
}

// openLimit is the inverse of append.
func openLimit(b []byte) (l limit, err error) {
	most, was, held := strings.Cut(string(b), " ")
	if l.most, err = strconv.ParseInt(most, 10, 64); err == nil && held {
		var x uint64
		x, err = strconv.ParseUint(was, 10, 8)
		l.held, l.was = true, frontier.Switch(x)
	}
	if err == nil && (l.most < 0 || l.was > frontier.Off) {
		err = fmt.Errorf("%q: no limit is like that", b)
	}
	return l, err
}

// CheckValue is for serve.Options.CheckValue: it says what is wrong with a value of this package's.
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
	s := &settings{f: f, limits: map[string]limit{}}
	_, inactive, err := f.Value(inactiveKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: settings: %w", err)
	}
	s.inactive = inactive
	for v, err := range f.Values(ctx, limitKey) {
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: settings: %w", err)
		}
		l, err := openLimit(v.Value)
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: settings: %q: %w", v.Key, err)
		}
		s.limits[strings.TrimPrefix(v.Key, limitKey)] = l
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

// change changes the limit of a key.
func (s *settings) change(ctx context.Context, key string, change func(*limit)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.limits[key]
	change(&l)
	if l == (limit{}) {
		if err := s.f.SetValue(ctx, limitKey+key, nil); err != nil {
			return err
		}
		delete(s.limits, key)
		return nil
	}
	if err := s.f.SetValue(ctx, limitKey+key, l.append(nil)); err != nil {
		return err
	}
	s.limits[key] = l
	return nil
}

// active reports whether GetURLs returns URLs.
func (s *settings) active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.inactive
}

// limit is that of a key.
func (s *settings) limit(key string) limit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits[key]
}

// limited are the keys with limits.
func (s *settings) limited() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.limits))
}

// isSpent reports whether as many URLs of a key are completed, in all crawls, as a limit allows.
func (s *Server) isSpent(key string, most int64) (bool, error) {
	if most == 0 {
		return false, nil
	}
	var n int64
	for _, id := range s.svc.Frontier().Crawls() {
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

// withhold reports whether a queue has reached its limit. If so, it pauses the host. When there is
// room again, it releases the host, unless an operator had paused it.
func (s *Server) withhold(key string) (spent bool, err error) {
	s.settings.pausing.Lock()
	defer s.settings.pausing.Unlock()
	l, f, host := s.settings.limit(key), s.svc.Frontier(), frontier.Host(key)
	if spent, err = s.isSpent(key, l.most); err != nil {
		return false, err
	}
	rule, _ := f.Rule(host)
	switch {
	case spent && rule.Paused != frontier.On: // it is noted first, or a crash might leave it paused for ever
		err = s.settings.change(s.life, key, func(l *limit) { l.held, l.was = true, rule.Paused })
		if err == nil {
			err = f.UpdateRule(host, func(r *frontier.Rule) { r.Paused = frontier.On })
		}
	case !spent && l.held:
		err = f.UpdateRule(host, func(r *frontier.Rule) {
			if r.Paused == frontier.On {
				r.Paused = l.was
			}
		})
		if err == nil {
			err = s.settings.change(s.life, key, func(l *limit) { l.held, l.was = false, frontier.Unset })
		}
	}
	return spent, err
}

// tryWithhold is withhold for callers that go on without it.
func (s *Server) tryWithhold(key string) bool {
	spent, err := s.withhold(key)
	if err != nil {
		s.log.Error("urlfrontier: a host is served, or not, in spite of its limit", "host", key, "error", err)
	}
	return spent
}

// noteSpent notes a key with a limit of which a URL was completed.
func (s *Server) noteSpent(key string, finished bool) {
	if finished && s.settings.limit(key).most > 0 {
		s.spent = append(s.spent, key)
	}
}

// withholdSpent withholds the queues that were noted and have reached their limits.
func (s *Server) withholdSpent() {
	slices.Sort(s.spent)
	for _, key := range slices.Compact(s.spent) {
		s.tryWithhold(key)
	}
	s.spent = s.spent[:0]
}

// withinLimits returns leases without those of hosts whose limits were used up by another API. Their URLs
// wait again, and the hosts are paused.
func (s *Server) withinLimits(leases []frontier.Lease) (within []frontier.Lease) {
	var over []frontier.Lease
	key, spent := "", false
	for _, l := range leases {
		if l.Host != key { // those of a host follow each other
			key = l.Host
			spent = s.settings.limit(key).most > 0 && s.tryWithhold(key)
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
