package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newFetcher may contact loopback, unless o says something of networks.
func newFetcher(t testing.TB, o Options) *Fetcher {
	t.Helper()
	if o.Networks.Allow == nil && o.Networks.Deny == nil {
		o.Networks.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("192.0.2.0/24"),
			netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("::1/128")}
	}
	f, err := New(o)
	require.NoError(t, err)
	t.Cleanup(f.CloseIdle)
	return f
}

// body is what a result holds.
func body(t testing.TB, r *Result) string {
	t.Helper()
	b, err := r.Body.Bytes()
	require.NoError(t, err)
	return string(b)
}

// web serves h and returns its address.
func web(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// raw serves each connection with fn, which has read the request's header. It
// counts connections and requests.
func raw(t testing.TB, fn func(c net.Conn)) (addr string, conns *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conns = new(atomic.Int64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer c.Close()
				buf, got := make([]byte, 4096), ""
				for !strings.Contains(got, "\r\n\r\n") {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					got += string(buf[:n])
				}
				fn(c)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), conns
}

// untilClosed blocks until the client has closed the connection.
func untilClosed(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func get(t testing.TB, f *Fetcher, url string) (*Result, error) {
	t.Helper()
	return f.Fetch(t.Context(), Request{URL: url})
}

func TestFetchSendsTheURLAsGiven(t *testing.T) {
	var got atomic.Value
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.RequestURI)
		assert.Equal(t, "mybot/1 (+http://me.example)", r.UserAgent())
		assert.Equal(t, "a.example", r.Host)
		fmt.Fprint(w, "hello")
	})
	f := newFetcher(t, Options{UserAgent: "mybot/1 (+http://me.example)", Resolve: map[string]string{"a.example": addr}})
	for in, want := range map[string]string{
		"":                   "/",
		"/a%7eb?q=%C3%a4|^#": "/a%7eb?q=%C3%a4|^",
		"/a%2Fb/../c":        "/a%2Fb/../c",
		"?q":                 "/?q",
		"//x/y":              "http://a.example//x/y",
		"/\u00e4 b":          "/%C3%A4%20b",
	} {
		res, err := get(t, f, "http://a.example"+in)
		require.NoError(t, err, in)
		assert.Equal(t, want, got.Load(), in)
		assert.Equal(t, "hello", body(t, res))
		assert.EqualValues(t, 5, res.Bytes)
	}
}

func TestFetchDoesNotFollowRedirects(t *testing.T) {
	var n atomic.Int64
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.Header().Set("Location", "http://%zz/")
		w.WriteHeader(302)
	})
	res, err := get(t, newFetcher(t, Options{}), "http://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, 302, res.Status)
	assert.Equal(t, "http://%zz/", res.Header.Get("Location"))
	assert.EqualValues(t, 1, n.Load())
}

func TestFetchRefusesBadURLs(t *testing.T) {
	f := newFetcher(t, Options{})
	for _, u := range []string{"", "a.example", "ftp://a.example/", "http:///x", "http://[::1/", "http://a b/", "mailto:x@a.example"} {
		res, err := get(t, f, u)
		assert.Equal(t, BadURL, ClassOf(err), u)
		assert.Zero(t, res.Duration(), u)
	}
}

func TestFetchSendsOneRequestWhateverHappens(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		class  Class
	}{
		"cut without an answer": {"", Cut},
		"half a header":         {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", Cut},
		"short body":            {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", Cut},
		"short chunk":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", Cut},
		"no status line":        {"hello\r\n\r\n", Protocol},
		"bad chunk":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab", Protocol},
		"header without end":    {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: "+strings.Repeat("b", 1000)+"\r\n", 500), Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			addr, conns := raw(t, func(nc net.Conn) { _, _ = io.WriteString(nc, c.answer) })
			_, err := get(t, newFetcher(t, Options{}), "http://"+addr+"/")
			assert.Equal(t, c.class, ClassOf(err), "%v", err)
			assert.EqualValues(t, 1, conns.Load())
		})
	}
}

func TestFetchIgnoresASecondAnswer(t *testing.T) {
	addr, _ := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
	})
	res, err := get(t, newFetcher(t, Options{}), "http://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, "ok", body(t, res))
}

func TestFetchTimeouts(t *testing.T) {
	const short, long = 50 * time.Millisecond, 10 * time.Second
	header := "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
	for name, c := range map[string]struct {
		o     Options
		drip  bool
		first string
	}{
		"header never comes":    {o: Options{HeaderTimeout: short}},
		"silent in the body":    {o: Options{IdleTimeout: short}, first: header},
		"a byte now and then":   {o: Options{Timeout: short}, first: header, drip: true},
		"header line by line":   {o: Options{HeaderTimeout: short}, first: "HTTP/1.1 200 OK\r\n", drip: true},
		"everything takes ages": {o: Options{Timeout: short}},
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan time.Time, 1)
			addr, conns := raw(t, func(nc net.Conn) {
				_, _ = io.WriteString(nc, c.first)
				if c.drip {
					for {
						if _, err := io.WriteString(nc, "x"); err != nil {
							break
						}
						time.Sleep(5 * time.Millisecond)
					}
				}
				untilClosed(nc)
				closed <- time.Now()
			})
			c.o.DialTimeout = long
			res, err := get(t, newFetcher(t, c.o), "http://"+addr+"/")
			assert.Equal(t, Timeout, ClassOf(err), "%v", err)
			assert.GreaterOrEqual(t, res.Duration(), short)
			assert.Less(t, (<-closed).Sub(res.Ended), 500*time.Millisecond, "the connection outlived Fetch")
			assert.EqualValues(t, 1, conns.Load())
		})
	}
}

func TestFetchCancelledWhileDialling(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	f := newFetcher(t, Options{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}})
	_, err := f.Fetch(ctx, Request{URL: "http://a.example/"})
	assert.Equal(t, Canceled, ClassOf(err))
	select {
	case <-ended:
	default:
		t.Error("Fetch returned before its dial did")
	}
}

func TestFetchErrorClasses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	_, err = get(t, newFetcher(t, Options{}), "http://"+addr+"/")
	assert.Equal(t, Connect, ClassOf(err), "%v", err)

	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, err = get(t, newFetcher(t, Options{}), s.URL+"/")
	assert.Equal(t, TLS, ClassOf(err), "%v", err)
	f := newFetcher(t, Options{TLS: s.Client().Transport.(*http.Transport).TLSClientConfig})
	res, err := get(t, f, s.URL+"/")
	require.NoError(t, err)
	assert.Equal(t, 404, res.Status)

	f = newFetcher(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "a.example"}}
	}})
	_, err = get(t, f, "http://a.example/")
	assert.Equal(t, DNS, ClassOf(err), "%v", err)
	assert.Equal(t, Other, ClassOf(io.EOF))
}

func gz(s string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.Bytes()
}

func TestFetchBodies(t *testing.T) {
	zeros := strings.Repeat("0", 1<<20)
	for name, c := range map[string]struct {
		encoding  string
		body      []byte
		want      string
		truncated bool
		class     Class
	}{
		"plain":                                {"", []byte("hello"), "hello", false, Other},
		"exactly the limit":                    {"", []byte(zeros[:1000]), zeros[:1000], false, Other},
		"one over the limit":                   {"", []byte(zeros[:1001]), zeros[:1000], true, Other},
		"gzip":                                 {"gzip", gz("hello"), "hello", false, Other},
		"gzip, limit":                          {"gzip", gz(zeros[:1000]), zeros[:1000], false, Other},
		"gzip, over the limit":                 {"X-Gzip", gz(zeros[:1001]), zeros[:1000], true, Other},
		"bomb":                                 {"gzip", gz(zeros), zeros[:1000], true, Other},
		"two members":                          {"gzip", append(gz("hello "), gz("world")...), "hello world", false, Other},
		"garbage after a member":               {"gzip", append(gz("hello"), "garbage garbage"...), "hello", false, Other},
		"plain, declared as gzip":              {"gzip", []byte("hello"), "hello", false, Other},
		"empty, declared as gzip":              {"gzip", nil, "", false, Other},
		"truncated gzip":                       {"gzip", gz("hello")[:15], "", false, Decode},
		"gzip, cut before its checksum":        {"gzip", gz("hello")[:len(gz("hello"))-8], "hello", false, Other},
		"gzip, wrong checksum":                 {"gzip", append(gz("hello")[:len(gz("hello"))-8], 1, 2, 3, 4, 5, 6, 7, 8), "hello", false, Other},
		"a byte after a member":                {"gzip", append(gz("hello"), '\n'), "hello", false, Other},
		"nine bytes after a member":            {"gzip", append(gz("hello"), "\x1f\x8b\x08345678"...), "hello", false, Other},
		"half a member after a member":         {"gzip", append(gz("hello"), gz("world")[:14]...), "hello", false, Decode},
		"corrupt gzip":                         {"gzip", append(gz("hello")[:10], 0xff, 0xff), "", false, Decode},
		"gzip with all fields":                 {"gzip", append([]byte("\x1f\x8b\x08\x1e\x00\x00\x00\x00\x00\x03\x02\x00xxname\x00note\x00cc"), gz("hello")[10:]...), "hello", false, Other},
		"no coding":                            {"aws-chunked", []byte("hello"), "hello", false, Other},
		"no coding, and one":                   {"aws-chunked, gzip", gz("hello"), "hello", false, Other},
		"one, and no coding":                   {"gzip,aws-chunked", gz("hello"), "hello", false, Other},
		"an old one in one that is known":      {"compress, gzip", gz("\x1f\x9d\x90"), "\x1f\x9d\x90", false, Other},
		"one that is known in an old one":      {"gzip, compress", []byte("\x1f\x9d\x90"), "\x1f\x9d\x90", false, Other},
		"plain, declared as brotli":            {"br", []byte("<p>hello"), "<p>hello", false, Other},
		"plain, declared as brotli by rules":   {"br", []byte("User-agent: *\n"), "User-agent: *\n", false, Other},
		"plain, declared as deflate by rules":  {"deflate", []byte("User-agent: *\n"), "User-agent: *\n", false, Other},
		"unknown coding":                       {"rot13", []byte("uryyb"), "uryyb", false, Other},
		"one that is known in one that is not": {"gzip, rot13", gz("hello"), "hello", false, Other},
		"too many":                             {"gzip, gzip, gzip, gzip", gz("hello"), string(gz("hello")), false, Other},
		"identity":                             {"identity", []byte("hello"), "hello", false, Other},
		"brotli":                               {"br", br("hello"), "hello", false, Other},
		"brotli, over the limit":               {"br", br(zeros[:1001]), zeros[:1000], true, Other},
		"truncated brotli":                     {"br", br("hello hello hello")[:6], "", false, Decode},
		"zstd":                                 {"zstd", zst("hello"), "hello", false, Other},
		"zstd, over the limit":                 {"zstd", zst(zeros), zeros[:1000], true, Other},
		"zstd, window too large":               {"zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x98, 0x01, 0, 0}, "", false, Decode},
		"truncated zstd":                       {"zstd", zst("hello hello")[:10], "", false, Decode},
		"plain, declared as zstd":              {"zstd", []byte("hello"), "hello", false, Other},
		"deflate":                              {"deflate", zl("hello"), "hello", false, Other},
		"deflate without header":               {"deflate", zl("hello")[2:], "hello", false, Other},
		"gzip, declared as deflate":            {"deflate", gz("hello"), "hello", false, Other},
		"plain, declared as deflate":           {"deflate", []byte("<html>"), "<html>", false, Other},
		"one in the other":                     {"gzip, BR", br(string(gz("hello"))), "hello", false, Other},
		"bomb in a bomb":                       {"gzip, gzip", gz(string(gz(zeros))), zeros[:1000], true, Other},
	} {
		t.Run(name, func(t *testing.T) {
			addr := web(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Encoding"] = []string{c.encoding}
				_, _ = w.Write(c.body)
			})
			res, err := get(t, newFetcher(t, Options{MaxBody: 1000}), "http://"+addr+"/")
			if c.class != Other {
				assert.Equal(t, c.class, ClassOf(err), "%v", err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, body(t, res))
			assert.Equal(t, c.truncated, res.Truncated)
			assert.LessOrEqual(t, res.Bytes, int64(1001))
			left := map[string]string{"gzip, rot13": "rot13", "aws-chunked, gzip": "aws-chunked", "gzip,aws-chunked": "aws-chunked", "compress, gzip": "compress",
				"gzip, compress": "gzip, compress", "gzip, gzip, gzip, gzip": "gzip, gzip, gzip, gzip", "identity": "identity", "rot13": "rot13", "aws-chunked": "aws-chunked"}
			assert.Equal(t, left[c.encoding], res.Header.Get("Content-Encoding"))
			assert.Equal(t, strings.Contains(c.want, "\x90") || name == "too many", Coded(res.Header, res.Body.Head(512)) != "")
		})
	}
}

func TestFetchStopsAnEndlessBody(t *testing.T) {
	closed := make(chan struct{})
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(closed)
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	res, err := get(t, newFetcher(t, Options{MaxBody: 1 << 20}), "http://"+addr+"/")
	require.NoError(t, err)
	assert.True(t, res.Truncated)
	assert.EqualValues(t, 1<<20, res.Body.Size())
	<-closed
}

func TestFetchThroughAProxy(t *testing.T) {
	proxy := web(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fmt.Fprint(w, r.RequestURI)
	})
	f := newFetcher(t, Options{Proxy: &url.URL{Scheme: "http", Host: proxy}})
	res, err := get(t, f, "http://a.example:81/x?y=%zz")
	require.NoError(t, err)
	assert.Equal(t, "http://a.example:81/x?y=%zz", body(t, res))
	_, err = get(t, f, "https://a.example/")
	assert.Error(t, err)
}

func TestResolve(t *testing.T) {
	o := Options{Resolve: map[string]string{"a.example": "127.0.0.1", "a.example:81": "[::1]:8081", "*.example": "10.0.0.1:80", "*": "::1"}}
	for in, want := range map[string]string{
		"a.example:80": "127.0.0.1:80", "a.example:81": "[::1]:8081", "b.c.example:443": "10.0.0.1:80", "other:80": "[::1]:80",
	} {
		to, _ := o.resolve(in)
		assert.Equal(t, want, to, in)
	}
	to, named := (&Options{}).resolve("x:1")
	assert.Equal(t, "x:1", to)
	assert.False(t, named.IsValid())
}

func TestOptionsReportEveryFault(t *testing.T) {
	_, err := New(Options{Timeout: -1, MaxBody: -2, UserAgent: "a\nb", Proxy: &url.URL{Scheme: "ftp"}, Resolve: map[string]string{"a": ""}})
	for _, want := range []string{"Timeout is -1ns", "MaxBody is -2", `UserAgent is "a\nb"`, "Proxy", "Resolve"} {
		assert.ErrorContains(t, err, want)
	}
}
