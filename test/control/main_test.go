// Package control holds, limits, forgets and lists.
package control

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
