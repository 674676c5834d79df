package kv

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/seed-7440039f/frontier/spill/internal/kv.(*Badger).lost"))
}
