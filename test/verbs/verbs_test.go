package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/test/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ verbs.Leases  = inspect.Frontier{}
	_ verbs.Loops   = inspect.Frontier{}
	_ verbs.Stander = inspect.Frontier{}
)

func TestEmbedded(t *testing.T) {
	verbs.Run(t, func(t *testing.T, o frontier.Options) verbs.Frontier {
		f, err := frontier.Open(t.Context(), o)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, f.Check())
			assert.NoError(t, f.Close())
		})
		return inspect.Frontier{Frontier: f, Inspector: inspect.New(f)}
	})
}
