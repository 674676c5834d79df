// This file tests that the page works under a path of a proxy.

package console_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/event"
)

// visitor follows all that a page served at prefix leads to, as a browser would.
type visitor struct {
	t      *testing.T
	at     *url.URL // of the first page
	client *http.Client
	seen   map[string]string // addresses met, and the page that has them
	todo   []string
	forms  []*http.Request
}

// meet notes an address that a page has.
func (v *visitor) meet(page *url.URL, raw string) *url.URL {
	assert.False(v.t, strings.HasPrefix(raw, "/") || strings.Contains(raw, "://") && !strings.Contains(raw, "?"), "%s: %q is absolute", page, raw)
	u, err := page.Parse(raw)
	require.NoError(v.t, err)
	assert.True(v.t, strings.HasPrefix(u.String(), v.at.String()), "%s: %q leads to %s", page, raw, u)
	u.Fragment = ""
	if _, ok := v.seen[u.String()]; !ok && len(v.seen) < 200 {
		v.seen[u.String()] = page.String()
		v.todo = append(v.todo, u.String())
	}
	return u
}

// read notes what an answer leads to.
func (v *visitor) read(res *http.Response) {
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
		_, err := io.Copy(io.Discard, res.Body)
		require.NoError(v.t, err)
		return
	}
	doc, err := html.Parse(res.Body)
	require.NoError(v.t, err)
	page := res.Request.URL
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "href", "src":
				if !strings.HasPrefix(a.Val, "#") {
					v.meet(page, a.Val)
				}
			case "action":
				u := v.meet(page, a.Val)
				form := url.Values{}
				method := http.MethodGet
				for x := range n.Descendants() {
					if x.Data == "input" || x.Data == "select" {
						form.Set(attr(x, "name"), attr(x, "value"))
					}
				}
				if attr(n, "method") == "post" {
					method = http.MethodPost
				}
				r, err := http.NewRequest(method, u.String(), strings.NewReader(form.Encode()))
				require.NoError(v.t, err)
				if method == http.MethodGet {
					r.URL.RawQuery = form.Encode()
				}
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				v.forms = append(v.forms, r)
			case "data", "formaction", "poster", "srcset", "style":
				v.t.Errorf("%s: %s=%q is new to this test", page, a.Key, a.Val)
			}
		}
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// do sends a request, and follows its redirects, each of them relative.
func (v *visitor) do(r *http.Request) *http.Response {
	for {
		res, err := v.client.Do(r)
		require.NoError(v.t, err)
		to := res.Header.Get("Location")
		if to == "" {
			return res
		}
		res.Body.Close()
		u := v.meet(r.URL, to)
		r, err = http.NewRequest(http.MethodGet, u.String(), nil)
		require.NoError(v.t, err)
	}
}

// Behind a proxy that takes a path off, each link, form, redirect and file of each page, and the cookie, are
// of that path, from a page that there is not, too.
func TestThePageWorksUnderAPath(t *testing.T) {
	leases := []console.Lease{{Lease: "ID-1", Client: "bot", Host: "a.example", URL: "http://a.example/1"}, {Lease: "ID-2", Client: "bot", Host: "a.example"}}
	w := newWorld(t, console.Options{
		Token: "secret", Names: []string{"*"}, Stop: func() {},
		Leases:    func(console.LeaseQuery) console.LeaseList { return console.LeaseList{Leases: leases, Total: 2} },
		EndLeases: func(console.LeaseQuery) (int, error) { return 1, nil },
	})
	w.add(t, "http://a.example/1", "http://a.example/2", "http://b.example/")
	w.w.Event(event.Event{Kind: event.HostBackedOff, Host: "b.example", Reason: "slow"})
	server := httptest.NewServer(w.c.Page())
	defer server.Close()
	behind, err := url.Parse(server.URL)
	require.NoError(t, err)
	through := httputil.NewSingleHostReverseProxy(behind)
	through.Transport = server.Client().Transport
	mux := http.NewServeMux()
	mux.Handle("/tools/crawl/", http.StripPrefix("/tools/crawl", through))
	proxy := httptest.NewServer(mux)
	defer proxy.Close()
	at, err := url.Parse(proxy.URL + "/tools/crawl/")
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := &visitor{t: t, at: at, seen: map[string]string{}, client: &http.Client{Transport: proxy.Client().Transport, Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}

	walk := func() {
		for len(v.todo) > 0 {
			u := v.todo[0]
			v.todo = v.todo[1:]
			if at := u[len(at.String()):]; at == "do" || at == "leave" || at == "url" {
				continue // of forms only
			}
			r, err := http.NewRequest(http.MethodGet, u, nil)
			require.NoError(t, err)
			res := v.do(r)
			if v.seen[u] != "" {
				assert.Equal(t, 200, res.StatusCode, "%s, linked from %s", u, v.seen[u])
			}
			v.read(res)
		}
	}
	for _, place := range []string{"", "no/such/page", "hosts/x", "host?name=none.example", "url?url=a.example"} {
		v.todo = append(v.todo, at.String()+place)
	}
	walk()
	r, err := http.NewRequest(http.MethodPost, at.String()+"enter", strings.NewReader("token=secret&back=rules"))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res := v.do(r)
	assert.Equal(t, at.String()+"rules", res.Request.URL.String())
	v.read(res)
	require.Len(t, jar.Cookies(at), 1)
	assert.Empty(t, jar.Cookies(at.JoinPath("..", "..")), "other programs behind the proxy do not get the cookie")
	v.seen = map[string]string{}
	v.todo = append(v.todo, at.String(), at.String()+"no/such/page")
	walk()
	for _, page := range []string{"", "hosts", "urls", "rules", "leases", "style.css", "live.js", "mark.svg"} {
		assert.Contains(t, v.seen, at.String()+page)
	}
	sent := map[string]bool{}
	for _, r := range slices.Clone(v.forms) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		what := r.URL.Path[len(at.Path):] + "?" + string(body)
		if sent[what] || what == "leave?" {
			continue
		}
		sent[what], r.Body = true, io.NopCloser(bytes.NewReader(body))
		res := v.do(r)
		assert.NotEqual(t, 404, res.StatusCode, what)
		v.read(res)
	}
	assert.Greater(t, len(sent), 10, "filters, buttons of the whole crawl, of hosts, URLs and leases")
	r, err = http.NewRequest(http.MethodPost, at.String()+"leave", nil)
	require.NoError(t, err)
	res = v.do(r)
	assert.Equal(t, at.String(), res.Request.URL.String())
	v.read(res)
	assert.Empty(t, jar.Cookies(at))

	for asked, to := range map[string]string{"//hosts": "hosts", "/a/..//hosts?n=1": "hosts?n=1", "//evil.example/..": "", "///evil.example": "evil.example"} {
		rec := answer(w.c.Page(), overLoopback(&http.Request{Method: "GET", Host: "localhost", URL: &url.URL{Path: strings.Split(asked, "?")[0], RawQuery: strings.Join(strings.Split(asked, "?")[1:], "")}}))
		require.Equal(t, 307, rec.Code, asked)
		assert.Regexp(t, `^(\.\./)+`+regexp.QuoteMeta(to)+"$", rec.Header().Get("Location"), asked)
	}
}
