// This file tests what an operator does to a host's standing, and sees of it.

package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
)

func TestStanding(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1", "http://a.example/2")
	c := console.Direct(w.c)
	do := func(scope string, n int) string {
		t.Helper()
		r, err := c.Do(t.Context(), console.Action{Do: "standing", Scope: scope, N: n})
		require.NoError(t, err)
		return r.Said
	}
	standing := func() (listed, described, priority int) {
		t.Helper()
		l, err := c.Hosts(t.Context(), console.HostsQuery{})
		require.NoError(t, err)
		h, err := c.Host(t.Context(), "a.example")
		require.NoError(t, err)
		return l.Hosts[0].Standing, h.Standing, h.Queues[0].Priority
	}
	assert.Equal(t, "a.example is 3 levels down: 1 host, 2 URLs now", do("A.example", -3))
	listed, described, priority := standing()
	assert.Equal(t, []int{-3, -3, 5}, []int{listed, described, priority})
	assert.Equal(t, "b.example is 1 level up: 1 host, 0 URLs now", do("b.example", 1))
	assert.Equal(t, "a.example is neither up nor down: 1 host, 2 URLs now", do("a.example", 0))
	listed, described, priority = standing()
	assert.Equal(t, []int{0, 0, 8}, []int{listed, described, priority})

	require.NoError(t, w.f.UpdateRule(frontier.Domain("example"), func(r *frontier.Rule) { r.Priority = 6 }))
	assert.Contains(t, do("a.example", -3), "but a rule about its priorities wins")
	_, _, priority = standing()
	assert.Equal(t, 6, priority)
}

// The page of a host shows its standing, and its form moves the host.
func TestStandingOnThePage(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1")
	server := httptest.NewServer(w.c.Page())
	t.Cleanup(server.Close)
	page := func(r *http.Response, err error) string {
		t.Helper()
		require.NoError(t, err)
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return string(b)
	}
	const at = "host?name=a.example"
	assert.NotContains(t, page(http.Get(server.URL+"/"+at)), "<dt>standing</dt>")
	form := url.Values{"do": {"standing"}, "scope": {"a.example"}, "n": {"-2"}, "back": {at}, "token": {w.c.Token()}}
	said := page(http.PostForm(server.URL+"/do", form))
	assert.Contains(t, said, "a.example is 2 levels down")
	assert.Contains(t, said, "<dt>standing</dt><dd>2 levels down</dd>")
	assert.Contains(t, said, `name="n" value="-2"`)
}
