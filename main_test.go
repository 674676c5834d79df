package frontier_test

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
