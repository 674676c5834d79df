// This file has an engine in memory that delays, loses and reorders what real ones may.

package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// shared is the state that all nodes see, in the order of its writes.
type shared struct {
	mu       sync.Mutex
	revision uint64
	table    map[string]Entry
	history  []Entry
	logs     map[int][]logRecord
	ends     map[int]uint64
	grown    chan struct{}
	down     bool // there is no quorum
}

type logRecord struct {
	number uint64
	data   []byte
}

func newShared() *shared {
	return &shared{table: map[string]Entry{}, logs: map[int][]logRecord{}, ends: map[int]uint64{}, grown: make(chan struct{})}
}

// wake lets all watches look again. The caller holds mu.
func (s *shared) wake() {
	close(s.grown)
	s.grown = make(chan struct{})
}

// set changes what becomes of calls.
func (s *shared) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.wake()
}

// fake is one node's way to it.
type fake struct {
	*shared
	rmu  sync.Mutex
	rand *rand.Rand
	slow time.Duration // a call takes up to that, before and after it has an effect
	lost float64       // share of answers that never come, and of questions
	cut  bool          // nothing arrives
	late time.Duration // a watch is late by up to that
}

var errTimeout = errors.New("engine: timed out")

func (f *fake) chance(p float64) bool {
	f.rmu.Lock()
	defer f.rmu.Unlock()
	return f.rand.Float64() < p
}

func (f *fake) upTo(d time.Duration) time.Duration {
	f.rmu.Lock()
	defer f.rmu.Unlock()
	return time.Duration(f.rand.Int64N(int64(d) + 1))
}

// call does one call, which may have no effect, or an effect and no answer.
func (f *fake) call(ctx context.Context, do func() error) error {
	wait := func(d time.Duration) error {
		if !pause(ctx, d) {
			return errTimeout
		}
		return nil
	}
	if err := wait(f.upTo(f.slow)); err != nil {
		if f.chance(0.5) { // it arrives all the same, later
			go func() {
				time.Sleep(f.upTo(2 * f.slow))
				f.mu.Lock()
				defer f.mu.Unlock()
				if !f.down && !f.cut {
					_ = do()
				}
			}()
		}
		return err
	}
	f.mu.Lock()
	lost := f.lost
	if f.down || f.cut || f.chance(lost) {
		f.mu.Unlock()
		<-ctx.Done()
		return errTimeout
	}
	err := do()
	f.mu.Unlock()
	if f.chance(lost) {
		<-ctx.Done()
		return errTimeout
	}
	if e := wait(f.upTo(f.slow)); e != nil {
		return e
	}
	return err
}

func (f *fake) Get(ctx context.Context, key string) (Entry, error) {
	var e Entry
	if err := f.call(ctx, func() error { e = f.table[key]; return nil }); err != nil {
		return Entry{}, err
	}
	return e, nil
}

func (f *fake) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	var now uint64
	err := f.call(ctx, func() error {
		if f.table[key].Revision != revision {
			return ErrConflict
		}
		f.revision++
		e := Entry{Key: key, Value: slices.Clone(value), Revision: f.revision}
		f.table[key], f.history, now = e, append(f.history, e), f.revision
		f.wake()
		return nil
	})
	if err != nil {
		return 0, err
	}
	return now, nil
}

func (f *fake) Watch(ctx context.Context, fn func([]Entry)) error {
	f.mu.Lock()
	var all []Entry
	for _, e := range f.table {
		all = append(all, e)
	}
	at := len(f.history)
	f.mu.Unlock()
	fn(all)
	for {
		f.mu.Lock()
		fresh, grown, lost := f.history[at:], f.grown, f.lost
		if f.down || f.cut {
			fresh = nil
		}
		at += len(fresh)
		f.mu.Unlock()
		if len(fresh) > 0 {
			if f.late > 0 {
				time.Sleep(f.upTo(f.late))
			}
			fresh = slices.Clone(fresh)
			for len(fresh) > 0 { // in any order
				i := int(f.upTo(time.Duration(len(fresh) - 1)))
				fn(fresh[i : i+1])
				fresh = slices.Delete(fresh, i, i+1)
				time.Sleep(f.upTo(50 * time.Millisecond))
			}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grown:
		}
		if f.chance(lost) {
			return errTimeout
		}
	}
}

func (f *fake) Append(ctx context.Context, p int, last uint64, data []byte) (uint64, error) {
	var now uint64
	err := f.call(ctx, func() error {
		if f.ends[p] != last {
			return ErrConflict
		}
		f.ends[p] = last + 1 + uint64(f.upTo(2))
		now = f.ends[p]
		f.logs[p] = append(f.logs[p], logRecord{now, slices.Clone(data)})
		return nil
	})
	if err != nil {
		return 0, err
	}
	return now, nil
}

func (f *fake) Last(ctx context.Context, p int) (uint64, []byte, error) {
	var number uint64
	var data []byte
	err := f.call(ctx, func() error {
		number = f.ends[p]
		if n := len(f.logs[p]); n > 0 {
			data = f.logs[p][n-1].data
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	return number, data, nil
}

func (f *fake) Read(ctx context.Context, p int, after, through uint64, fn func(uint64, []byte) error) error {
	var all []logRecord
	if err := f.call(ctx, func() error { all = slices.Clone(f.logs[p]); return nil }); err != nil {
		return err
	}
	for _, r := range all {
		if r.number > after && r.number <= through {
			if err := fn(r.number, r.data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fake) Purge(ctx context.Context, p int, through uint64) error {
	return f.call(ctx, func() error {
		f.logs[p] = slices.DeleteFunc(f.logs[p], func(r logRecord) bool { return r.number <= through })
		return nil
	})
}
