//go:build frontierholds

// Package watchlock has a mutex that tests can watch: who takes it, and how long they
// hold it. It is for tests only: go test -tags frontierholds -run Holds .
package watchlock

import "sync"

// Mutex is a sync.Mutex with a Watcher.
type Mutex struct {
	sync.Mutex
	Watcher Watcher // set under the lock; may be nil
}

// Watcher sees a Mutex taken and released. Both calls come while it is held.
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

// Unlock is as of sync.Mutex.
func (m *Mutex) Unlock() {
	if m.Watcher != nil {
		m.Watcher.Releasing()
	}
	m.Mutex.Unlock()
}
