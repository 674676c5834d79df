// This file deletes what a checkpoint made obsolete.
//
// It may be interrupted at any point: Recover repeats the deletions.

package spill

import (
	"errors"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// tidyPause is how long the background leaves the disk to others between steps.
const tidyPause = time.Millisecond

var errStopped = errors.New("stopped")

// tidyJob is the work that remains after a checkpoint.
type tidyJob struct {
	through uint64   // log up to there is superfluous
	upTo    uint32   // no log key lies in a generation above
	old     [][]byte // superseded keys
}

// tidier runs one job at a time in the background.
type tidier struct {
	mu      sync.Mutex
	job     *tidyJob      // guarded by mu; next one
	running bool          // guarded by mu
	done    chan struct{} // guarded by mu; closed when running ends
	halt    chan struct{} // closed by stop
	once    sync.Once
}

// stop ends the background work permanently and waits until it has ended.
func (t *tidier) stop() {
	t.once.Do(func() { close(t.halt) })
	t.wait()
}

// wait returns when nothing is running.
func (t *tidier) wait() {
	t.mu.Lock()
	running, done := t.running, t.done
	t.mu.Unlock()
	if running {
		<-done
	}
}

// pause returns false when the work should end.
func (t *tidier) pause() bool {
	select {
	case <-t.halt:
		return false
	case <-time.After(tidyPause):
		return true
	}
}

// tidy does job, in the background if there is one.
func (s *Store) tidy(job tidyJob) {
	if s.tidyNow {
		s.doTidy(job)
		return
	}
	t := &s.tidier
	t.mu.Lock()
	defer t.mu.Unlock()
	if halted(t.halt) {
		return
	}
	if t.job != nil {
		job.old = append(job.old, t.job.old...)
	}
	t.job = &job
	if t.running {
		return
	}
	t.running, t.done = true, make(chan struct{})
	go s.tidyLoop()
}

func (s *Store) tidyLoop() {
	t := &s.tidier
	for {
		t.mu.Lock()
		job := t.job
		t.job = nil
		if job == nil || halted(t.halt) {
			t.running = false
			close(t.done)
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		s.doTidy(*job)
	}
}

func (s *Store) doTidy(job tidyJob) {
	// What replaces the log must be on the medium before it goes.
	err := s.db.Sync()
	if err == nil {
		err = s.deleteLog(job)
	}
	if err == nil {
		var b kv.Batch
		for _, k := range job.old {
			b.Delete(k)
		}
		err = s.putChunks(&b, false)
	}
	if err == nil && s.tidyNow {
		err = s.db.Reclaim(func() bool { return true })
	}
	if err != nil && err != errStopped {
		s.opts.Logger.Warn("spill: delete obsolete data", "error", err)
	}
}

// deleteLog deletes the log up to job.through, generation by generation, and
// raises the floor behind it.
func (s *Store) deleteLog(job tidyJob) error {
	s.mu.Lock()
	gen := s.floor
	s.mu.Unlock()
	raise := true // no log is left in the generations so far
	for ; gen <= job.upTo; gen++ {
		from := keys.Prefix(gen, keys.KindLog)
		for {
			var b kv.Batch
			more, left := false, false
			err := s.db.Iterate(from, keys.After(gen, keys.KindLog), func(key []byte, _ func() ([]byte, error)) error {
				if id, _, ok := keys.LogName(key); !ok || id > job.through {
					left = true
					return kv.ErrStop
				}
				if more = len(b.Ops) == chunkOps; more {
					from = append([]byte(nil), key...) // never iterate over deleted keys again
					return kv.ErrStop
				}
				b.Delete(append([]byte(nil), key...))
				return nil
			})
			if err != nil && err != kv.ErrStop {
				return err
			}
			if err := s.putFitting(&b, false); err != nil {
				return err
			}
			if raise = raise && !left; more {
				if !s.tidyNow && !s.tidier.pause() {
					return errStopped
				}
				continue
			}
			break
		}
		// The last generation is still being filled: log is written there.
		if raise && gen < job.upTo {
			s.mu.Lock()
			s.floor = max(s.floor, gen+1)
			s.mu.Unlock()
		}
	}
	return nil
}
