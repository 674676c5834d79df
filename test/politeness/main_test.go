// Package politeness looks at when hosts are contacted, and in which order.
package politeness

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
