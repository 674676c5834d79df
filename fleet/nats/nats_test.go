package nats

import (
	"testing"

	"github.com/seed-7440039f/frontier/fleet/enginetest"
)

func TestEngine(t *testing.T) { enginetest.Test(t, enginetest.StartOf(Start)) }
