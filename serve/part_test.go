package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A server whose address is given to routers for another part hands out and takes in nothing for it.
func TestAServerIsOnePart(t *testing.T) {
	x := serve(t, Options{})
	x.ok("GET", "/v1/stats", "", PartHeader, "b/1")
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`, PartHeader, "a/1")
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/2"}`)
	x.ok("GET", "/v1/stats", "", PartHeader, "a/1")
	for _, other := range []string{"b/1", "a/2"} {
		assert.Contains(t, x.problem(409, "other-part", "POST", "/v1/urls", `{"url":"http://b.example/"}`, PartHeader, other), "takes this server for "+other+", and it is a/1")
		x.problem(409, "other-part", "POST", "/v1/leases", `{}`, PartHeader, other)
		x.problem(409, "other-part", "GET", "/v1/stats", "", PartHeader, other)
	}
	_, export := x.ask("GET", "/v1/export", "")
	y := serve(t, Options{})
	y.ok("POST", "/v1/import", export)
	y.problem(409, "other-part", "POST", "/v1/leases", `{}`, PartHeader, "b/1")
	y.ok("POST", "/v1/leases", `{}`, PartHeader, "a/1")
	z := serve(t, Options{})
	z.ok("POST", "/v1/leases", `{}`, PartHeader, "b/1")
	assert.Contains(t, z.problem(400, "bad-request", "POST", "/v1/import", export), "it is an export of a/1, and this server is b/1")
	assert.Zero(t, z.s.Frontier().Stats().Known)
}
