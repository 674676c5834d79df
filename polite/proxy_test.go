// These tests send requests through proxies.

package polite

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// proxy is a listener whose connections are tunnels that it has opened, by CONNECT or SOCKS 5
// (RFC 1928). It notes where to.
type proxy struct {
	net.Listener
	at     *tls.Config // the proxy's; nil: without TLS
	inside *tls.Config // that of the machine at the tunnel's end

	mu    sync.Mutex
	asked []string // guarded by mu
}

func newProxy(t *testing.T, at, inside *tls.Config) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &proxy{Listener: l, at: at, inside: inside}
}

// Accept implements net.Listener.
func (p *proxy) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if p.at != nil {
		c = tls.Server(c, p.at)
	}
	r, to := bufio.NewReader(c), ""
	if first, _ := r.Peek(1); string(first) == "\x05" {
		b := make([]byte, 300)
		_, _ = io.ReadFull(r, b[:2])
		_, _ = io.ReadFull(r, b[:b[1]])
		_, _ = c.Write([]byte{5, 0})
		_, _ = io.ReadFull(r, b[:5])
		n := int(b[4])
		_, _ = io.ReadFull(r, b[:n+2])
		to = fmt.Sprintf("SOCKS %s:%d", b[:n], int(b[n])<<8|int(b[n+1]))
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	} else if req, err := http.ReadRequest(r); err == nil {
		to = req.Method + " " + req.RequestURI
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, to)
	if p.inside != nil {
		c = tls.Server(c, p.inside)
	}
	return c, nil
}

// took returns the tunnels that were asked for.
func (p *proxy) took() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Wherever a tunnel leads through, its answers are read alike.
func TestOddAnswersAreReadThroughProxies(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	s.Close()
	secure := &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"http/1.1"}}
	for _, x := range []struct {
		scheme, url, asked string
		at, inside         *tls.Config
	}{
		{"http", "https://a.example/", "CONNECT a.example:443", nil, secure},
		{"https", "https://[2001:db8::1]:8443/", "CONNECT [2001:db8::1]:8443", secure, secure},
		{"socks5", "http://A.example/", "SOCKS a.example:80", nil, nil},
		{"socks5h", "https://a.example:81/", "SOCKS a.example:81", nil, secure},
	} {
		p := newProxy(t, x.at, x.inside)
		addr, _ := odd(t, func() (net.Listener, error) { return p, nil }, "HTTP/1.1 200 OK\r\nno colon\r\nX: y\r\nContent-Length: 5\r\n\r\nhello")
		client := through(t, func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: x.scheme, Host: addr}, nil })
		for range 2 {
			resp, err := client.Get(x.url)
			require.NoError(t, err, x.scheme)
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err, x.scheme)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, "hello", string(b))
			assert.Equal(t, "y", resp.Header.Get("X"))
			assert.Equal(t, x.url, resp.Request.URL.String())
			assert.Equal(t, strings.HasPrefix(x.url, "https"), resp.TLS != nil)
		}
		assert.Equal(t, []string{x.asked, x.asked}, p.took(), "the connection of an odd answer is not used again")
	}
}

// A proxy of HTTP gets the request itself, over TLS if its URL says so.
func TestForwardedAnswersAreReadAlike(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	s.Close()
	for _, scheme := range []string{"http", "https"} {
		addr, _ := odd(t, func() (net.Listener, error) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if scheme == "https" {
				l = tls.NewListener(l, &tls.Config{Certificates: s.TLS.Certificates})
			}
			return l, err
		}, "HTTP/1.1 200 OK\r\nno colon\r\nX: y\r\nContent-Length: 5\r\n\r\nhello")
		client := through(t, func(*http.Request) (*url.URL, error) { return &url.URL{Scheme: scheme, Host: addr}, nil })
		resp, err := client.Get("http://a.example/")
		require.NoError(t, err, scheme)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err, scheme)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "hello", string(b))
		assert.Equal(t, "y", resp.Header.Get("X"))
	}
}

// through returns a client whose requests go through proxies.
func through(t *testing.T, proxy func(*http.Request) (*url.URL, error)) *http.Client {
	tr := newTransport(t, nil, frontier.Options{Delay: frontier.FixedDelay(0)})
	tr.Timeout = time.Second
	require.NoError(t, tr.start())
	tr.proxy = proxy
	tr.sending.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A connection is kept for requests through the same proxy. Its server sees the names that it would see
// without one, and may speak HTTP/2.
func TestTunnelsAreKeptForTheirProxy(t *testing.T) {
	var proxies []*proxy
	for range 2 {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.Proto, " ", r.Host, " ", r.TLS.ServerName)
		}))
		p := newProxy(t, nil, nil)
		s.Listener.Close()
		s.Listener, s.EnableHTTP2 = p, true
		s.StartTLS()
		defer s.Close()
		proxies = append(proxies, p)
	}
	requests := 0
	client := through(t, func(*http.Request) (*url.URL, error) {
		requests++
		return &url.URL{Scheme: "socks5", Host: proxies[requests%2].Addr().String()}, nil
	})
	for range 4 {
		resp, err := client.Get("https://a.example:81/")
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, "HTTP/2.0 a.example:81 a.example", string(b))
	}
	for _, p := range proxies {
		assert.Equal(t, []string{"SOCKS a.example:81"}, p.took())
	}
}

// A proxy that opens no tunnel fails the contact, in its own words or when the contact's time is over.
func TestProxiesThatOpenNoTunnel(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(407) }))
	defer refuses.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for proxy, want := range map[string]string{refuses.URL: "answers 407", "http://" + silent.Addr().String(): "deadline", "": "no proxy today"} {
		client := through(t, func(*http.Request) (*url.URL, error) {
			if proxy == "" {
				return nil, errors.New("no proxy today")
			}
			return url.Parse(proxy)
		})
		_, err := get(t, client, "https://a.example/")
		assert.ErrorContains(t, err, want)
	}
}
