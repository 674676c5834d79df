// Package durability kills, fails, fills and cuts the power, and looks at what is left.
package durability

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
