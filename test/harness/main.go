// Package harness is shared by the tests of a frontier: a world whose clock stands still, in memory
// or on a store with a disk in memory, with helpers that act on it and read its state.
package harness

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, and fails if they leave a goroutine behind.
func Main(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}
