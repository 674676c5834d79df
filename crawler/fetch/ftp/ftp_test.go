// These tests fetch from servers that do as the RFCs say.

package ftp

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// site is a server with files and folders.
func site(t testing.TB, change ...func(*server)) *server {
	s := &server{
		files: map[string]string{
			"/": "", "/pub/": "", "/pub/a b/": "", "/pub/readme.txt": "hello\r\nworld\n", "/pub/x;y?z#": "odd", "/index.html": "<a href=pub/>x</a>",
			"/robots.txt": "User-agent: *\nDisallow: /secret\n", "/empty": "",
		},
		times: map[string]string{"/pub/readme.txt": "20240102030405"},
		feat:  []string{"MDTM", "SIZE", "MLST type*;size*;modify*;", "UTF8"},
		list: func(dir string) string {
			return "type=cdir;modify=20240101000000; " + dir + "\r\ntype=pdir; ..\r\n" +
				"type=file;size=13;modify=20240102030405; readme.txt\r\n" +
				"Type=dir;Modify=20240101000000.123; a b\r\n" +
				"type=file;size=3; x;y?z#\r\ntype=file;size=1; javascript:x\r\n" +
				"type=file;size=1; <b>\"&\x1b[31m\xff.txt\r\ntype=OS.unix=slink:/etc;size=1; link\r\nrubbish\r\n"
		},
	}
	for _, c := range change {
		c(s)
	}
	return serve(t, s)
}

func TestFile(t *testing.T) {
	s := site(t)
	res, body, err := get(t, quick(s), fetch.Request{URL: "ftp://a.example/pub/readme.txt"})
	require.NoError(t, err)
	assert.Equal(t, "hello\r\nworld\n", body, "as it is: TYPE I")
	assert.Equal(t, 200, res.Status)
	assert.Equal(t, "FTP", res.Proto)
	assert.Equal(t, http.Header{"Content-Type": {"text/plain"}, "Content-Length": {"13"}, "Last-Modified": {"Tue, 02 Jan 2024 03:04:05 GMT"}}, res.Header)
	assert.EqualValues(t, 13, res.Bytes)
	assert.Equal(t, netip.MustParseAddrPort(s.addr()), res.Remote)
	assert.False(t, res.Truncated)
	assert.Equal(t, []string{"MDTM pub/readme.txt", "SIZE pub/readme.txt", "RETR pub/readme.txt"}, s.commands())
	assert.Contains(t, s.lines(), "USER anonymous")
	assert.Contains(t, s.lines(), "PASS anonymous@")
}

func TestPaths(t *testing.T) {
	s := site(t)
	for u, want := range map[string]string{
		"ftp://a.example/pub/x%3By%3Fz%23":         "odd",
		"ftp://a.example/pub/x;y?z%23#fragment":    "odd",
		"ftp://a.example/%2Fpub/readme.txt":        "hello\r\nworld\n",
		"FTP://a.example/pub/readme.txt;type=a":    "hello\r\nworld\n",
		"ftp://me:secret@a.example/robots.txt":     "User-agent: *\nDisallow: /secret\n",
		"ftp://a.example/empty":                    "",
		"ftp://a.example:21/index.html;TYPE=I":     "<a href=pub/>x</a>",
		"ftp://a.example/index.html#;type=d":       "<a href=pub/>x</a>",
		"ftp://a.example/pub/../pub/../index.html": "<a href=pub/>x</a>",
	} {
		res, body, err := get(t, quick(s), fetch.Request{URL: u})
		require.NoError(t, err, u)
		assert.Equal(t, 200, res.Status, u)
		assert.Equal(t, want, body, u)
	}
	for _, l := range s.lines() {
		assert.NotContains(t, l, "secret")
	}
	for _, u := range []string{"http://a.example/", "ftp:///x", "ftp://a.example/a%0d%0aDELE%20b", "ftp://a.example/%00", "ftp://a.example/%zz", "ftp:a"} {
		_, _, err := get(t, quick(s), fetch.Request{URL: u})
		assert.Equal(t, fetch.BadURL, fetch.ClassOf(err), u)
	}
}

func TestFolder(t *testing.T) {
	const page = "ftp://a.example/pub/"
	want := []string{page + "readme.txt", page + "a%20b/", page + "x%3By%3Fz%23", page + "javascript:x", page + "%3Cb%3E%22&%1B%5B31m%FF.txt", page + "link"}
	unix := "total 12\r\ndrwxr-xr-x   2 ftp ftp 4096 Jan 01  2024 a b\r\n-rw-r--r--   1 ftp ftp       13 Jan 02  2024 readme.txt\r\n" +
		"lrwxrwxrwx   1 ftp ftp        4 Jan 02 03:04 link -> /etc\r\ndrwxr-xr-x 2 0 0 4096 Jan 01 2024 .\r\nd--------- 2 0 0 4096 Jan 01 2024 ..\r\n"
	dos := "01-02-24  03:04AM                   13 readme.txt\r\n01-01-24  12:00AM       <DIR>          a b\r\n"
	for name, tt := range map[string]struct {
		change func(*server)
		want   []string
	}{
		"MLSD":          {func(*server) {}, want},
		"without EPSV":  {func(s *server) { s.say = refuse("EPSV", "500 what?") }, want},
		"LIST of Unix":  {func(s *server) { s.feat, s.list = nil, func(string) string { return unix } }, []string{page + "a%20b/", page + "readme.txt", page + "link"}},
		"LIST of DOS":   {func(s *server) { s.feat, s.list = []string{"SIZE"}, func(string) string { return dos } }, []string{page + "readme.txt", page + "a%20b/"}},
		"nothing in it": {func(s *server) { s.list = func(string) string { return "" } }, nil},
		"ends with 250": {func(s *server) { s.after = "250 all sent" }, want},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(t, tt.change)
			res, body, err := get(t, quick(s), fetch.Request{URL: page})
			require.NoError(t, err)
			assert.Equal(t, 200, res.Status)
			doc, err := link.Extract(strings.NewReader(body), res.Header.Get("Content-Type"), page, link.Options{})
			require.NoError(t, err)
			assert.Equal(t, "Index of /pub/", doc.Title)
			var got []string
			for _, l := range doc.Links {
				got = append(got, l.URL)
			}
			assert.Equal(t, tt.want, got)
			assert.NotContains(t, body, "\x1b")
			assert.Contains(t, s.commands(), "CWD pub")
		})
	}
}

// refuse answers one command.
func refuse(cmd, with string) func(string, string) string {
	return func(c, _ string) string {
		if c == cmd {
			return with
		}
		return ""
	}
}

func TestRootIsWhereTheLoginLeads(t *testing.T) {
	for _, u := range []string{"ftp://a.example", "ftp://a.example/", "ftp://a.example/;type=d"} {
		s := site(t)
		res, _, err := get(t, quick(s), fetch.Request{URL: u})
		require.NoError(t, err)
		assert.Equal(t, 200, res.Status)
		assert.Equal(t, []string{"MLSD"}, s.commands(), u)
	}
}

func TestFolderWithoutSlashRedirects(t *testing.T) {
	for u, want := range map[string]string{
		"ftp://a.example/pub/a%20b": "ftp://a.example/pub/a%20b/", "ftp://a.example/pub;type=i#x": "ftp://a.example/pub/",
	} {
		s := site(t)
		res, _, err := get(t, quick(s), fetch.Request{URL: u})
		require.NoError(t, err)
		assert.Equal(t, 301, res.Status)
		assert.Equal(t, want, res.Header.Get("Location"))
	}
}

func TestNotModified(t *testing.T) {
	for since, want := range map[string]int{"Tue, 02 Jan 2024 03:04:05 GMT": 304, "Tue, 02 Jan 2024 03:04:04 GMT": 200, "nonsense": 200} {
		s := site(t)
		res, _, err := get(t, quick(s), fetch.Request{URL: "ftp://a.example/pub/readme.txt", Header: http.Header{"If-Modified-Since": {since}}})
		require.NoError(t, err)
		assert.Equal(t, want, res.Status, since)
		assert.Equal(t, want == 304, res.Body == nil)
	}
}

func TestUnwantedIsNotRead(t *testing.T) {
	s := site(t)
	no := errors.New("no")
	for _, u := range []string{"ftp://a.example/pub/readme.txt", "ftp://a.example/pub/"} {
		var asked http.Header
		res, _, err := get(t, quick(s), fetch.Request{URL: u, Admit: func(_ int, h http.Header) error { asked = h; return no }})
		assert.Equal(t, fetch.Unwanted, fetch.ClassOf(err))
		assert.ErrorIs(t, err, no)
		assert.Nil(t, res.Body)
		assert.Zero(t, res.Bytes)
		assert.NotEmpty(t, asked.Get("Content-Type"))
		assert.Equal(t, 200, res.Status)
	}
}

func TestLoginIsConfigurable(t *testing.T) {
	s := site(t)
	o := quick(s)
	o.User, o.Password = "me", "it's me"
	_, _, err := get(t, o, fetch.Request{URL: "ftp://a.example/empty"})
	require.NoError(t, err)
	assert.Contains(t, s.lines(), "USER me")
	assert.Contains(t, s.lines(), "PASS it's me")
	o.User, o.Proxy, o.MaxBody = "me\r\nDELE x", &url.URL{Scheme: "http", Host: "p.example"}, -1
	_, err = New(o)
	assert.ErrorContains(t, err, "User and Password")
	assert.ErrorContains(t, err, "cannot go through one")
	assert.ErrorContains(t, err, "MaxBody is -1")
}

func TestAddresses(t *testing.T) {
	s := site(t)
	f, err := New(quick(s))
	require.NoError(t, err)
	got, err := f.Addresses(t.Context(), "ftp://a.example/x")
	require.NoError(t, err)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, got)
	_, err = f.Addresses(t.Context(), "http://a.example/x")
	assert.Equal(t, fetch.BadURL, fetch.ClassOf(err))
	o := quick(s)
	o.Resolve["a.example"] = "192.0.2.1:" + strings.Split(s.addr(), ":")[1]
	_, body, err := get(t, o, fetch.Request{URL: "ftp://a.example/index.html", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	assert.Equal(t, fetch.Blocked, fetch.ClassOf(err), "an address that was not looked up here is judged")
	assert.Empty(t, body)
	o.Networks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	_, body, err = get(t, o, fetch.Request{URL: "ftp://a.example/index.html", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	require.NoError(t, err)
	assert.NotEmpty(t, body)
}

// When Fetch returns nothing is open any more, and never was more than one contact.
func TestContactIsOver(t *testing.T) {
	s := site(t)
	f, err := New(quick(s))
	require.NoError(t, err)
	for range 5 {
		res, err := f.Fetch(t.Context(), fetch.Request{URL: "ftp://a.example/pub/readme.txt"})
		require.NoError(t, err)
		require.NoError(t, res.Close())
		assert.Positive(t, res.Timing.Connect)
		assert.Positive(t, res.Timing.Header)
		assert.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) == 0 }, time.Minute, time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1, s.most)
}
