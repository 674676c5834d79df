// This file is how long calls waited.

package harness

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Waits are how long calls took.
type Waits struct {
	mu sync.Mutex
	d  []time.Duration
}

// Since notes a wait that began then.
func (w *Waits) Since(start time.Time) {
	d := time.Since(start)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.d = append(w.d, d)
}

// String names the longest waits.
func (w *Waits) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.d) == 0 {
		return "none"
	}
	slices.Sort(w.d)
	at := func(q float64) time.Duration { return w.d[int(q*float64(len(w.d)-1))] }
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, most %v of %d", at(0.5), at(0.99), at(0.999), at(1), len(w.d))
}
