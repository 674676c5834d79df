package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
)

// serverOf answers a Client's requests.
func serverOf(t *testing.T, f *frontier.Frontier) http.Handler {
	s, err := serve.New(f, serve.Options{Names: []string{"frontier.invalid"}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s.Handler()
}
