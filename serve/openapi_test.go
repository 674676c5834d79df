// This file tests that openapi.json describes what is answered.

package serve

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet"
)

type object = map[string]any

func described(t *testing.T) object {
	var doc object
	require.NoError(t, json.Unmarshal(openAPI, &doc))
	return doc
}

// walk calls see for each object of a document.
func walk(x any, at string, see func(at string, x object)) {
	switch x := x.(type) {
	case object:
		see(at, x)
		for name, v := range x {
			walk(v, at+"/"+name, see)
		}
	case []any:
		for i, v := range x {
			walk(v, fmt.Sprint(at, "/", i), see)
		}
	}
}

// fits returns what is wrong with x, as an instance of a schema in the subset that
// openapi.json uses.
func fits(doc, schema object, x any, at string) (errs []string) {
	bad := func(format string, args ...any) { errs = append(errs, at+": "+fmt.Sprintf(format, args...)) }
	for name := range schema {
		if !slices.Contains([]string{"$ref", "anyOf", "type", "properties", "required", "additionalProperties", "items", "enum", "format", "minimum", "maximum", "maxLength"}, name) {
			bad("the schema has %s, which this test does not know", name)
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		s, ok := doc["components"].(object)["schemas"].(object)[strings.TrimPrefix(ref, "#/components/schemas/")].(object)
		if !ok {
			return []string{at + ": there is no " + ref}
		}
		return fits(doc, s, x, at)
	}
	if any, ok := schema["anyOf"].([]any); ok {
		for _, s := range any {
			if len(fits(doc, s.(object), x, at)) == 0 {
				return nil
			}
		}
		bad("fits none of anyOf")
	}
	types, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		types = []any{one}
	}
	is := "null"
	switch v := x.(type) {
	case string:
		is = "string"
		if e, ok := schema["enum"].([]any); ok && !slices.Contains(e, x) {
			bad("%q is not in the enum", v)
		}
		if schema["format"] == "date-time" {
			if _, err := time.Parse(time.RFC3339Nano, v); err != nil {
				bad("%v", err)
			}
		}
		if n, ok := schema["maxLength"].(float64); ok && len(v) > int(n) {
			bad("too long")
		}
	case bool:
		is = "boolean"
	case float64:
		if is = "number"; v == math.Trunc(v) && slices.Contains(types, any("integer")) {
			is = "integer"
		}
		if n, ok := schema["minimum"].(float64); ok && v < n {
			bad("%v is too small", v)
		}
		if n, ok := schema["maximum"].(float64); ok && v > n {
			bad("%v is too large", v)
		}
	case []any:
		is = "array"
		for i, e := range v {
			errs = append(errs, fits(doc, schema["items"].(object), e, fmt.Sprint(at, "/", i))...)
		}
	case object:
		is = "object"
		properties, _ := schema["properties"].(object)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				bad("%s is missing", name)
			}
		}
		for name, e := range v {
			if s, ok := properties[name].(object); ok {
				errs = append(errs, fits(doc, s, e, at+"/"+name)...)
			} else if s, ok := schema["additionalProperties"].(object); ok {
				errs = append(errs, fits(doc, s, e, at+"/"+name)...)
			} else if schema["additionalProperties"] == false {
				bad("%s is unknown", name)
			}
		}
	}
	if len(types) > 0 && !slices.Contains(types, any(is)) {
		bad("it is of type %s; want %v", is, types)
	}
	return errs
}

func TestEachRouteIsDescribed(t *testing.T) {
	doc := described(t)
	ids := map[string]bool{}
	var described, answered []string
	for path, ops := range doc["paths"].(object) {
		for method, op := range ops.(object) {
			parameters, _ := op.(object)["parameters"].([]any)
			query := ""
			for _, p := range parameters {
				if p.(object)["in"] == "query" {
					query += " " + p.(object)["name"].(string)
				}
			}
			id, _ := op.(object)["operationId"].(string)
			assert.Regexp(t, "^[a-z]+[A-Za-z]*$", id, "%s %s: generators make the name of a method of it", method, path)
			assert.NotContains(t, ids, id)
			ids[id] = true
			described = append(described, strings.ToUpper(method)+" "+path+" "+op.(object)["x-role"].(string)+query)
		}
	}
	for _, r := range routes {
		query := " " + r.query
		if r.query == "" || r.query == anyQuery {
			query = ""
		}
		answered = append(answered, r.method+" "+r.path+" "+r.role.String()+query)
	}
	slices.Sort(described)
	slices.Sort(answered)
	assert.Equal(t, answered, described)
}

func TestExamplesFit(t *testing.T) {
	doc := described(t)
	n := 0
	walk(doc, "", func(at string, x object) {
		if ref, ok := x["$ref"].(string); ok && strings.HasPrefix(ref, "#/components/schemas/") {
			assert.Contains(t, doc["components"].(object)["schemas"], strings.TrimPrefix(ref, "#/components/schemas/"), at)
		}
		if example, ok := x["example"]; ok {
			assert.Empty(t, fits(doc, x["schema"].(object), example, at))
			n++
		}
	})
	assert.Greater(t, n, 30)
	assert.NotEmpty(t, fits(doc, object{"$ref": "#/components/schemas/Entry"}, object{"url": 1.0, "odd": true}, ""))
}

// stated is a machine that answers operators.
type stated struct{}

func (stated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	state := fleet.State{Nodes: []fleet.NodeState{{Clock: &fleet.Clock{Ahead: -1}}}, Partitions: []fleet.PartitionState{{State: "open", Log: &fleet.LogState{}, Copy: &fleet.CopyState{Nodes: []string{"a"}}}}}
	_ = json.NewEncoder(w).Encode(state)
}

// The state of a fleet is described, and a server alone does not have one.
func TestAFleetIsDescribed(t *testing.T) {
	x := serve(t, Options{Fleet: stated{}})
	doc := described(t)
	assert.Empty(t, fits(doc, object{"$ref": "#/components/schemas/Fleet"}, x.ok("GET", "/v1/fleet", ""), ""))
	serve(t, Options{}).problem(http.StatusNotFound, "not-found", "GET", "/v1/fleet", "")
}

// Without a Service, who may look is the same.
func TestWhoMayLook(t *testing.T) {
	may := func(o Options, host, authorization string) bool {
		r := httptest.NewRequest("GET", "http://"+host+"/v1/fleet", nil)
		r.Header.Set("Authorization", authorization)
		return o.MayLook(r)
	}
	assert.True(t, may(Options{}, "localhost", ""))
	assert.False(t, may(Options{}, "a.example", ""), "a name that another may have given this machine")
	tokens, err := ReadTokens(strings.NewReader("look " + fmt.Sprintf("%x", sha256.Sum256([]byte("secret"))) + " one"))
	require.NoError(t, err)
	assert.True(t, may(Options{Tokens: tokens}, "a.example", "Bearer secret"))
	assert.False(t, may(Options{Tokens: tokens}, "localhost", ""))
}

// What the service answers, and takes, is what is described.
func TestAnswersFit(t *testing.T) {
	x := serve(t, Options{})
	doc := described(t)
	check := func(schema string, answer object) {
		t.Helper()
		assert.Empty(t, fits(doc, object{"$ref": "#/components/schemas/" + schema}, answer, schema))
	}
	x.ok("POST", "/v1/urls", `{"url":"http://b.example/","force":true,"weight":1,"depth":3}`)
	check("Summary", x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news","depth":1,"priority":9,"meta":{"k":["v"]},"id":"7"}`))
	check("URLStatus", x.ok("GET", "/v1/urls?crawl=news&url=http://a.example/", ""))
	check("Crawl", x.ok("GET", "/v1/crawls/news", ""))
	check("ScopeRule", x.ok("PUT", "/v1/rules/a.example", `{"delay":{"fixed":"0s"},"concurrency":2}`))
	m := x.ok("POST", "/v1/leases", `{"hosts":10,"per_host":1,"max":100,"crawls":["news"],"host":null,"lease_s":60,"wait_s":20}`)
	check("Leases", m)
	id := m["leases"].([]any)[0].(object)["lease"].(string)
	check("Ended", x.ok("POST", "/v1/leases/"+id+"/done", `{"result":"failed","failure":"server","add":[{"url":"http://a.example/b"},{}]}`))
	check("Leases", x.ok("POST", "/v1/leases", `{"crawls":["news"],"wait_s":20}`))
	check("HeldList", x.ok("GET", "/v1/leases", ""))
	check("EndedLeases", x.ok("DELETE", "/v1/leases?scope=*", ""))
	_, text := x.ask("POST", "/v1/leases/"+id+"/done", `{}`)
	var p object
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	check("Problem", p)
}
