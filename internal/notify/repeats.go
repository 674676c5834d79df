package notify

import "sync"

// Repeats records failures, so that a continuing failure is reported once.
//
// The zero value is empty. Safe for concurrent use.
type Repeats struct {
	mu     sync.Mutex
	latest map[string]int64 // by reason, the time of the latest failure, reported or not
}

// News records a failure and reports whether it is the first within the given time.
func (r *Repeats) News(reason string, now, quiet int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.latest[reason]
	if r.latest == nil {
		r.latest = map[string]int64{}
	}
	r.latest[reason] = now
	return !known || now-last >= quiet
}

// Over forgets a failure: the next one is news.
func (r *Repeats) Over(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.latest, reason)
}
