package polite

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

func TestRequestsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		w.took = time.Second
		c := &http.Client{Transport: newTransport(t, w, frontier.Options{})}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := get(t, c, "http://a.example/")
				assert.NoError(t, err)
			})
			all.Go(func() {
				_, err := get(t, c, "http://b.example:8080/")
				assert.NoError(t, err)
			})
		}
		all.Wait()
		got := map[string]int{}
		for _, x := range w.requests() {
			got[x]++
		}
		assert.Equal(t, map[string]int{
			"0s http://a.example/": 1, "11s http://a.example/": 1, "22s http://a.example/": 1,
			"0s http://b.example:8080/": 1, "11s http://b.example:8080/": 1, "22s http://b.example:8080/": 1,
		}, got, "each a delay after the end of the last body")
	})
}

func TestAContactEndsWithTheBody(t *testing.T) {
	for name, end := range map[string]func(*http.Response){
		"closed early":         func(r *http.Response) { r.Body.Close() },
		"read to its end":      func(r *http.Response) { io.Copy(io.Discard, r.Body) },
		"read and closed":      func(r *http.Response) { io.Copy(io.Discard, r.Body); r.Body.Close(); r.Body.Close() },
		"forgotten, until the": func(*http.Response) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb(t, always(200, "hello"))
				tr := newTransport(t, w, frontier.Options{LeaseTime: time.Minute})
				c := &http.Client{Transport: tr}
				resp, err := c.Get("http://a.example/")
				require.NoError(t, err)
				end(resp)
				if !strings.HasPrefix(name, "forgotten") {
					assert.Zero(t, embedded(tr).Stats().Leased)
					return
				}
				w.open["a.example"] = 0
				_, err = get(t, c, "http://a.example/2")
				require.NoError(t, err)
				assert.Equal(t, "1m10s http://a.example/2", w.requests()[1], "the lease expired")
				resp.Body.Close()
			})
		})
	}
}

func TestRedirectsAreContactsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			switch r.URL.String() {
			case "http://a.example/":
				return says(301, "moved", "Location", "/2"), nil
			case "http://a.example/2":
				return says(302, "moved", "Location", "http://b.example/"), nil
			}
			return says(200, "hello"), nil
		})
		c := &http.Client{Transport: newTransport(t, w, frontier.Options{})}
		_, err := get(t, c, "http://a.example/")
		require.NoError(t, err)
		assert.Equal(t, []string{"0s http://a.example/", "10s http://a.example/2", "10s http://b.example/"}, w.requests())
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		when := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
		n := 0
		w := newWeb(t, func(*http.Request) (*http.Response, error) {
			switch n++; n {
			case 1:
				return says(429, "", "Retry-After", "60"), nil
			case 2:
				return says(200, "", "Retry-After", when), nil
			}
			return says(200, ""), nil
		})
		c := &http.Client{Transport: newTransport(t, w, frontier.Options{Backoff: frontier.Backoff{Disabled: true}})}
		for range 3 {
			_, err := get(t, c, "http://a.example/")
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"0s http://a.example/", "1m0s http://a.example/", "1m30s http://a.example/"}, w.requests())
	})
}

func TestErrorsEndTheContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
		tr := newTransport(t, w, frontier.Options{})
		closed := &closeNoted{Reader: strings.NewReader("form")}
		_, err := (&http.Client{Transport: tr}).Post("http://a.example/", "text/plain", closed)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.True(t, closed.closed)
		assert.Zero(t, embedded(tr).Stats().Leased)
		info, err := inspect.New(embedded(tr)).Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, 1, info.Backoff.Step, "a failed connection")
	})
}

type closeNoted struct {
	io.Reader
	closed bool
}

func (c *closeNoted) Close() error { c.closed = true; return nil }

func TestBodiesOfRequestsAreClosedThatAreNeverSent(t *testing.T) {
	w := newWeb(t, always(200, ""))
	tr := newTransport(t, w, frontier.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, url := range []string{"http://a.example/", "http:///"} {
		closed := &closeNoted{Reader: strings.NewReader("form")}
		req, err := http.NewRequestWithContext(ctx, "POST", url, closed)
		require.NoError(t, err)
		_, err = tr.RoundTrip(req)
		require.Error(t, err)
		assert.True(t, closed.closed, url)
	}
	assert.Empty(t, w.requests())
}

func TestTheRequestIsNotModified(t *testing.T) {
	tr := newTransport(t, newWeb(t, always(200, "hello")), frontier.Options{})
	req, err := http.NewRequest("GET", "http://a.example/", nil)
	require.NoError(t, err)
	before := *req
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, before, *req)
	assert.Same(t, req, resp.Request)
}

func TestMaxWaitRefusesAtOnceWhatTakesLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		tr := newTransport(t, w, frontier.Options{})
		tr.MaxWait = 5 * time.Second
		c := &http.Client{Transport: tr}
		_, err := get(t, c, "http://a.example/")
		require.NoError(t, err)
		begun := time.Now()
		_, err = get(t, c, "http://a.example/")
		busy, ok := errors.AsType[*BusyError](err)
		require.True(t, ok, "%v", err)
		assert.Equal(t, "a.example", busy.Host)
		assert.Equal(t, 10*time.Second, busy.Until.Sub(begun))
		assert.Zero(t, time.Since(begun))
		time.Sleep(6 * time.Second)
		_, err = get(t, c, "http://a.example/")
		require.NoError(t, err)
		require.NoError(t, embedded(tr).Pause(scope.Host("b.example")))
		begun = time.Now()
		_, err = get(t, c, "http://b.example/")
		busy, ok = errors.AsType[*BusyError](err)
		require.True(t, ok, "%v", err)
		assert.True(t, busy.Until.IsZero())
		assert.Equal(t, 5*time.Second, time.Since(begun))
	})
}

func TestTimeoutCountsFromTheTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return says(200, "hello"), nil
		})
		tr := newTransport(t, w, frontier.Options{})
		tr.Timeout = 3 * time.Second
		c := &http.Client{Transport: tr}
		for range 3 { // they wait for 20 s
			_, err := get(t, c, "http://a.example/")
			require.NoError(t, err)
		}
		_, err := get(t, c, "http://a.example/slow")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 33*time.Second, time.Since(w.begun))
		info, err := inspect.New(embedded(tr)).Host(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, 1, info.Backoff.Step)
	})
}

func TestACallersDeadlineIsNotHeldAgainstTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return says(200, "hello"), nil
		})
		tr := newTransport(t, w, frontier.Options{})
		_, err := get(t, &http.Client{Transport: tr}, "http://a.example/")
		require.NoError(t, err)
		step := func(timeout time.Duration) int {
			_, err := get(t, &http.Client{Transport: tr, Timeout: timeout}, "http://a.example/slow")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			info, err := inspect.New(embedded(tr)).Host(t.Context(), "a.example")
			require.NoError(t, err)
			return info.Backoff.Step
		}
		assert.Equal(t, 0, step(12*time.Second), "10 s of it were spent waiting")
		assert.Equal(t, 1, step(time.Minute), "it had most of the time")
	})
}

func TestHostsOfOneAddressTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		tr := newTransport(t, w, frontier.Options{})
		tr.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(map[string]string{"c.example": "192.0.2.2"}[host] + map[string]string{"a.example": "192.0.2.1", "b.example": "192.0.2.1"}[host])}, nil
		}
		var all sync.WaitGroup
		for _, host := range []string{"a.example", "b.example", "c.example", "a.example"} {
			all.Go(func() {
				_, err := get(t, &http.Client{Transport: tr}, "http://"+host+"/")
				assert.NoError(t, err)
			})
		}
		all.Wait()
		at := map[string]int{}
		for _, x := range w.requests() {
			if !strings.Contains(x, "c.example") {
				x, _, _ = strings.Cut(x, " ")
			}
			at[x]++
		}
		assert.Equal(t, map[string]int{"0s": 1, "0s http://c.example/": 1, "10s": 1, "20s": 1}, at)
	})
}

func TestRequestsSayWhoAsks(t *testing.T) {
	var mu sync.Mutex
	got := map[string]string{}
	w := newWeb(t, func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = r.UserAgent()
		return says(404, ""), nil
	})
	tr := newTransport(t, w, frontier.Options{Delay: frontier.FixedDelay(0)})
	tr.Robots = &Robots{Agent: "examplebot/1.0"}
	for path, header := range map[string]http.Header{"/": nil, "/own": {"User-Agent": {"otherbot"}}} {
		req := &http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a.example", Path: path}, Header: header}
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		resp.Body.Close()
	}
	assert.Equal(t, map[string]string{"/robots.txt": "examplebot/1.0", "/": "examplebot/1.0", "/own": "otherbot"}, got)
}

// Without a Base the Transport connects to the address whose turn it is, and to the next one if
// that refuses.
func TestAddressesAreTriedInTurn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Host) }))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refusing := closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	tr := newTransport(t, nil, frontier.Options{Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Disabled: true}})
	tr.Base = nil
	tr.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "nosuch.example" {
			return nil, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	require.NoError(t, tr.start())
	tr.proxy = nil
	c := &http.Client{Transport: tr}
	defer c.CloseIdleConnections()
	for range 2 {
		resp, err := c.Get(fmt.Sprintf("http://a.example:%d/", port))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("a.example:%d", port), string(body))
	}
	_, err = get(t, c, fmt.Sprintf("http://b.example:%d/", refusing))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = get(t, c, "http://nosuch.example/")
	require.ErrorContains(t, err, "no addresses")
	_, known := inspect.New(embedded(tr)).Group("127.0.0.1")
	assert.True(t, known)
}

func TestWithoutAFrontierItHasItsOwn(t *testing.T) {
	w := newWeb(t, always(200, "hello"))
	c := &http.Client{Transport: &Transport{Base: w}}
	_, err := get(t, c, "http://a.example/")
	require.NoError(t, err)
	ctx, cancel := contextWithTimeout(t, 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
	require.NoError(t, err)
	_, err = c.Do(req)
	require.ErrorIs(t, err, context.DeadlineExceeded, "the delay is a second at least")
	assert.Len(t, w.requests(), 1)
}

// http.Transport sends a GET again if a kept connection closes before the answer.
func TestARequestIsSentOnce(t *testing.T) {
	var sent, connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			sent.Add(1)
			panic(http.ErrAbortHandler)
		}
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	for _, base := range []http.RoundTripper{nil, &http.Transport{}} {
		sent.Store(0)
		connections.Store(0)
		tr := newTransport(t, base, frontier.Options{Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Disabled: true}})
		tr.Base = base
		c := &http.Client{Transport: tr}
		_, err := get(t, c, server.URL)
		require.NoError(t, err)
		_, err = get(t, c, server.URL+"/cut")
		require.ErrorIs(t, err, errNoAnswer)
		assert.EqualValues(t, 1, sent.Load())
		if base == nil {
			assert.EqualValues(t, 1, connections.Load())
		}
		o := OutcomeOf(nil, err)
		assert.Equal(t, frontier.FailureConnect, o.Failure)
		_, err = get(t, c, server.URL)
		require.NoError(t, err)
		c.CloseIdleConnections()
	}
}

// The context of a request does not end a connection that switched protocols.
func TestASwitchedConnectionEndsWithItsContact(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			_, err = http.ReadRequest(bufio.NewReader(conn))
		}
		if err == nil {
			_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		}
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		served <- err
	}()
	tr := newTransport(t, nil, frontier.Options{Delay: frontier.FixedDelay(0)})
	tr.Base, tr.Timeout = nil, 100*time.Millisecond
	req, err := http.NewRequest("GET", "http://"+l.Addr().String()+"/", nil)
	require.NoError(t, err)
	req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"x"}}
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, <-served, "the connection ends")
	resp.Body.Close()
}

// odd serves answers that net/http calls malformed, each twice if it may.
func odd(t *testing.T, listen func() (net.Listener, error), answer string) (addr string, conns *atomic.Int32) {
	l, err := listen()
	require.NoError(t, err)
	var all sync.WaitGroup
	conns = new(atomic.Int32)
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			all.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					if _, err := http.ReadRequest(r); err != nil {
						return
					}
					_, _ = io.WriteString(c, answer)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String(), conns
}

// Without a Base, odd answers are read as browsers read them, and their connections are not used again.
func TestOddAnswersAreRead(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	cert := s.TLS.Certificates
	s.Close()
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	std := before.(*http.Transport).Clone()
	std.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	http.DefaultTransport = std
	for answer, want := range map[string]int32{
		"HTTP/1.1 200 OK\r\nno colon\r\nX: y\r\nContent-Length: 5\r\n\r\nhello":                                      2,
		"HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n": 2,
		"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello":                                                  1,
	} {
		for _, scheme := range []string{"http", "https"} {
			addr, conns := odd(t, func() (net.Listener, error) {
				if scheme == "http" {
					return net.Listen("tcp", "127.0.0.1:0")
				}
				return tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: cert, NextProtos: []string{"http/1.1"}})
			}, answer)
			polite := newTransport(t, nil, frontier.Options{Delay: frontier.FixedDelay(0)})
			client := &http.Client{Transport: polite}
			for range 2 {
				resp, err := client.Get(scheme + "://" + addr + "/")
				require.NoError(t, err, answer)
				b, err := io.ReadAll(resp.Body)
				require.NoError(t, err, answer)
				require.NoError(t, resp.Body.Close())
				assert.Equal(t, "hello", string(b))
				assert.Equal(t, "y", resp.Header.Get("X"))
				assert.Equal(t, scheme == "https", resp.TLS != nil)
			}
			assert.Equal(t, want, conns.Load(), "%s %s", scheme, answer)
			polite.CloseIdleConnections()
		}
	}
}

func TestOpaqueURLsCountForTheHostThatIsContacted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWeb(t, always(200, "hello"))
		c := &http.Client{Transport: newTransport(t, w, frontier.Options{})}
		for _, opaque := range []string{"", "//b.example/2", "/3"} {
			resp, err := c.Do(&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: "a.example", Path: "/", Opaque: opaque}})
			require.NoError(t, err)
			resp.Body.Close()
		}
		assert.Equal(t, 20*time.Second, time.Since(w.begun))
	})
}

func TestFrontierMustDescribeItsHosts(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	_, err = (&http.Client{Transport: &Transport{Frontier: struct{ Frontier }{f}, Base: base}}).Get("http://a.example/")
	require.ErrorContains(t, err, "does not describe its hosts")
	_, err = (&http.Client{Transport: &Transport{Frontier: inspect.Frontier{Frontier: f, Inspector: inspect.New(f)}, Base: base}}).Get("http://a.example/")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, f.Check())
}
