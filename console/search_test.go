// This file tests that a search finds all that there is, in however many parts.

package console_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// many adds hosts hN.dM.example, M from 0 to 6, and pauses those of d3.
func (w *world) many(t *testing.T, n int) {
	t.Helper()
	var es []frontier.Entry
	for i := range n {
		es = append(es, frontier.Entry{URL: fmt.Sprintf("http://h%d.d%d.example/", i, i%7)})
	}
	_, err := w.f.Add(t.Context(), es...)
	require.NoError(t, err)
	require.NoError(t, w.f.Pause(scope.Domain("d3.example")))
}

// A request that has no time looks at a few hosts; those that follow find the rest.
func TestASearchInParts(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.many(t, 2000)
	w.c.LookFor(0)
	c := console.Direct(w.c)
	for name, x := range map[string]struct {
		q    console.HostsQuery
		want func(i int) bool
	}{
		"all":            {console.HostsQuery{N: 1000}, func(int) bool { return true }},
		"by name":        {console.HostsQuery{Match: "H77"}, func(i int) bool { return i == 77 || i >= 770 && i < 780 }},
		"by reason":      {console.HostsQuery{Reason: "paused", Match: "h1"}, func(i int) bool { return i%7 == 3 && fmt.Sprint(i)[0] == '1' }},
		"reason alone":   {console.HostsQuery{Reason: "paused"}, func(i int) bool { return i%7 == 3 }},
		"in a domain":    {console.HostsQuery{Scope: "*.d2.example", Match: "9"}, func(i int) bool { return i%7 == 2 && contains9(i) }},
		"without result": {console.HostsQuery{Match: "nowhere"}, func(int) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := map[string]bool{}, map[string]bool{}
			for i := range 2000 {
				if x.want(i) {
					want[fmt.Sprintf("h%d.d%d.example", i, i%7)] = true
				}
			}
			parts := 0
			for q := x.q; ; parts++ {
				l, err := c.Hosts(t.Context(), q)
				require.NoError(t, err)
				for _, h := range l.Hosts {
					assert.False(t, got[h.Host], "%s is told twice", h.Host)
					got[h.Host] = true
				}
				if q.After = l.Next; l.Next == "" {
					break
				}
			}
			assert.Equal(t, want, got)
			if x.q.Scope == "" {
				assert.Greater(t, parts, 10)
			}
		})
	}
	page := ask(w.c.Page(), "GET", "/hosts?match=nowhere", "", "").Body.String()
	assert.Regexp(t, `None so far.*<a rel="next" href="\?after=[^"]*match=nowhere" data-on>Look further</a>`, page)
}

func contains9(i int) bool {
	for ; i > 0; i /= 10 {
		if i%10 == 9 {
			return true
		}
	}
	return false
}

// While many hosts are being put in order a list is empty and says so; then it is whole,
// and a Client waits for that.
func TestManyHostsArePutInOrder(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.many(t, 6000)
	w.c.LookFor(0)
	for _, path := range []string{"/api/hosts", "/api/urls"} {
		for prepared := false; !prepared; {
			rec := ask(w.c.Page(), "GET", path, "", "")
			require.Equal(t, 200, rec.Code)
			var l struct {
				Hosts, URLs []any
				Next        string
				Preparing   bool
			}
			require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &l))
			prepared = !l.Preparing
			if n := len(l.Hosts) + len(l.URLs); prepared {
				assert.NotZero(t, n)
				assert.NotEmpty(t, l.Next)
			} else {
				assert.Zero(t, n)
				assert.Empty(t, l.Next)
				page := httptest.NewRecorder()
				w.c.Page().ServeHTTP(page, overLoopback(httptest.NewRequest("GET", "http://localhost/hosts?"+url.Values{"n": {"1"}}.Encode(), nil)))
				assert.Equal(t, 200, page.Code)
			}
		}
	}
	l, err := console.Direct(w.c).URLs(t.Context(), "*.d3.example", "", 1000)
	require.NoError(t, err)
	assert.Len(t, l.URLs, 6000/7)
}

// The largest hosts are those of the scope, too.
func TestTheLargestHostsOfAScope(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.many(t, 70)
	c := console.Direct(w.c)
	for scope, n := range map[string]int{"": 70, "*": 70, "*.d2.example": 10, "h2.d2.example": 1, "none.example": 0} {
		got, err := c.Hosts(t.Context(), console.HostsQuery{Scope: scope, Sort: "waiting"})
		require.NoError(t, err)
		assert.Len(t, got.Hosts, n, scope)
	}
}
