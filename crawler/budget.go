// This file counts pages against Options.MaxPages.

package crawler

import (
	"context"
	"sync"
)

// budget hands out tickets, each good for one page. A worker acquires one before it takes a lease,
// so that no more pages than allowed are fetched.
type budget struct {
	limited bool

	mu   sync.Mutex
	free int64         // guarded by mu; available tickets
	left int64         // guarded by mu; pages not yet fetched: free plus those held
	wake chan struct{} // guarded by mu; closed and replaced when free or left changes
}

func newBudget(pages int64) *budget {
	return &budget{limited: pages > 0, free: pages, left: pages, wake: make(chan struct{})}
}

// acquire waits for a ticket. It returns false when all pages are fetched or ctx has ended.
func (b *budget) acquire(ctx context.Context) bool {
	for b.limited {
		b.mu.Lock()
		if b.left == 0 {
			b.mu.Unlock()
			return false
		}
		if b.free > 0 {
			b.free--
			b.mu.Unlock()
			break
		}
		wake := b.wake
		b.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// release returns an unused ticket.
func (b *budget) release() { b.change(1, 0) }

// spend uses up a ticket for a page.
func (b *budget) spend() { b.change(0, -1) }

func (b *budget) change(free, left int64) {
	if !b.limited {
		return
	}
	b.mu.Lock()
	b.free += free
	b.left += left
	close(b.wake)
	b.wake = make(chan struct{})
	b.mu.Unlock()
}
