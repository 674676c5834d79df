// This file compares the reading of URLs and ends with encoding/json.

package serve

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/jsonl"
)

// kinds says of each member whether a value, which is not null, is of its type.
type kinds map[string]func(x any) bool

func isText(x any) bool { _, ok := x.(string); return ok }

func isBool(x any) bool { _, ok := x.(bool); return ok }

func isInt(x any) bool {
	n, ok := x.(json.Number)
	_, err := strconv.ParseInt(n.String(), 10, 64)
	return ok && err == nil
}

func isNumber(x any) bool {
	n, ok := x.(json.Number)
	_, err := n.Float64()
	return ok && err == nil
}

func isMeta(x any) bool {
	m, ok := x.(map[string]any)
	for _, values := range m {
		all, isList := values.([]any)
		ok = ok && isList
		for _, v := range all {
			ok = ok && isText(v)
		}
	}
	return ok
}

var urlKinds = kinds{
	"url": isText, "crawl": isText, "depth": isInt, "weight": isNumber, "priority": isInt, "not_before": isText, "not_before_s": isNumber,
	"meta": isMeta, "force": isBool, "hint": isBool, "host": isText, "finished": isBool, "id": isText,
}

var endKinds = kinds{
	"lease": isText, "result": isText, "failure": isText, "uncontacted": isBool, "ended_ago_s": isNumber, "duration_s": isNumber,
	"retry_after_s": isNumber, "crawl_delay_s": isNumber, "modified": isText, "bytes": isInt, "next": isText, "next_s": isNumber, "meta": isMeta,
	"add": func(x any) bool {
		all, ok := x.([]any)
		for _, u := range all {
			ok = ok && urlKinds.are(u)
		}
		return ok
	},
}

// are reports whether x is an object of members that are known, each of its type or null.
func (k kinds) are(x any) bool {
	m, ok := x.(map[string]any)
	for name, v := range m {
		is := k[name]
		ok = ok && is != nil && (v == nil || is(v))
	}
	return ok
}

// read is what encoding/json reads; false if it is none of them, or names a member twice.
func (k kinds) read(b []byte) (map[string]any, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var x any
	if !utf8.Valid(b) || !json.Valid(b) || d.Decode(&x) != nil || !k.are(x) {
		return nil, false
	}
	type open struct {
		object, isName bool
		names          map[any]bool
	}
	var stack []open
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		t, err := d.Token()
		if err != nil {
			return x.(map[string]any), true
		}
		if t == json.Delim('}') || t == json.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if n := len(stack); n > 0 && stack[n-1].object {
			in := &stack[n-1]
			if in.isName = !in.isName; in.isName {
				if in.names[t] {
					return nil, false
				}
				in.names[t] = true
			}
		}
		if t == json.Delim('{') || t == json.Delim('[') {
			stack = append(stack, open{object: t == json.Delim('{'), names: map[any]bool{}})
		}
	}
}

// What encoding/json cannot read, or has another type or a name that is unknown, is an error, and nothing else is.
func FuzzLines(f *testing.F) {
	for _, b := range []string{
		`{}`, `null`, `[]`, `{"nope":null}`, `{"url":null,"nope":1}`, `{"url":"http://a.example/","url":"http://b.example/"}`,
		`{"url":"http://a.example/","crawl":"c","depth":2,"weight":1.5e3,"priority":3,"not_before":"2030-01-01T00:00:00Z","meta":{"a":["b","\u00e9"],"c":[]},"force":true,"hint":false,"host":"a.example","finished":true,"id":"7"}`,
		`{"lease":"x","result":"failed","failure":"timeout","uncontacted":true,"ended_ago_s":1,"duration_s":0.5,"retry_after_s":3,"crawl_delay_s":0,"modified":"2020-01-01T00:00:00Z","bytes":12,"next_s":4,"meta":{},"add":[{"url":"http://b.example/","not_before_s":9}]}`,
		`{"add":[null]}`, `{"meta":{"a":null}}`, `{"meta":{"a":[],"a":[]}}`, `{"bytes":1e3}`, `{"weight":1e400}`, ` {"id" : "\ud800" } `, "{\"id\":\"\xff\"}", `{"force":truex}`, `{"depth":01}`,
		`{"\u0075rl":"http://a.example/"}`, `{"url":"a",}`, `{"URL":"a"}`, `{"depth":nullx}`,
	} {
		f.Add([]byte(b))
	}
	p := &parser{s: serve(f, Options{}).s}
	f.Fuzz(func(t *testing.T, b []byte) {
		it, err := p.parseURL(b)
		m, ok := urlKinds.read(b)
		judged(t, ok, err)
		if err == nil {
			text, _ := m["url"].(string)
			assert.Equal(t, text, it.entry.URL)
			id, _ := m["id"].(string)
			assert.Equal(t, id, it.id)
		}

		e, err := p.parseEnd(b)
		m, ok = endKinds.read(b)
		judged(t, ok, err)
		if err == nil {
			lease, _ := m["lease"].(string)
			assert.Equal(t, lease, e.lease)
			add, _ := m["add"].([]any)
			assert.Len(t, e.add, len(add))
			meta, _ := m["meta"].(map[string]any)
			assert.Len(t, e.meta, len(meta))
		}
	})
}

// judged compares an error with what encoding/json says. A value of the right type may be out of its range.
func judged(t *testing.T, ok bool, err error) {
	t.Helper()
	switch {
	case !ok:
		require.Error(t, err)
	case err != nil:
		require.NotErrorIs(t, err, jsonl.ErrSyntax)
		require.NotErrorIs(t, err, jsonl.ErrMember)
	}
}

// Mistakes that were taken: they lost a member, a URL, or a rule.
func TestMistakesAreRefused(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/1"}`)
	id := x.lease()["lease"].(string)
	x.ok("PUT", "/v1/rules/b.example", `{"paused":true}`)
	const url = `"url":"http://c.example/"`
	for _, r := range []struct{ method, path, body, says string }{
		{"POST", "/v1/urls", `{` + url + `,"nope":null}`, "nope: there is no such member"},
		{"POST", "/v1/urls", `{` + url + `,` + url + `}`, "url: it is there twice"},
		{"POST", "/v1/urls", `{` + url + `,"meta":{"a":["1"],"a":["2"]}}`, "meta: a: it is there twice"},
		{"POST", "/v1/leases/" + id + "/done", `{"nope":null}`, "nope: there is no such member"},
		{"POST", "/v1/leases/" + id + "/done", `{"result":"visited","result":"failed"}`, "result: it is there twice"},
		{"POST", "/v1/leases/" + id + "/done", `{"add":[{` + url + `,"nope":null}]}`, "add: nope: there is no such member"},
		{"POST", "/v1/leases", `{"crawls":[null]}`, `"null]}" where a string should be`},
		{"POST", "/v1/leases", `{"crawls":[""]}`, "crawls has an empty name"},
		{"PUT", "/v1/rules/b.example", ``, "the rule is missing"},
		{"PUT", "/v1/rules/b.example", `null`, "the rule is missing"},
		{"PUT", "/v1/crawls/c", `null`, "the rule is missing"},
		{"POST", "/v1/import", `{"frontier":99}`, "the export has version 99"},
	} {
		assert.Contains(t, x.problem(400, "bad-request", r.method, r.path, r.body), r.says, r.body)
	}
	for body, hint := range map[string]bool{`http://a.example/`: true, `{"url":1}`: false, `{"url":"http://a.example/"`: false} {
		says := x.problem(400, "bad-request", "POST", "/v1/urls", body)
		assert.Equal(t, hint, bytes.Contains([]byte(says), []byte("text/plain")), says)
	}
	assert.Equal(t, map[string]any{"paused": true}, x.ok("GET", "/v1/rules/b.example", "")["rule"])
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
	assert.EqualValues(t, 0, x.ok("GET", "/v1/stats", "")["waiting"])
}

// In an array, objects count, and not the lines that they stand in.
func TestTheObjectsOfAnArrayAreCounted(t *testing.T) {
	x := serve(t, Options{})
	bad := x.ok("POST", "/v1/urls", "\n[\n{\"url\":\"http://a.example/\"},\n{\"url\":\n\"\"},\n{\"url\":\"x\"}]")["bad"].([]any)
	require.Len(t, bad, 2)
	assert.EqualValues(t, 2, bad[0].(map[string]any)["line"])
	assert.EqualValues(t, 3, bad[1].(map[string]any)["line"])
}
