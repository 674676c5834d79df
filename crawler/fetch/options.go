// This file holds what can be set about a Fetcher.

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// DefaultUserAgent is sent by a Fetcher that was given none. A crawl of other
// people's hosts should name its own and how to reach whoever runs it.
const DefaultUserAgent = "frontier/0.1 (+https://github.com/seed-7440039f/frontier)"

// Options configure a Fetcher. The zero value works.
type Options struct {
	// UserAgent is the header sent with every request. Empty: DefaultUserAgent.
	UserAgent string

	// Timeout bounds the whole fetch. Zero means 60 s.
	Timeout time.Duration
	// DialTimeout bounds name lookup and connecting. Zero means 10 s.
	DialTimeout time.Duration
	// TLSTimeout bounds the handshake. Zero means 10 s.
	TLSTimeout time.Duration
	// HeaderTimeout bounds the wait from the request to the end of the answer's
	// header. Zero means 30 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long the server may be silent within an answer. Zero
	// means 30 s.
	IdleTimeout time.Duration

	// MaxBody is how many bytes of a body are read, as sent and as decoded; the
	// rest is cut off. Zero means 10 MiB.
	MaxBody int64
	// MaxHeader is how many bytes an answer's header may have. Zero means 256 KiB.
	MaxHeader int64

	// Proxy, if set, is asked for everything: an http, https or socks5 URL.
	Proxy *url.URL
	// Resolve replaces the address of a host when connecting, as curl's
	// --connect-to does. Keys: "a.example", "a.example:8080", "*.example" (hosts
	// below example), "*"; the first of these that fits holds. Values: an IP
	// address or host name, with or without a port.
	Resolve map[string]string
	// Dial opens connections. Nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Lookup finds a host's addresses for Addresses. Nil means the system's
	// resolver, and with a Dial of your own that nothing is looked up.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// TLS configures https. Nil means the system's roots.
	TLS *tls.Config
}

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, x time.Duration) {
		if *d == 0 {
			*d = x
		}
	}
	set(&o.Timeout, time.Minute)
	set(&o.DialTimeout, 10*time.Second)
	set(&o.TLSTimeout, 10*time.Second)
	set(&o.HeaderTimeout, 30*time.Second)
	set(&o.IdleTimeout, 30*time.Second)
	if o.UserAgent == "" {
		o.UserAgent = DefaultUserAgent
	}
	if o.MaxBody == 0 {
		o.MaxBody = 10 << 20
	}
	if o.MaxHeader == 0 {
		o.MaxHeader = 256 << 10
	}
	if o.Dial == nil {
		if o.Lookup == nil {
			o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
			}
		}
		o.Dial = new(net.Dialer).DialContext
	}
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, d := range []struct {
		name string
		d    time.Duration
	}{
		{"Timeout", o.Timeout}, {"DialTimeout", o.DialTimeout}, {"TLSTimeout", o.TLSTimeout},
		{"HeaderTimeout", o.HeaderTimeout}, {"IdleTimeout", o.IdleTimeout},
	} {
		if d.d < 0 {
			bad("%s is %v; want > 0", d.name, d.d)
		}
	}
	if o.MaxBody < 0 {
		bad("MaxBody is %d; want > 0", o.MaxBody)
	}
	if o.MaxHeader < 0 {
		bad("MaxHeader is %d; want > 0", o.MaxHeader)
	}
	if strings.ContainsFunc(o.UserAgent, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		bad("UserAgent is %q; want no control characters", o.UserAgent)
	}
	if p := o.Proxy; p != nil {
		switch {
		case p.Scheme != "http" && p.Scheme != "https" && p.Scheme != "socks5":
			bad("Proxy is %q; want http://, https:// or socks5://", p.Redacted())
		case p.Hostname() == "":
			bad("Proxy is %q; want a host", p.Redacted())
		}
	}
	for k, v := range o.Resolve {
		if k == "" || v == "" || strings.ContainsAny(k+v, " /") {
			bad("Resolve has %q=%q; want host=address", k, v)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("fetch: options: %w", errors.Join(errs...))
}
