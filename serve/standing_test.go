package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An operator moves a host, under any spelling of its name, and a client that crawls does not.
func TestStandingOfAHost(t *testing.T) {
	x := serve(t, Options{Tokens: tokensOf(t, "crawl bot", "operate op")})
	x.head.Set("Authorization", "Bearer t-op")
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	move := func(n string) string { return `{"do":"standing","scope":"A.example"` + n + `}` }
	x.problem(403, "forbidden", "POST", "/v1/do", move(`,"n":-3`), "Authorization", "Bearer t-bot")
	assert.NotContains(t, x.ok("GET", "/v1/hosts/a.example", ""), "standing")
	for range 2 { // again is the same
		x.ok("POST", "/v1/do", move(`,"n":-3`))
		assert.EqualValues(t, -3, x.ok("GET", "/v1/hosts/a.example", "")["standing"])
		assert.Len(t, x.ok("GET", "/v1/hosts?sunk=true", "")["hosts"], 1)
	}
	x.problem(400, "bad-request", "POST", "/v1/do", move(`,"n":-16`))
	x.problem(400, "bad-request", "POST", "/v1/do", move(`,"n":"low"`))
	x.problem(400, "bad-request", "POST", "/v1/do", move(`,"levels":-1`))
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"standing","scope":"*","n":1}`)
	assert.EqualValues(t, Discovered-3, x.lease()["priority"])
	x.ok("POST", "/v1/do", move(""))
	assert.Empty(t, x.ok("GET", "/v1/hosts?sunk=true", "")["hosts"])
	x.problem(400, "bad-request", "GET", "/v1/hosts?sunk=deep", "")
	assert.NotContains(t, x.ok("GET", "/v1/hosts/a.example", ""), "standing")
}
