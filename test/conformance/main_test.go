// Package conformance holds a frontier to what its calls promise.
package conformance

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
