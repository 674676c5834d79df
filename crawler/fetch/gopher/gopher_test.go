// These tests fetch from a small Gopher server on loopback, which can be made to misbehave.

package gopher

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers selectors by a function, one for each connection, until the test
// ends. It returns the address.
func serve(t testing.TB, answer func(c net.Conn, selector string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[c] = true
			mu.Unlock()
			all.Go(func() {
				defer c.Close()
				line, err := bufio.NewReader(c).ReadString('\n')
				if err == nil {
					answer(c, strings.TrimSuffix(line, "\r\n"))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}

// hole answers from a table, and else with an error as servers do.
func hole(items map[string]string) func(net.Conn, string) {
	return func(c net.Conn, selector string) {
		if text, ok := items[selector]; ok {
			_, _ = io.WriteString(c, text)
			return
		}
		_, _ = io.WriteString(c, "3'"+selector+"' does not exist\x1b (no handler found)\t\terror.host\t1\r\n.\r\n")
	}
}

func options(addr string) fetch.Options {
	return fetch.Options{Resolve: map[string]string{"*": addr}}
}

// get fetches a URL and closes the Result with the test.
func get(t testing.TB, o fetch.Options, r fetch.Request) (*fetch.Result, string, error) {
	t.Helper()
	f, err := New(o)
	require.NoError(t, err)
	res, err := f.Fetch(t.Context(), r)
	t.Cleanup(func() { assert.NoError(t, res.Close()) })
	assert.False(t, res.Ended.Before(res.Started))
	body, readErr := res.Body.Bytes()
	require.NoError(t, readErr)
	return res, string(body), err
}

const menuText = "iWelcome <here>\t\terror.host\t1\r\n" +
	"0A text\t/a b?.txt\tA.example\t70\r\n" +
	"1Menu\t\tb.example\t7070\t+\r\n" +
	"+The same\t/x\tc.example\t70\r\n" +
	"7Search\t/find\ta.example\t70\r\n8Shell\tlogin\ta.example\t23\r\n2Phones\t\ta.example\t105\r\nTBig\t\ta.example\t23\r\n3No\t\ta.example\t70\r\n" +
	"hWeb\tURL:https://w.example/?a&b\tx\t70\r\nhScript\tURL:javascript:alert(1)\tx\t70\r\nhPage\t/page.html\ta.example\t70\r\n" +
	"9Binary\t/x\\y#\ta.example\t70\r\nIPicture\tpic.png\t::1\t70\r\n" +
	"1No port\t/\ta.example\r\n1Bad port\t/\ta.example\t0\r\n1Bad port\t/\ta.example\t99999\r\n1Bad host\t/\ta.example/x@evil\t70\r\n1No host\t/\t\t70\r\n" +
	"\tno type\ta.example\t70\r\nnot an item\r\n" +
	"0Caf\xe9 \x1b[31m\t/caf\xe9\ta.example\t70\n" +
	".\r\n0after the end\t/never\ta.example\t70\r\n"

func TestMenu(t *testing.T) {
	addr := serve(t, hole(map[string]string{"": menuText, "/find\tall words": menuText}))
	for _, u := range []string{"gopher://a.example", "gopher://a.example/", "gopher://a.example/1", "gopher://a.example/7/find%09all%20words"} {
		res, body, err := get(t, options(addr), fetch.Request{URL: u})
		require.NoError(t, err)
		assert.Equal(t, 200, res.Status)
		assert.Equal(t, "Gopher", res.Proto)
		assert.Equal(t, netip.MustParseAddrPort(addr), res.Remote)
		assert.Positive(t, res.Bytes)
		assert.NotContains(t, body, "\x1b")
		assert.Contains(t, body, "Welcome &lt;here&gt;")
		assert.Contains(t, body, "Search")
		doc, err := link.Extract(strings.NewReader(body), res.Header.Get("Content-Type"), u, link.Options{Normalizer: urlnorm.New().Accept("gopher", "70")})
		require.NoError(t, err)
		assert.Equal(t, "utf-8", doc.Charset)
		var got []string
		for _, l := range doc.Links {
			got = append(got, l.URL)
			if l.URL == "gopher://a.example/0/caf%E9" {
				assert.Equal(t, "Café ?[31m", l.Text)
			}
		}
		assert.Equal(t, []string{
			"gopher://a.example/0/a%20b%3F.txt", "gopher://b.example:7070/", "gopher://c.example/1/x", "https://w.example/?a&b",
			"gopher://a.example/h/page.html", "gopher://a.example/9/x%5Cy%23", "gopher://[::1]/Ipic.png", "gopher://a.example/0/caf%E9",
		}, got)
	}
}

func TestItems(t *testing.T) {
	addr := serve(t, hole(map[string]string{
		"/text": "one\r\n..two\r\n...\r\n.three\r\n.\r\n", "/open": "one\n..two\nthree", "/dot": ".\r\n", "/none": "", "/3": "3 apples\r\n4 pears\r\n",
		"/bytes": "\x00.\r\n.\r\n", "/page": "<a href=x>", "x y": "z", "/robots.txt": "User-agent: *\r\nDisallow: /private\r\n", "/long.": "end.\r\n",
		"/fruit": "3 apples\tred\tfresh\tmany\r\nand a line of text\r\n",
	}))
	for u, want := range map[string]struct{ kind, body string }{
		"gopher://a.example/0/text":           {"text/plain", "one\r\n.two\r\n..\r\nthree\r\n"},
		"gopher://a.example/0/open":           {"text/plain", "one\n..two\nthree"},
		"gopher://a.example/0/dot":            {"text/plain", ""},
		"gopher://a.example/0/none":           {"text/plain", ""},
		"gopher://a.example/0/long.":          {"text/plain", "end.\r\n"},
		"gopher://a.example/0/3":              {"text/plain", "3 apples\r\n4 pears\r\n"},
		"gopher://a.example/0/fruit":          {"text/plain", "3 apples\tred\tfresh\tmany\r\nand a line of text\r\n"},
		"gopher://a.example/9/bytes":          {"application/octet-stream", "\x00.\r\n.\r\n"},
		"gopher://a.example/h/page":           {"text/html", "<a href=x>"},
		"gopher://a.example:70/Ix%20y#frag":   {"", "z"},
		"gopher://me:pw@a.example/robots.txt": {"text/plain", "User-agent: *\r\nDisallow: /private\r\n"},
	} {
		res, body, err := get(t, options(addr), fetch.Request{URL: u})
		require.NoError(t, err, u)
		assert.Equal(t, 200, res.Status, u)
		assert.Equal(t, want.kind, res.Header.Get("Content-Type"), u)
		assert.Equal(t, want.body, body, u)
	}
	for _, u := range []string{"gopher://a.example/0/nothing", "gopher://a.example/1/nothing", "gopher://a.example/9x"} {
		res, _, err := get(t, options(addr), fetch.Request{URL: u})
		require.NoError(t, err)
		assert.Equal(t, 404, res.Status, u)
		assert.Nil(t, res.Body)
		assert.NotContains(t, res.Header.Get("Gopher-Error"), "\x1b")
		assert.Contains(t, res.Header.Get("Gopher-Error"), "does not exist")
	}
	for _, u := range []string{"http://a.example/", "gopher:///1", "gopher://a.example/0a%0d%0ab", "gopher://a.example/0%00", "gopher://a.example/0%z", "gopher://a.example/7/find", "gopher://a.example/8x", "gopher:x"} {
		_, _, err := get(t, options(addr), fetch.Request{URL: u})
		assert.Equal(t, fetch.BadURL, fetch.ClassOf(err), u)
	}
}

func TestRulesAreForSelectors(t *testing.T) {
	f, err := New(fetch.Options{})
	require.NoError(t, err)
	for u, want := range map[string]string{
		"gopher://a.example/1/private/x": "gopher://a.example/private/x", "gopher://a.example/0private": "gopher://a.example/private",
		"gopher://a.example/": "gopher://a.example/", "gopher://a.example": "gopher://a.example", "gopher://a.example/1": "gopher://a.example/",
		"gopher://a.example/robots.txt": "gopher://a.example/robots.txt", "x": "x",
	} {
		assert.Equal(t, want, f.RobotsURL(u), u)
	}
}

func TestUnwantedIsNotRead(t *testing.T) {
	no := errors.New("no")
	res, _, err := get(t, options(serve(t, hole(map[string]string{"x": "y"}))), fetch.Request{URL: "gopher://a.example/9x", Admit: func(_ int, h http.Header) error {
		assert.Equal(t, "application/octet-stream", h.Get("Content-Type"))
		return no
	}})
	assert.Equal(t, fetch.Unwanted, fetch.ClassOf(err))
	assert.ErrorIs(t, err, no)
	assert.Nil(t, res.Body)
}

func TestOwnNetworkIsNotContacted(t *testing.T) {
	addr := serve(t, func(net.Conn, string) { t.Error("asked") })
	_, _, err := get(t, fetch.Options{}, fetch.Request{URL: "gopher://" + addr + "/"})
	assert.Equal(t, fetch.Blocked, fetch.ClassOf(err))
}

// endless writes until the client has left.
func endless(piece string) func(net.Conn, string) {
	return func(c net.Conn, _ string) {
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}
}

func TestWithoutEnd(t *testing.T) {
	for name, tt := range map[string]struct{ url, piece string }{
		"menu":              {"gopher://a.example/1", "1x\t\ta.example\t70\r\n"},
		"line of a menu":    {"gopher://a.example/1", "1xxxxxxxxxx"},
		"text":              {"gopher://a.example/0", "text\r\n"},
		"dots":              {"gopher://a.example/0", ".\r\n"},
		"bytes":             {"gopher://a.example/9", "\x00"},
		"errors":            {"gopher://a.example/9", "3x\t\ta.example\t70\r\n"},
		"what is no gopher": {"gopher://a.example/9", "HTTP/1.1 400 Bad Request\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			res, body, err := get(t, options(serve(t, endless(tt.piece))), fetch.Request{URL: tt.url, MaxBody: 10_000})
			require.NoError(t, err)
			assert.True(t, res.Truncated)
			assert.LessOrEqual(t, len(body), 10_000+200)
			assert.Less(t, res.Bytes, int64(30_000))
		})
	}
}

func TestSilence(t *testing.T) {
	for name, change := range map[string]func(*fetch.Options){
		"nothing at all":     func(o *fetch.Options) { o.HeaderTimeout = 50 * time.Millisecond },
		"it takes too long":  func(o *fetch.Options) { o.Timeout = 50 * time.Millisecond },
		"nothing more comes": func(o *fetch.Options) { o.IdleTimeout = 50 * time.Millisecond },
		"little comes":       func(o *fetch.Options) { o.MinRate, o.RateWindow = 1<<20, 50*time.Millisecond },
	} {
		for _, u := range []string{"gopher://a.example/1", "gopher://a.example/0x", "gopher://a.example/9x"} {
			t.Run(name, func(t *testing.T) {
				o := options(serve(t, func(c net.Conn, _ string) {
					switch name {
					case "nothing more comes":
						_, _ = io.WriteString(c, "1")
						fallthrough
					case "nothing at all":
						_, _ = c.Read(make([]byte, 1)) // until the client has left
						return
					}
					for {
						if _, err := io.WriteString(c, "x"); err != nil {
							return
						}
						<-time.After(time.Millisecond)
					}
				}))
				change(&o)
				_, _, err := get(t, o, fetch.Request{URL: u})
				assert.Equal(t, fetch.Timeout, fetch.ClassOf(err), "%v", err)
			})
		}
	}
}

// A text that has its end is whole, though the server does not hang up.
func TestEndIsNotWaitedFor(t *testing.T) {
	o := options(serve(t, func(c net.Conn, _ string) {
		_, _ = io.WriteString(c, "text\r\n.\r\n")
		_, _ = c.Read(make([]byte, 1))
	}))
	o.IdleTimeout = 50 * time.Millisecond
	o.HeaderTimeout = time.Minute
	_, body, err := get(t, o, fetch.Request{URL: "gopher://a.example/0x"})
	require.NoError(t, err)
	assert.Equal(t, "text\r\n", body)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f, err := New(options(serve(t, func(c net.Conn, _ string) {
		cancel()
		_, _ = c.Read(make([]byte, 1))
	})))
	require.NoError(t, err)
	res, err := f.Fetch(ctx, fetch.Request{URL: "gopher://a.example/"})
	require.NoError(t, res.Close())
	assert.Equal(t, fetch.Canceled, fetch.ClassOf(err))
}

func FuzzMenu(f *testing.F) {
	f.Add(menuText)
	f.Add("\t\t\t\n+\n1\n1\t\t\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		p := &page{limit: 1 << 12}
		if err := p.read(bufio.NewReaderSize(strings.NewReader(text), maxLine)); err != nil {
			t.Error(err)
		}
		if p.b.Len() > 1<<12 {
			t.Errorf("a page of %d bytes", p.b.Len())
		}
	})
}
