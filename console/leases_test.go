package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// Only who has entered sees leases on the page, because an ID ends its lease, and ends them there.
func TestThePageListsAndEndsLeases(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Check()); assert.NoError(t, f.Close()) })
	var asked []LeaseQuery
	c, err := New(f, Options{
		Token: "secret",
		Leases: func(q LeaseQuery) LeaseList {
			asked = append(asked, q)
			return LeaseList{Leases: []Lease{{Lease: "ID-1", Client: "<bot>", Host: "a.example", URL: "http://a.example/", Since: time.Now(), Until: time.Now().Add(time.Hour), Earlier: true}}, Total: 3}
		},
		EndLeases: func(q LeaseQuery) (int, error) { asked = append(asked, q); return 2, nil },
	})
	require.NoError(t, err)
	defer c.Close()
	ask := func(method, path string, form url.Values, entered bool) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if entered {
			r.AddCookie(c.cookie())
		}
		w := httptest.NewRecorder()
		c.Page().ServeHTTP(w, r)
		return w
	}
	assert.Equal(t, http.StatusUnauthorized, ask("GET", "/leases", nil, false).Code)
	assert.Equal(t, http.StatusUnauthorized, ask("GET", "/api/leases", nil, true).Code, "programs show the token")
	assert.Empty(t, asked)
	page := ask("GET", "/leases?client=bot&scope=*.example", nil, true)
	assert.Equal(t, http.StatusOK, page.Code)
	for _, want := range []string{"&lt;bot&gt;", "http://a.example/", `value="ID-1"`, "2 leases more", "of an earlier server", `href="./leases"`} {
		assert.Contains(t, page.Body.String(), want)
	}
	assert.Equal(t, []LeaseQuery{{Client: "bot", Scope: scope.Domain("example"), N: 100}}, asked)
	done := ask("POST", "/do", url.Values{"do": {"end-leases"}, "client": {"bot"}, "scope": {"a.example"}, "back": {"leases"}}, true)
	assert.Equal(t, http.StatusSeeOther, done.Code)
	assert.Equal(t, LeaseQuery{Client: "bot", Scope: scope.Host("a.example")}, asked[len(asked)-1])
	assert.NotContains(t, ask("GET", "/hosts", nil, false).Body.String(), `href="./leases"`)
}
