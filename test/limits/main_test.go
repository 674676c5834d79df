// Package limits tests how much a host, a domain, a crawl or a whole frontier may serve, fetch, fail
// and hold.
package limits

import (
	"testing"

	"github.com/seed-7440039f/frontier/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
