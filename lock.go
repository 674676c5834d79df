//go:build !frontierholds

// This file is the frontier's lock as it is but in some tests: see lockholds.go.

package frontier

import "sync"

// mutex is the frontier's lock.
type mutex = sync.Mutex
