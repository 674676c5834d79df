// This file reclaims disk space while the store is in use: a goroutine lets the engine collect obsolete
// data whenever the engine reports that there is enough. It depends on neither checkpoints nor callers.

package spill

import (
	"sync"
	"time"
)

const (
	// reclaimEvery is the minimum interval between collections.
	reclaimEvery = time.Second
	// reclaimAgain is the same after a fault.
	reclaimAgain = time.Minute
	// reclaimPause is how long the disk is left to others after each step. A step
	// reads 256 KB or writes 512 KB, and holds writers up for about a millisecond.
	reclaimPause = 5 * time.Millisecond
)

// reclaimer is that goroutine. The zero value does not run.
type reclaimer struct {
	wanted chan struct{} // holds a token when there may be work
	halt   chan struct{} // closed by stop
	ended  chan struct{} // closed when the goroutine is gone
	once   sync.Once
}

func (s *Store) startReclaimer() {
	r := &s.reclaimer
	r.wanted, r.halt, r.ended = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	if s.db.Wasteful() {
		r.wake()
	}
	go s.reclaimLoop()
}

// wake signals that there may be work.
func (r *reclaimer) wake() {
	select {
	case r.wanted <- struct{}{}:
	default:
	}
}

// stop ends the goroutine and waits until it has returned.
func (r *reclaimer) stop() {
	if r.halt == nil {
		return
	}
	r.once.Do(func() { close(r.halt) })
	<-r.ended
}

// wait returns false when the goroutine should end.
func (r *reclaimer) wait(d time.Duration) bool {
	select {
	case <-r.halt:
		return false
	case <-time.After(d):
		return true
	}
}

func (s *Store) reclaimLoop() {
	r := &s.reclaimer
	defer close(r.ended)
	for rest := reclaimEvery; r.wait(rest); {
		select {
		case <-r.halt:
			return
		case <-r.wanted:
		}
		rest = reclaimEvery
		if err := s.db.Reclaim(func() bool { return r.wait(reclaimPause) }); err != nil {
			s.opts.Logger.Warn("spill: reclaim space", "error", err)
			rest = reclaimAgain
		}
		if s.db.Wasteful() {
			r.wake() // for what could not be done yet
		}
	}
}
