//go:build frontierholds

// Package watchlock provides a mutex that tests can watch: who locks it, and how long they hold it.
// It is for tests only: go test -tags frontierholds -run Holds ./test/load
package watchlock

import "sync"

// Mutex is a sync.Mutex that Watch watches.
type Mutex struct{ sync.Mutex }

// Watch watches all Mutexes; it may be nil. Set it while none of them is in use.
var Watch Watcher

// Watcher is called when a Mutex is locked and before it is unlocked, while it is held.
type Watcher interface {
	Taken()
	Releasing()
}

// Lock is as of sync.Mutex.
func (m *Mutex) Lock() {
	m.Mutex.Lock()
	if Watch != nil {
		Watch.Taken()
	}
}

// TryLock is as of sync.Mutex.
func (m *Mutex) TryLock() bool {
	if !m.Mutex.TryLock() {
		return false
	}
	if Watch != nil {
		Watch.Taken()
	}
	return true
}

// Unlock is as of sync.Mutex.
func (m *Mutex) Unlock() {
	if Watch != nil {
		Watch.Releasing()
	}
	m.Mutex.Unlock()
}
