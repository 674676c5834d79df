package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/test/verbs"
)

// parts answer a router's requests in this process, by host and port.
type parts map[string]http.Handler

func (p parts) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p[r.URL.Host].ServeHTTP(w, r)
	return w.Result(), nil
}

// newRouted is a router before n served frontiers.
func newRouted(t *testing.T, o frontier.Options, n int) *wire {
	o = serve.Frontier(o)
	o.KeepOpen = false // so that the suite sees what is exhausted
	handlers, addresses := parts{}, map[string][]string{}
	var first *frontier.Frontier
	for i := range n {
		f := opened(t, o)
		if i == 0 {
			first = f
		}
		host := fmt.Sprintf("frontier.invalid:%d", i+1)
		handlers[host], addresses[fmt.Sprint("part", i)] = serverOf(t, f), []string{"http://" + host}
	}
	r, err := route.New(route.Options{Parts: addresses, Names: []string{"frontier.invalid"}, Transport: handlers})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return wireOf(t, first, r.Handler())
}

// TestRouted is the suite over HTTP, through a router.
func TestRouted(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("parts=%d", n), func(t *testing.T) {
			verbs.Run(t, func(t *testing.T, o frontier.Options) verbs.Frontier {
				return newRouted(t, o, n).client(t, client.Options{})
			})
		})
	}
}
