// This file draws random requests, most of them sound.

package route

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// times returns the results of n calls.
func times(n int, f func() string) (all []string) {
	for range n {
		all = append(all, f())
	}
	return all
}

// one returns one of some values.
func one[T any](x *twins, of ...T) T { return of[x.IntN(len(of))] }

// some returns members of an object. Each is there in one of n cases, with one of the values behind the colon.
func (x *twins) some(n int, members ...string) (s string) {
	for _, m := range members {
		if name, values, _ := strings.Cut(m, ":"); x.IntN(n) == 0 {
			s += fmt.Sprintf(",%q:%s", name, one(x, strings.Split(values, "|")...))
		}
	}
	return s
}

func q(name, value string) string { return name + "=" + url.QueryEscape(value) }

// params returns some parameters, each in one of three cases.
func (x *twins) params(all ...string) string {
	s := "?"
	for _, p := range all {
		if x.IntN(3) == 0 {
			s += "&" + p
		}
	}
	return strings.TrimSuffix(strings.Replace(s, "?&", "?", 1), "?")
}

func (x *twins) host() string {
	if x.IntN(10) > 0 {
		return one(x, x.hosts...)
	}
	return one(x, "WWW.Site0.Example.", "bücher.example", "new.example", "*", "*.site1.example", "a b", "http://www.site1.example/", "www.site1.example:80", "crawl:1")
}

func (x *twins) scope() string {
	return one(x, "*", "*", "*.example", "*.co.uk", "*.site0.example", "*.www.site1.example", "*.Site2.Example.", one(x, x.hosts...), one(x, x.hosts...), one(x, x.hosts...), "WWW.Site0.Example.", "http://www.site1.example/", "a b")
}

func wide(scope string) bool   { return scope == "*" || scope == "*.example" || scope == "*.co.uk" }
func (x *twins) crawl() string { return one(x, "news", "news", "shop", "DEFAULT", " news ", "none") }

// page returns a URL, and the host that politeness is owed to, or none.
func (x *twins) page() (u, host string) {
	if x.IntN(15) == 0 {
		return one(x, "nothing", "", "http://", "ftp://www.site1.example/", "HTTP://WWW.Site0.Example:80/a b", "http://me:pw@www.site2.example/1", "http://bücher.example/1", "http://www.site1.example:8080/", "/1", "//www.site1.example/1"), ""
	}
	if u = fmt.Sprintf("http://%s/%d", one(x, x.hosts...), x.IntN(6)); x.IntN(8) == 0 {
		host = x.host()
		u += "/of/" + url.PathEscape(host) // so it is at one part
	}
	return u, host
}

func first(u, _ string) string { return u }

// entry draws a URL to add. It may be malformed, unless it is sound.
func (x *twins) entry(sound bool) string {
	if !sound && x.IntN(25) == 0 {
		return one(x, `{"url":`, `[]`, `"http://www.site0.example/"`, `{}`, `7`, `null`, `{"url":"http://www.site0.example/","url":"x"}`, `{"url":7}`, `{"url":"http://www.site1.example/","dept":1}`, `http://www.site0.example/`, `{"url":"http://www.site1.example/1"} x`, `{"URL":"http://www.site1.example/1"}`)
	}
	u, host := x.page()
	s := fmt.Sprintf(`{"url":%q`, u) + x.some(5, "crawl:"+fmt.Sprintf("%q", x.crawl()), "depth:0|1|5|-1|70000", "weight:0.5|-1|1e3|2", "priority:1|4|9|16|17|0", "not_before_s:10|0.5|700", `meta:{"k":["v"]}|{}|{"a":["1","2"],"b":[]}`, "force:true", "hint:true", `id:"1"|"2"`) +
		x.some(12, `not_before:"2000-01-01T00:10:00Z"|"1999-01-01T00:00:00Z"`, "finished:true")
	if host != "" {
		s += fmt.Sprintf(`,"host":%q`, host)
	}
	if !sound {
		s += x.some(60, "not_before_s:-1", `not_before:"soon"`, `meta:{"k":"v"}`, "priority:1.5")
	}
	return s + "}"
}

// lease returns one that was handed out, most likely one of the last.
func (x *twins) lease() string {
	n := len(x.leases)
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("<L%d>", n-1-x.IntN(one(x, n, min(n, 8))))
}

// end draws the end of a lease. It has links, or is perhaps malformed: then a router may store links, too.
func (x *twins) end(lease string) string {
	if lease == `"none"` || x.IntN(15) == 0 {
		return `{"lease":"gone"}`
	}
	s := `{"lease":` + lease + x.some(4, `result:"visited"|"changed"|"unchanged"|"gone"|"denied"|"requeue"`, "duration_s:0.3|2", "bytes:10|0|4000", "ended_ago_s:1|0|100", "retry_after_s:5|100|1e9|0", "crawl_delay_s:0|3|0.01", `modified:"1999-05-05T05:05:05Z"`, `meta:{"n":["1"]}`)
	if !strings.Contains(s, `"result"`) && x.IntN(2) == 0 {
		s += `,"result":"failed"` + x.some(2, `failure:"dns"|"connect"|"timeout"|"server"|"unavailable"|"too_many_requests"`)
	}
	switch x.IntN(4) {
	case 0, 1:
		s += `,"add":[` + strings.Join(times(x.IntN(4), func() string { return x.entry(true) }), ",") + `]`
	case 2:
		s += "," + one(x, `"uncontacted":true`, `"next_s":5`, `"next_s":60`, `"next":"2000-01-01T01:00:00Z"`, `"next_s":-1`, `"bytes":-1`, `"results":1`, `"add":[{"url":7}]`, `"add":[7]`, `"add":null`, `"add":{}`, `"failure":"dns"`)
		s = strings.Replace(s, `"gone"`, one(x, `"lost"`, `"put_off"`, `"gone"`), 1)
	}
	return s + "}"
}

func (x *twins) rule(scope string) string {
	limit := map[bool]string{true: "3000|6000|30000", false: "3|10|50"}[wide(scope)]
	if x.IntN(15) == 0 {
		return one(x, "", "null", "[]", `{"dealy":1}`, `{"paused":7}`, `{"limits":{"waiting":-1}}`, `{"limits":7}`, `{"weight":3}`, `{"delay":{"fixed":"x"}}`)
	}
	s := x.some(5, "paused:true|false", `delay:{"fixed":"3s"}|{"fixed":"500ms"}`, "concurrency:2", "priority:3|16|17", `host_limits:{"waiting":5}|{"served":20}`, `blocked_until:"2000-01-01T00:20:00Z"`, `priorities:{"4":6}`)
	if x.IntN(3) == 0 {
		s += fmt.Sprintf(`,"limits":{%q:%s}`, one(x, "waiting", "served", "bytes", "errors", "depth"), one(x, strings.Split(limit, "|")...))
	}
	return "{" + strings.TrimPrefix(s, ",") + "}"
}

// next draws a request.
func (x *twins) next() request {
	if len(x.ends) > 0 && x.IntN(15) == 0 {
		r := one(x, x.ends...)
		r.again = true
		return r
	}
	r := x.draw()
	for x.groups && (r.method == "GET" && !strings.HasPrefix(r.path, "/v1/urls") && !strings.HasPrefix(r.path, "/v1/leases/") || strings.Contains(r.path, "contact")) {
		r = x.draw() // a group has a host and leases of its own in a router
	}
	if r.method == "POST" && strings.Contains(r.path, "/do") {
		x.ends = append(x.ends, r)
	}
	return r
}

func (x *twins) draw() request {
	esc, lines := url.PathEscape, ndjson[:2]
	switch x.IntN(38) {
	case 0, 1, 2, 3, 4:
		r := request{method: "POST", path: "/v1/urls"}
		all := times(1+x.IntN(8), func() string { return x.entry(false) })
		switch x.IntN(5) {
		case 0:
			r.body, r.header = one(x, "", "\n")+"["+strings.Join(all, one(x, ",", ",\n", ",", ""))+"]"+one(x, "", "", " \n", "x"), []string{"Content-Type", "application/json"}
		case 1:
			for range all {
				u, _, _ := strings.Cut(first(x.page()), "/of/")
				r.body += u + one(x, "\n", "\r\n", "\n\n# a line\n")
			}
			r.header = append([]string{"Content-Type", one(x, "text/plain", "text/plain; charset=utf-8", "text/html")}, one(x, nil, ndjson[2:])...)
		default:
			r.body, r.header = one(x, "", "\n\n")+strings.Join(all, "\n")+one(x, "", "\n"), one(x, lines, ndjson, nil)
		}
		return r
	case 5, 6, 7, 8, 9:
		s := `{"hosts":100` + one(x, `,"per_host":100`, `,"per_host":100`, `,"per_host":100`, "") + x.some(4, `crawls:["news"]|["news","shop"]|["none"]|[]|[""]|["DEFAULT"]|null`, "lease_s:60|0.5|-1|5000|0") + x.some(8, fmt.Sprintf("host:%q", x.host()), "wait_s:-1|1e9") + x.some(30, "max:0|-1|1000", "surprise:1") + "}"
		if x.IntN(15) == 0 { // one that waits for several parts gives back what comes late
			s = fmt.Sprintf(`{"host":%q,"wait_s":%s}`, x.host(), one(x, "3", "0.5"))
		}
		if x.IntN(30) == 0 {
			s = one(x, "[]", "{", "x", `{"hosts":-1}`, `{"hosts":1.5}`, `{}`)
		}
		return request{method: "POST", path: "/v1/leases", body: s}
	case 10, 11, 12, 13:
		if len(x.leases) == 0 || x.IntN(15) == 0 {
			return request{method: "POST", path: "/v1/leases/" + one(x, "gone", "1.2", "a~b") + one(x, "/done", "/handback")}
		}
		l := x.lease()
		s := x.end(`"` + l + `"`)
		if x.IntN(3) > 0 {
			s = strings.Replace(strings.Replace(s, `"lease":"`+l+`"`, "", 1), "{,", "{", 1)
		}
		if x.IntN(15) == 0 {
			s = one(x, "", "{", "null", "[]", "{} {}", `{"add":{}}`, `{"add":[7]}`, `{"add":[null]}`, `{"add":null}`, `{"result":7}`, " ", "{}\n")
		}
		return request{method: "POST", path: "/v1/leases/" + l + "/done", body: s}
	case 14, 15, 16:
		array := x.IntN(6) == 0
		var all []string
		for range 1 + x.IntN(4) {
			s := x.end(fmt.Sprintf("%q", x.lease()))
			if links := strings.Index(s, `,"add":[{`); links > 0 && strings.Contains(strings.Join(all, ""), `"add":[{`) { // those to other parts come first
				s = s[:links] + "}"
			}
			switch {
			case x.IntN(12) > 0:
			case array:
				s = one(x, "{}", "[]", "7")
			default:
				s = one(x, "{}", "{", "[]", "null", `"x"`, `{"lease":7}`, `{"lease":"a","lease":"b"}`)
			}
			all = append(all, s)
		}
		if array {
			return request{method: "POST", path: "/v1/done", body: "[" + strings.Join(all, ",") + "]"}
		}
		return request{method: "POST", path: "/v1/done", body: strings.Join(all, "\n"), header: lines}
	case 17, 18:
		l := x.lease()
		r := request{method: "POST", path: "/v1/leases/" + l + "/extend", body: one(x, `{"lease_s":60}`, `{"lease_s":60}`, `{"lease_s":0.5}`)}
		switch n := x.IntN(4); {
		case n == 0:
			r.path, r.body = "/v1/leases/"+l+"/handback", "{}"
		case n == 1 && l != "none":
			r.body = one(x, `{"lease_s":0}`, `{}`, `{"lease_s":9999}`, ``)
		case n == 2 && l != "none" && x.groups:
			at, _ := strconv.Atoi(l[2 : len(l)-1])
			r.path, r.body = "/v1/leases/"+l+"/join", fmt.Sprintf(`{"group":%q}`, "of "+x.at[at])
		}
		return r
	case 19:
		return request{method: "GET", path: "/v1/leases/" + one(x, x.lease(), x.lease(), x.lease()+","+x.lease(), x.lease()+","+x.lease()+",gone", "-,"+x.lease(), x.lease()+"?a=1", x.lease()+",", "gone")}
	case 20:
		return request{method: "POST", path: "/v1/hosts/" + esc(x.host()) + "/contact", body: one(x, `{}`, ``, `{"wait_s":3}`, `{"wait_s":-1}`, `{"lease_s":60,"wait_s":2}`, `{"lease_s":9999}`)}
	case 21, 22, 23:
		scope := x.scope()
		if x.IntN(3) == 0 {
			return request{method: "DELETE", path: "/v1/rules/" + esc(scope)}
		}
		return request{method: "PUT", path: "/v1/rules/" + esc(scope), body: x.rule(scope)}
	case 24:
		name := "/v1/crawls/" + esc(x.crawl())
		if x.IntN(2) == 0 {
			return request{method: "DELETE", path: name + one(x, "", "?forget=true", "?forget=maybe", "?a=1")}
		}
		return request{method: "PUT", path: name, body: one(x, `{"weight":3}`, `{"paused":true}`, `{}`, `{"limits":{"waiting":3000}}`, `{"limits":{"depth":3}}`, `{"delay":{"fixed":"1s"}}`, `{"weight":-1}`, ``, x.rule("*"))}
	case 25, 26, 27, 28:
		return x.action()
	case 29:
		return request{method: "DELETE", path: "/v1/hosts/" + esc(x.host()) + "/urls" + x.params(q("crawl", x.crawl()), one(x, "forget=true", "forget=1", "forget=x"))}
	case 30:
		return request{method: "DELETE", path: one(x, "/v1/leases/"+x.lease(), "/v1/leases/"+x.lease()+"?a=1", "/v1/leases"+x.params(q("scope", x.scope()), "client=stranger"))}
	case 31:
		if x.IntN(3) == 0 {
			u, _ := x.page()
			return request{method: "POST", path: "/v1/import", body: one(x, fmt.Sprintf("%s\nhttp://%s/2\n", u, one(x, x.hosts...)), "", "{}"), header: []string{"Content-Type", "text/plain"}}
		}
		u, host := x.page()
		if u = q("url", u); host != "" {
			u += "&" + q("host", host)
		}
		return request{method: "GET", path: "/v1/urls?" + u + strings.Replace(x.params(q("crawl", x.crawl()), "a=1"), "?", "&", 1)}
	}
	scope, crawl, host := q("scope", x.scope()), esc(x.crawl()), x.host()
	return request{method: "GET", path: one(x,
		"/v1/list"+x.params(q("crawl", x.crawl()), q("host", host), one(x, "finished=true", "finished=false"), "n=1000", "after="), "/v1/list?finished=x", "/v1/list?after=&n="+one(x, "2", "3", "x", "-1"),
		"/v1/hosts"+x.params(scope, one(x, "n=2", "n=3", "n=0", "n=x"), one(x, "reason=paused", "reason=x"), one(x, "match=site1", "match=SHOP"), one(x, "sort=domain", "sort=x"), one(x, "sunk=true", "sunk=x"), "a=1"),
		"/v1/hosts?sort=waiting"+strings.Replace(x.params(scope), "?", "&", 1), "/v1/hosts/"+esc(host), "/v1/rules", "/v1/rules/"+esc(x.scope()), "/v1/rules?a=1", "/v1/crawls", "/v1/crawls/"+crawl, "/v1/crawls?a=1", "/v1/crawls/"+crawl+"?a=1",
		"/v1/crawls/"+crawl+"/queues"+x.params("n=100", one(x, "n=x", "n=-1"), "after=", "a=1"), "/v1/leases"+x.params(scope, "client=stranger", one(x, "n=1000", "n=x", "n=0")), "/v1/due"+x.params(one(x, "n=5", "n=x")),
		"/v1/stats", "/v1/stats?a=1", "/livez", "/readyz", "/v1/openapi.json", "/v1/nothing", "/v1//urls", "/v1/urls", "/nothing")}
}

// action draws an action of an operator.
func (x *twins) action() request {
	scope := x.scope()
	do := one(x, "pause", "resume", "block", "delay", "concurrency", "priority", "reprioritize", "standing", "limit", "host-limit", "clear", "delete", "forget", "end-leases", "crawl-now", "add", "crawl-now", "add", "jump")
	r := request{method: "POST", path: "/v1/do", wide: wide(scope) || do == "add" || do == "crawl-now" || do == "end-leases"}
	limit := map[bool]string{true: "9000", false: "9"}[wide(scope)]
	takes := map[string]string{
		"block": `for:"1m"|"-1m"`, "delay": `delay:{"fixed":"2s"}|7`, "concurrency": "n:2|-1", "priority": "n:3|99", "standing": "n:-2|1|0|99", "limit": `limits:{"waiting":` + limit + `}|{}`,
		"host-limit": `limits:{"served":9}`, "delete": "dry:true|false", "end-leases": `client:"stranger"`,
	}
	s := fmt.Sprintf(`{"do":%q`, do)
	switch {
	case do == "add" || do == "crawl-now":
		all := times(x.IntN(4), func() string { return fmt.Sprintf(`"http://%s/%d"`, one(x, x.hosts...), x.IntN(6)) }) // sound: of several, some may be added
		if u, _ := x.page(); x.IntN(8) == 0 {
			all = []string{fmt.Sprintf("%q", u)}
		}
		s += `,"urls":[` + strings.Join(all, ",") + `]` + x.some(3, fmt.Sprintf("crawl:%q", x.crawl()), "depth:2|-1") + x.some(20, `scope:"*"`)
	case do == "reprioritize":
		s += fmt.Sprintf(`,"scope":%q,"from":%s`, scope, one(x, "4", "99")) + one(x, `,"to":9`, `,"none":true`)
	case do == "end-leases" && x.IntN(2) == 0 && len(x.leases) > 0:
		s += fmt.Sprintf(`,"lease":%q`, x.lease())
	default:
		if x.IntN(15) > 0 {
			s += fmt.Sprintf(`,"scope":%q`, scope)
		}
		if takes[do] != "" {
			s += x.some(1, one(x, takes[do], takes[do], takes[do], "none:true"))
		}
	}
	if s += x.some(30, "surprise:1") + "}"; x.IntN(30) == 0 {
		s = one(x, "", "[]", "{", "null", `{"do":7}`, `{}`)
	}
	r.body, r.header = s, one(x, nil, []string{"Idempotency-Key", fmt.Sprint(x.Uint64())})
	return r
}
