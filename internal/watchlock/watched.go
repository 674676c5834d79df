//go:build frontierholds

// Package watchlock provides a mutex that tests can watch: who locks it, and how long they hold it.
// It is for tests only: go test -tags frontierholds -run Holds .
package watchlock

import "sync"

// Mutex is a sync.Mutex with a Watcher.
type Mutex struct {
	sync.Mutex
	Watcher Watcher // set under the lock; may be nil
}

// Watcher is called when a Mutex is locked and before it is unlocked, while it is held.
type Watcher interface {
	Taken()
	Releasing()
}

// Lock is as of sync.Mutex.
func (m *Mutex) Lock() {
	m.Mutex.Lock()
	if m.Watcher != nil {
		m.Watcher.Taken()
	}
}

// TryLock is as of sync.Mutex.
func (m *Mutex) TryLock() bool {
	if !m.Mutex.TryLock() {
		return false
	}
	if m.Watcher != nil {
		m.Watcher.Taken()
	}
	return true
}

// Unlock is as of sync.Mutex.
func (m *Mutex) Unlock() {
	if m.Watcher != nil {
		m.Watcher.Releasing()
	}
	m.Mutex.Unlock()
}
