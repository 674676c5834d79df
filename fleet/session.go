// This file keeps a node's session: the right to own partitions, which ends by itself unless it is renewed.
//
// The right lasts TTL from the beginning of the last renewal that the engine confirmed, less a margin.
// Another node ends the session when it has seen no renewal for a tenth more than TTL, by replacing the
// entry at the very revision that it saw: if a renewal came in between, nothing happens. Absence proves
// nothing; only an entry that says so is dead, and a dead session never comes back.

package fleet

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// session is one life of a node. Its methods may be called from any goroutine.
type session struct {
	node    string
	name    string // the node's, a slash, and what no other session has
	engine  Engine
	elapsed func() time.Duration
	ttl     time.Duration
	ended   context.Context // ends when the session is dead
	end     context.CancelCauseFunc

	writing slot // one write of the entry at a time

	mu       sync.Mutex
	row      sessionRow    // guarded by mu
	revision uint64        // guarded by mu
	until    time.Duration // guarded by mu; when the right ends
	clean    time.Duration // guarded by mu; since when no renewal was late
}

var errSessionDead = errors.New("fleet: this node's session was ended by another, which had not heard of it")

// begin creates a session, once the one before of the same node is dead: at the latest when it was not
// renewed for long enough.
func begin(ctx context.Context, engine Engine, row sessionRow, ttl time.Duration, elapsed func() time.Duration) (*session, error) {
	s := &session{node: row.Node, engine: engine, elapsed: elapsed, ttl: ttl, writing: newSlot()}
	s.name = row.Node + "/" + rand.Text()[:10]
	row.Session = s.name
	s.row = row
	s.ended, s.end = context.WithCancelCause(context.Background())
	s.clean = elapsed()
	for last, at, changes := uint64(0), elapsed(), 0; ; {
		e, err := engine.Get(ctx, nodeKey+row.Node)
		var before sessionRow
		switch {
		case err != nil:
		case e.Revision == 0 || json.Unmarshal(e.Value, &before) == nil && (before.Dead || before.Session == s.name):
			if s.ended.Err() != nil || before.Dead && before.Session == s.name { // it began unnoticed, and another node has ended it
				return begin(ctx, engine, row, ttl, elapsed)
			}
			s.revision = e.Revision
			if err = s.write(ctx, func(*sessionRow) {}); err == nil {
				return s, nil
			}
		case changes > 3: // writes of a process that died may still arrive, but few
			return nil, fmt.Errorf("fleet: node %s is running at %s: it renews its session", row.Node, before.Address)
		case e.Revision != last:
			last, at, changes = e.Revision, elapsed(), changes+1
		case elapsed()-at > deadAfter(ttl):
			err = s.kill(ctx, member{sessionRow: before, revision: e.Revision})
		}
		if !pause(ctx, rest) {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// deadAfter is how long a session must be quiet before another node may end it.
func deadAfter(ttl time.Duration) time.Duration { return ttl + ttl/10 }

// write renews the session, with what change makes of its entry.
func (s *session) write(ctx context.Context, change func(*sessionRow)) error {
	s.writing.take()
	defer s.writing.release()
	if s.ended.Err() != nil {
		return context.Cause(s.ended)
	}
	s.mu.Lock()
	row, revision := s.row, s.revision
	s.mu.Unlock()
	change(&row)
	row.Count++
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	began := s.elapsed()
	revision, err = s.engine.Put(ctx, nodeKey+s.node, value, revision)
	if errors.Is(err, ErrConflict) {
		return s.reread(ctx)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.elapsed()
	if now-began > s.ttl/2 || began > s.until { // others may have been kept from the engine as well
		s.clean = now
	}
	s.row, s.revision, s.until = row, revision, began+s.ttl-s.ttl/15
	if row.Dead {
		s.end(errors.New("fleet: left"))
	}
	return nil
}

// reread finds out why the entry has another revision: a write of our own whose outcome was unknown, or
// the end.
func (s *session) reread(ctx context.Context) error {
	e, err := s.engine.Get(ctx, nodeKey+s.node)
	if err != nil {
		return err
	}
	var row sessionRow
	if e.Revision == 0 || json.Unmarshal(e.Value, &row) != nil || row.Dead || row.Session != s.name {
		s.end(errSessionDead)
		return errSessionDead
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row, s.revision = row, e.Revision
	return errors.New("fleet: renewal unknown, and tried again")
}

// run renews the session until it or ctx ends.
func (s *session) run(ctx context.Context) {
	for s.ended.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, s.ttl/3)
		err := s.write(attempt, func(*sessionRow) {})
		cancel()
		next := s.ttl / 4
		if err != nil {
			next = rest
		}
		if !pause(ctx, next) {
			return
		}
	}
}

// right returns when the right ends, by the node's clock, and whether it has not ended yet.
func (s *session) right() (until time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until, s.elapsed() < s.until && s.ended.Err() == nil
}

// quietSince returns since when a member has not been heard of although it could have been.
func (s *session) quietSince(m member) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(m.at, s.clean)
}

// kill ends another's session, unless it was renewed since it was seen.
func (s *session) kill(ctx context.Context, m member) error {
	m.Dead = true
	value, err := json.Marshal(m.sessionRow)
	if err == nil {
		_, err = s.engine.Put(ctx, nodeKey+m.Node, value, m.revision)
	}
	return err
}

// slot is a lock that is held while the engine is waited for.
type slot chan struct{}

func newSlot() slot     { return make(slot, 1) }
func (s slot) take()    { s <- struct{}{} }
func (s slot) release() { <-s }

// pause waits for d, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
