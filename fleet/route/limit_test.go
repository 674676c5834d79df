package route

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/transfer"
)

// fetched ends all leases that the parts hand out, and returns how many.
func (x *routed) fetched() (n int) {
	for {
		all := x.leases(`{"hosts":100,"max":100}`)
		for _, l := range all {
			x.ok("POST", fmt.Sprintf("/v1/leases/%s/done", l["lease"]), `{}`)
		}
		if n += len(all); len(all) == 0 {
			return n
		}
	}
}

// A limit of hosts at several parts is divided, and never exceeded. Who asks for it sees the whole.
func TestLimitsAreDivided(t *testing.T) {
	x := route(t, "a", "b", "c")
	for n := range 60 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://www.site%d.example/","crawl":"news"}`, n))
	}
	set := x.ok("PUT", "/v1/rules/*", `{"limits":{"served":10,"depth":7}}`)
	assert.Equal(t, 3.0, set["divided"])
	for _, answer := range []map[string]any{set, x.ok("GET", "/v1/rules/*", ""), x.ok("GET", "/v1/rules", "")["rules"].([]any)[0].(map[string]any)} {
		assert.Equal(t, 3.0, answer["divided"])
		assert.Equal(t, map[string]any{"served": 9.0, "depth": 7.0}, answer["rule"].(map[string]any)["limits"])
	}
	assert.Equal(t, 9, x.fetched())
	x.ok("POST", "/v1/do", `{"do":"limit","scope":"*","limits":{"served":15}}`)
	assert.Equal(t, 6, x.fetched())

	x.ok("DELETE", "/v1/rules/*", "")
	x.ok("PUT", "/v1/crawls/news", `{"limits":{"served":21}}`)
	assert.Equal(t, 21, x.fetched())
	assert.Equal(t, map[string]any{"served": 21.0}, x.ok("GET", "/v1/crawls/news", "")["rule"].(map[string]any)["limits"])
	one := x.ok("PUT", "/v1/rules/"+x.host("a", 0), `{"limits":{"served":1}}`)
	assert.NotContains(t, one, "divided")
	x.ok("PUT", "/v1/rules/*", `{"limits":{"served":0}}`)
}

// So are the limits of an import, and what was used of them.
func TestLimitsOfImportsAreDivided(t *testing.T) {
	one := filled(t, "x")
	one.ok("PUT", "/v1/rules/*", `{"limits":{"served":100}}`)
	for _, l := range one.leases(`{"hosts":20,"max":20}`) {
		one.ok("POST", fmt.Sprintf("/v1/leases/%s/done", l["lease"]), `{}`)
	}
	text := export(one)
	require.Contains(t, text, `{"used":"all"`)
	x := route(t, "a", "b", "c")
	x.ok("POST", "/v1/import", text)
	limits := x.ok("GET", "/v1/rules/*", "")["rule"].(map[string]any)["limits"]
	assert.Equal(t, map[string]any{"served": 99.0}, limits)
	used := 0
	for _, p := range x.parts {
		var b strings.Builder
		require.NoError(t, transfer.Export(t.Context(), p.f, &b, transfer.ExportOptions{}))
		_, counts, _ := strings.Cut(b.String(), `{"used":"all"`)
		_, counts, _ = strings.Cut(counts, `"served":`)
		n := 0
		_, err := fmt.Sscan(strings.TrimRight(counts[:3], "},\n"), &n)
		require.NoError(t, err)
		used += n
	}
	assert.GreaterOrEqual(t, used, 20)
	assert.LessOrEqual(t, 20+x.fetched(), 100)

	y := route(t, "x")
	y.ok("POST", "/v1/import", text)
	assert.Equal(t, map[string]any{"served": 100.0}, y.ok("GET", "/v1/rules/*", "")["rule"].(map[string]any)["limits"])
}
