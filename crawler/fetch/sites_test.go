// These tests look at what reaches a server, or a proxy, of what Sites say.

package fetch

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seenBy serves each request with a line of what it brought.
func seenBy(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "lang=%s accept=%s cookie=%s auth=%s", r.Header.Get("Accept-Language"), r.Header.Get("Accept"), r.Header.Get("Cookie"), r.Header.Get("Authorization"))
}

func cookie(name, value string) []*http.Cookie { return []*http.Cookie{{Name: name, Value: value}} }

func TestTheMostSpecificSiteCounts(t *testing.T) {
	addr := web(t, seenBy)
	f := newFetcher(t, Options{Resolve: map[string]string{"*": addr}, Sites: []Site{
		{Scope: "http://b.a.example:81", Header: http.Header{"accept-language": {"port"}}},
		{Scope: "B.a.example.", Header: http.Header{"Accept-Language": {"host"}}, Cookies: cookie("c", "host")},
		{Scope: "*.example", Header: http.Header{"Accept-Language": {"wide"}, "Accept": {"text/html"}}, Cookies: cookie("wide", "1")},
		{Scope: "*.a.example", Header: http.Header{"Accept-Language": {"narrow"}}, Cookies: cookie("c", "narrow")},
		{Scope: "*", Header: http.Header{"Accept-Language": {"any"}}},
		{Scope: "*.b\u00fccher.example", Header: http.Header{"Accept-Language": {"de"}, "Accept": nil}},
		{Scope: "[::1]", Header: http.Header{"Accept-Language": {"six"}}},
	}})
	const usual = "text/html,application/xhtml+xml,*/*;q=0.8"
	for u, want := range map[string]string{
		"http://x.test/":                           "lang=any accept=" + usual + " cookie= auth=",
		"http://example/":                          "lang=wide accept=text/html cookie=wide=1 auth=",
		"http://a.example/":                        "lang=narrow accept=text/html cookie=wide=1; c=narrow auth=",
		"http://b.a.example/":                      "lang=host accept=text/html cookie=wide=1; c=host auth=",
		"http://b.a.example:81/":                   "lang=port accept=text/html cookie=wide=1; c=host auth=",
		"http://nota.example/":                     "lang=wide accept=text/html cookie=wide=1 auth=",
		"http://www.xn--bcher-kva.example/":        "lang=de accept= cookie=wide=1 auth=",
		"http://[::1]/":                            "lang=six accept=" + usual + " cookie= auth=",
		"http://B.A.EXAMPLE./robots.txt?x#y":       "lang=host accept=text/html cookie=wide=1; c=host auth=",
		"http://me:pw@b.a.example:81/robots.txt":   "lang=port accept=text/html cookie=wide=1; c=host auth=",
		"http://b.a.example@x.test/http://example": "lang=any accept=" + usual + " cookie= auth=",
	} {
		res, err := get(t, f, u)
		require.NoError(t, err, u)
		assert.Equal(t, want, body(t, res), u)
	}
}

// secrets are the Sites of a host whose login must not leak.
func secrets(scope string) []Site {
	return []Site{
		{Scope: scope, Secret: true, Header: http.Header{"Authorization": {"Bearer hunter2"}, "X-Key": {"hunter2"}}, Cookies: cookie("session", "hunter2")},
		{Scope: "*", Header: http.Header{"Accept-Language": {"de"}}, Cookies: cookie("consent", "yes")},
	}
}

// A secret goes only to its hosts, over https, wherever they redirect to.
func TestSecretsReachTheirHostOnly(t *testing.T) {
	cert, roots := certificate(t, "*.example", time.Now().Add(time.Hour))
	redirects := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
		seenBy(w, r)
	}
	safe, plain := secureWeb(t, cert, redirects), web(t, redirects)
	f := newFetcher(t, Options{TLS: &tls.Config{RootCAs: roots}, Sites: secrets("a.example"), Resolve: map[string]string{
		"a.example:443": safe, "b.example:443": safe, "a.example:8443": safe, "*": plain,
	}})
	const all, none = "cookie=consent=yes; session=hunter2 auth=Bearer hunter2", "cookie=consent=yes auth="
	ask := func(f *Fetcher, u, want string) *Result {
		t.Helper()
		res, err := get(t, f, u)
		require.NoError(t, err, u)
		assert.True(t, strings.HasSuffix(body(t, res), want), "%s: %s", u, body(t, res))
		assert.NotContains(t, string(res.Request), "hunter2", u)
		assert.Equal(t, want == all, strings.Contains(string(res.Request), redacted), u)
		return res
	}
	for _, target := range []string{"https://b.example/", "http://a.example/", "https://a.example:8443/", "http://a.example.test/"} {
		res := ask(f, "https://a.example/?to="+target, all)
		head := strings.ToLower(string(res.Request))
		assert.Contains(t, head, "authorization: redacted\r\n")
		assert.Contains(t, head, "x-key: redacted\r\n")
		assert.Contains(t, head, "cookie: consent=yes; session=redacted\r\n")
		assert.Equal(t, 1, strings.Count(head, "cookie:"))
		ask(f, res.Header.Get("Location"), none)
	}
	ask(newFetcher(t, Options{Sites: secrets("http://a.example:81"), Resolve: map[string]string{"*": plain}}), "http://a.example:81/", all)
	ask(newFetcher(t, Options{Sites: secrets("http://a.example:81"), Resolve: map[string]string{"*": plain}}), "http://a.example/", none)
	ask(newFetcher(t, Options{Sites: secrets("http://*.example"), Resolve: map[string]string{"*": plain}}), "http://a.example/", all)
}

// What a host sets later takes the place of the cookie that was given.
func TestTheJarTakesPrecedence(t *testing.T) {
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "renewed"})
		fmt.Fprint(w, r.Header.Get("Cookie"))
	})
	f := newFetcher(t, Options{Jar: NewJar(), Resolve: map[string]string{"*": addr}, Sites: []Site{{Scope: "http://a.example", Secret: true, Cookies: cookie("session", "given")}}})
	for _, want := range []string{"session=given", "session=renewed"} {
		res, err := get(t, f, "http://a.example/")
		require.NoError(t, err)
		assert.Equal(t, want, body(t, res))
		res, err = get(t, f, "http://b.example/")
		require.NoError(t, err)
		assert.NotEqual(t, "session=given", body(t, res))
	}
}

// relay is a proxy that forwards requests and tunnels connections to one address, and notes what it
// is asked for.
type relay struct {
	to string

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (p *relay) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, fmt.Sprintf(format, args...))
}

// took returns what was asked for since the last call.
func (p *relay) took() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.asked = nil }()
	return p.asked
}

// ServeHTTP is a proxy of HTTP.
func (p *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.note("%s %s %s", r.Method, r.RequestURI, r.Header.Get("Proxy-Authorization"))
	if r.Method == http.MethodConnect {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			p.tunnel(c)
		}
		return
	}
	fmt.Fprintf(w, "proxied cookie=%s", r.Header.Get("Cookie"))
}

func (p *relay) tunnel(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(up, c)
		_ = up.Close()
	}()
	_, _ = io.Copy(c, up)
	_ = c.Close()
	<-done
}

// socks serves SOCKS 5 (RFC 1928), without authentication.
func (p *relay) socks(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				b := make([]byte, 300)
				if _, err := io.ReadFull(c, b[:2]); err != nil {
					return
				}
				_, _ = io.ReadFull(c, b[:b[1]])
				_, _ = c.Write([]byte{5, 0})
				if _, err := io.ReadFull(c, b[:5]); err != nil || b[3] != 3 {
					return
				}
				name := b[5 : 5+int(b[4])+2]
				_, _ = io.ReadFull(c, name)
				p.note("SOCKS %s:%d", name[:len(name)-2], int(name[len(name)-2])<<8|int(name[len(name)-1]))
				_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
				p.tunnel(c)
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

func TestProxiesOfHosts(t *testing.T) {
	cert, roots := certificate(t, "*.example", time.Now().Add(time.Hour))
	origin := web(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "origin "+r.RequestURI) })
	secure := secureWeb(t, cert, seenBy)
	plain, tunnel := &relay{to: origin}, &relay{to: secure}
	login := base64.StdEncoding.EncodeToString([]byte("me:hunter2"))
	proxies := []*url.URL{
		{Scheme: "http", Host: web(t, plain.ServeHTTP), User: url.UserPassword("me", "hunter2")},
		{Scheme: "http", Host: web(t, tunnel.ServeHTTP), User: url.UserPassword("me", "hunter2")},
		{Scheme: "socks5", Host: plain.socks(t)},
	}
	f := newFetcher(t, Options{TLS: &tls.Config{RootCAs: roots}, Proxy: proxies[0], Resolve: map[string]string{"*": origin}, Sites: []Site{
		{Scope: "https://a.example", Proxy: proxies[1]}, {Scope: "*.socks.example", Proxy: proxies[2]}, {Scope: "d.socks.example", Direct: true},
		{Scope: "https://a.example", Secret: true, Header: http.Header{"Authorization": {"Basic hunter2"}}},
	}})
	ask := func(u, want string) *Result {
		t.Helper()
		res, err := get(t, f, u)
		require.NoError(t, err, u)
		assert.Contains(t, body(t, res), want, u)
		assert.NotContains(t, string(res.Request), "Proxy-Authorization", u)
		return res
	}
	ask("http://a.example:81/x?y=%zz", "proxied")
	assert.Equal(t, []string{"GET http://a.example:81/x?y=%zz Basic " + login}, plain.took())
	ask("https://a.example/", "auth=Basic hunter2")
	assert.Equal(t, []string{"CONNECT a.example:443 Basic " + login}, tunnel.took(), "the secret is inside the tunnel")
	ask("http://b.socks.example/x", "origin /x")
	assert.Equal(t, []string{"SOCKS b.socks.example:80"}, plain.took())
	ask("http://d.socks.example/x", "origin /x")
	assert.Empty(t, plain.took())
	assert.Empty(t, tunnel.took())

	for host, want := range map[string]bool{"a.example": true, "b.socks.example": true, "d.socks.example": false} {
		assert.Equal(t, want, f.Proxied(host), host)
	}
	assert.False(t, newFetcher(t, Options{}).Proxied("a.example"))
	m, err := NewModule("ftp", "21", Options{Sites: []Site{{Scope: "a.example", Proxy: proxies[2]}}}, nil)
	require.NoError(t, err)
	_, err = m.Fetch(t.Context(), Request{URL: "ftp://a.example/"})
	assert.Equal(t, Blocked, ClassOf(err), "not around the proxy")
	assert.ErrorContains(t, err, "ftp cannot go through one")
}

// lookupOf finds the same addresses for all names, which it notes.
func lookupOf(names *[]string, found ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		*names = append(*names, host)
		if len(found) == 0 {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		return addrs(found...), nil
	}
}

// Addresses of hosts behind a proxy are looked up only if that is wanted, and only to be known.
func TestAddressesBehindAProxy(t *testing.T) {
	var names []string
	o := Options{Networks: Networks{Deny: prefixes("192.0.2.0/24")}, Lookup: lookupOf(&names, "192.0.2.7", "192.0.2.7", "2001:db8::7"),
		Sites: []Site{{Scope: "*.a.example", Proxy: &url.URL{Scheme: "socks5", Host: "127.0.0.1:1"}}}}
	ask := func(u string) ([]netip.Addr, error) { return newFetcher(t, o).Addresses(t.Context(), u) }
	got, err := ask("http://b.a.example/")
	require.NoError(t, err)
	assert.Empty(t, got)
	assert.Empty(t, names, "the name is the proxy's to look up")
	o.ProxyLookup = true
	got, err = ask("http://b.a.example/")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.7", "2001:db8::7"), got, "the proxy contacts them, not this machine")
	assert.Equal(t, []string{"b.a.example"}, names)
	got, err = ask("http://192.0.2.9/")
	assert.Equal(t, Blocked, ClassOf(err), "without a proxy: %v", got)
	o.Sites[0].Scope = "192.0.2.9"
	got, err = ask("http://192.0.2.9/")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.9"), got)
	o.Lookup = lookupOf(&names)
	o.Sites[0].Scope = "unknown.example"
	got, err = ask("http://unknown.example/")
	require.NoError(t, err, "the proxy may know the name")
	assert.Empty(t, got)
}

func TestBadSites(t *testing.T) {
	_, err := New(Options{Sites: []Site{
		{Scope: ""}, {Scope: "ftp://a.example"}, {Scope: "a.*.example"}, {Scope: "a.example:80"}, {Scope: "http://a.example:99999"}, {Scope: "http://a.example/x"},
		{Scope: "*", Secret: true}, {Scope: "*.co.uk", Secret: true}, {Scope: "https://*.github.io", Secret: true}, {Scope: "*.corp", Secret: true},
		{Scope: "a.example", Header: http.Header{"Authorization": {"hunter2"}}},
		{Scope: "a.example", Header: http.Header{"user-agent": {"x"}, "X Y": {"x"}, "X-Y": {"hunter2\n"}}},
		{Scope: "a.example", Cookies: []*http.Cookie{{Name: "a=b", Value: "x"}, {Name: "bad", Value: "hunter2;"}, {Name: "blank", Value: "hunter2 "}, {Name: "odd name[]", Value: "a b,c"}}},
		{Scope: "a.example", Proxy: &url.URL{Scheme: "ftp", Host: "p", User: url.UserPassword("me", "hunter2")}, Direct: true},
		{Scope: "b.example", Cookies: cookie("c", "1")}, {Scope: "B.example.", Cookies: cookie("c", "hunter2")},
	}})
	for _, want := range []string{
		`Sites[0], for "": `, `Sites[1], for "ftp://a.example": "ftp://a.example": want http:// or https://`, `Sites[2], for "a.*.example"`, `Sites[3], for "a.example:80"`,
		`Sites[4], for "http://a.example:99999": "http://a.example:99999": want a port from 1 to 65535`, `Sites[5], for "http://a.example/x"`,
		"Sites[6], for \"*\": a secret for all hosts", "a secret for *.co.uk would go to strangers", "a secret for *.github.io would go to strangers",
		"Authorization must be a secret", "user-agent cannot be set: Options.UserAgent sets it", `"X Y" is not the name of a header field`, "X-Y has control characters",
		`the cookie "a=b"`, `the cookie "bad"`, `the cookie "blank"`, `its proxy is "ftp://me:xxxxx@p"; want http://`, "want one of them", `Sites[15], for "B.example.": the cookie c is set twice`,
	} {
		assert.ErrorContains(t, err, want)
	}
	for _, not := range []string{"hunter2", "Sites[9]", "Sites[14]"} {
		assert.NotContains(t, err.Error(), not)
	}
}
