//go:build !frontierholds

// Package watchlock provides a mutex that tests can watch: who locks it, and how long they hold it.
// Without the build tag frontierholds it is sync.Mutex and costs nothing.
package watchlock

import "sync"

// Mutex is a lock. With the build tag frontierholds Watch watches it.
type Mutex = sync.Mutex
