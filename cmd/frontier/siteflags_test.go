// This file tests headers, cookies, logins and proxies of some hosts, by what servers see.

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// brought is a web whose hosts want different things of a request, and that notes what came.
type brought struct {
	mu  sync.Mutex
	got map[string]string // guarded by mu; by URL
}

func (b *brought) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	b.mu.Lock()
	b.got["http://"+r.Host+r.URL.Path] = strings.Join([]string{
		r.Header.Get("Accept-Language"), r.Header.Get("X-Key"), r.Header.Get("Cookie"), user + ":" + password, r.Header.Get("Via"),
	}, "|")
	b.mu.Unlock()
	switch r.URL.Path {
	case "/robots.txt":
	case "/1":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<a href="/2">here</a> <a href="http://b.example/2">there</a> <a href="/away">and away</a>`)
	case "/away":
		http.Redirect(w, r, "http://b.example/3", http.StatusFound)
	default:
		fmt.Fprint(w, "hello")
	}
}

// files is all text in a folder, decompressed.
func files(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if z, bad := gzip.NewReader(bytes.NewReader(b)); bad == nil {
			b, err = io.ReadAll(z)
		}
		all.Write(b)
		return err
	}))
	return all.String()
}

// A login, a key and cookies go to the hosts that they are for and to no other, with robots.txt,
// too; and they are in no file, log or print of the crawl.
func TestWhatSomeHostsGet(t *testing.T) {
	web := &brought{got: map[string]string{}}
	s := httptest.NewServer(web)
	defer s.Close()
	home := t.TempDir()
	t.Chdir(home)
	require.NoError(t, os.WriteFile("login", []byte("me:hunter2\nmore\n"), 0o600))
	t.Setenv("SHOP_KEY", "hunter2")
	args := []string{"-dir", "state", "-warc", "warc", "-log", "log", "-v", "-resolve", "*.example=" + s.Listener.Addr().String(), "-scope-domains", "example",
		"-header", "* Accept-Language: de", "-header", "b.example Accept-Language:", "-header", "http://a.example X-Key: env:SHOP_KEY",
		"-cookie", "*.example consent=yes", "-cookie", "http://a.example session=env:SHOP_KEY", "-auth", "http://a.example basic file:login", "http://a.example/1"}
	status, out, stderr := command(t, t.Context(), args...)
	require.Zero(t, status, stderr)
	const all, none = "de|hunter2|consent=yes; session=hunter2|me:hunter2|", "||consent=yes|:|"
	assert.Equal(t, map[string]string{
		"http://a.example/robots.txt": all, "http://a.example/1": all, "http://a.example/2": all, "http://a.example/away": all,
		"http://b.example/robots.txt": none, "http://b.example/2": none, "http://b.example/3": none,
	}, web.got)

	require.NoError(t, os.Remove("login"))
	require.NoError(t, os.WriteFile("secret", []byte("me:hunter2"), 0o600))
	kept := files(t, "state")
	for name, text := range map[string]string{"output": out, "log": stderr, "state": kept, "ends": files(t, "log"), "archive": files(t, "warc")} {
		assert.NotContains(t, text, "hunter2", name)
		assert.NotContains(t, text, "bWU6aHVudGVyMg", name)
	}
	assert.Contains(t, files(t, "warc"), "Authorization: redacted\r\n")
	assert.Contains(t, files(t, "warc"), "session=redacted\r\n")
	assert.Contains(t, kept, "'http://a.example basic file:"+filepath.Join(home, "login")+"'", "resume finds it from elsewhere")
	assert.Contains(t, kept, "'http://a.example X-Key: env:SHOP_KEY'")

	status, _, stderr = operate(t, "resume", "state")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, `auth for "http://a.example": open `+filepath.Join(home, "login"))
	status, out, stderr = operate(t, "add", "-dir", "state", "http://a.example/4")
	require.Zero(t, status, stderr)
	assert.Contains(t, out, "1 URL added", "it fetches nothing, and needs no secret")
	status, _, stderr = operate(t, "resume", "-page", "off", "-auth", "http://a.example basic file:secret", "state")
	require.Zero(t, status, stderr)
	assert.Equal(t, all, web.got["http://a.example/4"])
}

// Hosts of one crawl go through different proxies, and one through none.
func TestProxiesOfSomeHosts(t *testing.T) {
	web := &brought{got: map[string]string{}}
	origin := httptest.NewServer(web)
	defer origin.Close()
	via := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := strings.Cut(r.Header.Get("Proxy-Authorization"), " ")
			r.Header.Set("Via", strings.TrimSpace(name+" "+user+" "+password))
			web.ServeHTTP(w, r)
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	t.Setenv("LOCAL_PROXY", "http://me:hunter2@"+via("local"))
	status, _, stderr := command(t, t.Context(), "-proxy", "http://"+via("common"), "-proxy-for", "b.example env:LOCAL_PROXY", "-proxy-for", "*.direct.example direct",
		"-resolve", "x.direct.example="+origin.Listener.Addr().String(), "http://a.example/1", "http://b.example/1", "http://x.direct.example/1")
	require.Zero(t, status, stderr)
	for host, want := range map[string]string{"a.example": "common", "b.example": "local Basic bWU6aHVudGVyMg==", "x.direct.example": ""} {
		for _, path := range []string{"/robots.txt", "/1", "/2"} {
			assert.Equal(t, "|||:|"+want, web.got["http://"+host+path], host+path)
		}
	}
	assert.NotContains(t, stderr, "hunter2")
}

func TestBadSiteFlags(t *testing.T) {
	t.Setenv("LOGIN", "hunter2")
	t.Setenv("PROXY", "ftp://me:hunter2@p")
	for want, args := range map[string][]string{
		`-header for "a.example": want a host`:                                  {"-header", "a.example"},
		`-header for "a.example": want a host,`:                                 {"-header", "a.example hunter2"},
		`-header for "a.example": the header field Authorization is set by`:     {"-header", "a.example Authorization: Basic hunter2"},
		`-header for "a.example": the header field Cookie cannot be set: use`:   {"-header", "a.example Cookie: hunter2"},
		`the header field host cannot be set`:                                   {"-header", "a.example host: hunter2"},
		`the environment has no NOTHING, or it is empty`:                        {"-header", "a.example X: env:NOTHING"},
		`a secret for all hosts is none`:                                        {"-header", "* X: env:LOGIN"},
		`a secret for *.co.uk would go to strangers`:                            {"-cookie", "*.co.uk x=env:LOGIN"},
		`-cookie for "a.example": want a host`:                                  {"-cookie", "a.example x"},
		`the cookie "x" has a name or value that cannot be sent`:                {"-cookie", "a.example x=hunter2;"},
		`-auth for "a.example": a login is a secret, which stands in no`:        {"-auth", "a.example basic me:hunter2"},
		`-auth for "a.example": "digest": want basic or bearer`:                 {"-auth", "a.example digest env:LOGIN"},
		`what env:NAME or file:PATH has is not user:password`:                   {"-auth", "a.example basic env:LOGIN"},
		`-auth for "a.example": open /nothing/there`:                            {"-auth", "a.example bearer file:/nothing/there"},
		`-auth for "crawl:3": "crawl:3" is not a host key`:                      {"-auth", "crawl:3 bearer env:LOGIN"},
		`-auth: fetch: options: in Sites[1], for "a.example": the header field`: {"-auth", "a.example bearer env:LOGIN", "-auth", "a.example bearer env:LOGIN"},
		`the proxy is set twice`:                                                {"-proxy-for", "a.example direct", "-proxy-for", "a.example http://p:1"},
		`-proxy-for for "a.example": want a host`:                               {"-proxy-for", "a.example"},
		`a password stands in no command line`:                                  {"-proxy-for", "a.example http://me:hunter2@p"},
		`its proxy is "ftp://me:xxxxx@p"; want http://, https:// or socks5:`:    {"-proxy-for", "a.example env:PROXY"},
		`it is "http://p:99999"; want a port`:                                   {"-proxy-for", "a.example http://p:99999"},
		`Proxy is "ftp://me:xxxxx@p"; want http://, https:// or socks5://`:      {"-proxy", "env:PROXY"},
	} {
		status, out, stderr := command(t, t.Context(), append(args, "http://a.example/")...)
		assert.Equal(t, exitUsage, status, want)
		assert.Empty(t, out)
		assert.Contains(t, stderr, want)
		assert.NotContains(t, stderr, "hunter2")
	}
	path := configured(t, "seeds = ['http://a.example/']\nauth = [\n  'b.example bearer env:LOGIN',\n  'a.example basic hunter2:hunter2',\n]\n")
	status, _, stderr := command(t, t.Context(), "-config", path)
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, path+`:4: auth for "a.example": a login`)
	assert.NotContains(t, stderr, "hunter2")
}
