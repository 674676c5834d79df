//go:build frontierholds

// This file is the frontier's lock with somebody who watches how long it is held.
// It is for tests only: go test -tags frontierholds -run Holds .

package frontier

import "sync"

// mutex is a sync.Mutex that is watched.
type mutex struct {
	sync.Mutex
	watch lockWatch // set under the lock; nil: nobody watches
}

// lockWatch is told of a mutex, while it is held.
type lockWatch interface {
	taken()
	releasing()
}

func (m *mutex) Lock() {
	m.Mutex.Lock()
	if m.watch != nil {
		m.watch.taken()
	}
}

func (m *mutex) Unlock() {
	if m.watch != nil {
		m.watch.releasing()
	}
	m.Mutex.Unlock()
}
