// This file makes the connections that net/http would make itself, and then read strictly: those
// with TLS, and tunnels through proxies.

package lenient

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/proxy"
)

// Secure makes a connection to addr secure. config may be nil; its protocols are offered if http2 is
// set.
func Secure(ctx context.Context, c net.Conn, config *tls.Config, addr string, http2 bool, timeout time.Duration) (*tls.Conn, error) {
	if config = config.Clone(); config == nil {
		config = &tls.Config{}
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	if !http2 {
		config.NextProtos = nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := tls.Client(c, config)
	return s, s.HandshakeContext(ctx)
}

// Tunnels reports whether a request goes through a tunnel: by SOCKS, or by https through any proxy.
// A proxy of HTTP otherwise gets the request itself. A nil proxy is none.
func Tunnels(proxy *url.URL, secure bool) bool {
	return proxy != nil && (secure || IsSOCKS(proxy))
}

// IsSOCKS reports whether a proxy speaks SOCKS 5.
func IsSOCKS(proxy *url.URL) bool { return proxy.Scheme == "socks5" || proxy.Scheme == "socks5h" }

// ProxyAddr is the host and port of a proxy.
func ProxyAddr(proxy *url.URL) string {
	port := map[string]string{"http": "80", "https": "443"}[proxy.Scheme]
	return net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), port, "1080"))
}

// Through asks the proxy at the other end of c for a tunnel to addr, over TLS if the proxy's URL has
// https; Secure explains config and timeout. If it fails, c is closed.
func Through(ctx context.Context, c net.Conn, at *url.URL, config *tls.Config, timeout time.Duration, addr string, maxHead int64) (tunnel net.Conn, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	tunnel = c
	if at.Scheme == "https" {
		tunnel, err = Secure(ctx, c, config, ProxyAddr(at), false, timeout)
	}
	if err == nil {
		tunnel, err = through(ctx, tunnel, at, addr, maxHead)
	}
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("proxy %s: %w", at.Host, err)
	}
	return tunnel, nil
}

func through(ctx context.Context, c net.Conn, at *url.URL, addr string, maxHead int64) (net.Conn, error) {
	name := at.User.Username()
	password, _ := at.User.Password()
	if IsSOCKS(at) {
		var auth *proxy.Auth
		if at.User != nil {
			auth = &proxy.Auth{User: name, Password: password}
		}
		d, err := proxy.SOCKS5("tcp", ProxyAddr(at), auth, connected{c})
		if err != nil {
			return nil, err
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
	}
	if !httpguts.ValidHostHeader(addr) {
		return nil, fmt.Errorf("%q is no host", addr)
	}
	ask := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n"
	if at.User != nil {
		ask += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(c, ask+"\r\n"); err != nil {
		return nil, err
	}
	for a := NewConn(c, maxHead); ; {
		read, whole, err := a.lines()
		if err != nil {
			return nil, err
		}
		switch h, ok := rewrite(read); {
		case !whole || !ok:
			return nil, errors.New("its answer is not HTTP")
		case h.status/100 == 2:
			a.raw(nil)
			return a, nil
		case h.status/100 > 2:
			return nil, fmt.Errorf("it answers %d %s", h.status, http.StatusText(h.status))
		}
	}
}

// connected is a dialler that has dialled.
type connected struct{ net.Conn }

// Dial implements proxy.Dialer.
func (c connected) Dial(string, string) (net.Conn, error) { return c.Conn, nil }

// DialContext implements proxy.ContextDialer. Without it package proxy calls Dial in a goroutine, which closes
// the connection if ctx ends before it runs again, as the context of a dial does once that is done.
func (c connected) DialContext(context.Context, string, string) (net.Conn, error) { return c.Conn, nil }
