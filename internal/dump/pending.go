package dump

import (
	"cmp"
	"sync"
)

const pendingMax = 1024 // commits of an import in progress

// Pending counts the commits of an import that are in progress, and keeps their first error. The
// zero value has none. Commits may end in any goroutine; one goroutine starts them and waits.
type Pending struct {
	slots chan struct{}
	ended sync.WaitGroup
	mu    sync.Mutex
	err   error // guarded by mu; the first
}

// Begin waits until few others are in progress, and returns a function to be called with the result
// when the commit has ended.
func (p *Pending) Begin() func(error) {
	if p.slots == nil {
		p.slots = make(chan struct{}, pendingMax)
	}
	p.slots <- struct{}{}
	p.ended.Add(1)
	return func(err error) {
		p.mu.Lock()
		p.err = cmp.Or(p.err, err)
		p.mu.Unlock()
		<-p.slots
		p.ended.Done()
	}
}

// Wait waits until all have ended, and returns the first error.
func (p *Pending) Wait() error {
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
