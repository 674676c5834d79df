// This file spreads the requests of all workers over time: Options.MaxRate.

package crawler

import (
	"context"
	"sync"
	"time"
)

// pace hands out time slots, each good for one request. A worker acquires one before it takes a
// lease, so that no leased host waits for it.
type pace struct {
	gap time.Duration // 0: no limit

	mu   sync.Mutex
	next time.Time // guarded by mu; the first slot that is free
}

func newPace(perSecond float64) *pace {
	if perSecond == 0 {
		return &pace{}
	}
	const most = 365 * 24 * time.Hour
	if gap := float64(time.Second) / perSecond; gap < float64(most) {
		return &pace{gap: max(1, time.Duration(gap))}
	}
	return &pace{gap: most}
}

// acquire waits for a slot. It returns false when ctx has ended.
func (p *pace) acquire(ctx context.Context) bool {
	if p.gap == 0 {
		return true
	}
	p.mu.Lock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	wait := p.next.Sub(now)
	p.next = p.next.Add(p.gap)
	p.mu.Unlock()
	if !await(ctx, wait, nil) {
		p.release()
		return false
	}
	return true
}

// release returns a slot in which nothing was sent.
func (p *pace) release() {
	if p.gap == 0 {
		return
	}
	p.mu.Lock()
	p.next = p.next.Add(-p.gap)
	p.mu.Unlock()
}
