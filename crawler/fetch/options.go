// This file holds the options of a Fetcher.

package fetch

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// DefaultUserAgent is the default of Options.UserAgent. When crawling other people's hosts, set a
// name and a contact address instead.
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
	// HeaderTimeout limits the wait from the request to the end of the answer's header. Zero means
	// 30 s.
	HeaderTimeout time.Duration
	// IdleTimeout limits how long the server may be silent within an answer. Zero means 30 s.
	IdleTimeout time.Duration

	// MinRate is the minimum rate of a body in bytes per second, over the first period of RateWindow.
	// In the second it is 4 times as much, and from then on 16 times. Zero means 64, and 20 s.
	MinRate    int64
	RateWindow time.Duration

	// MaxBody is the maximum size of a body in bytes, as sent and as decoded; the rest is cut off.
	// Zero means 10 MiB.
	MaxBody int64
	// MaxRatio is the maximum ratio of decoded to sent size, for decoded bodies of more than 2 MiB;
	// the rest is cut off. Zero means 200.
	MaxRatio int
	// MaxHeader is the maximum size of an answer's header in bytes, MaxHeaderFields the maximum
	// number of fields. Zero means 256 KiB, and 1000.
	MaxHeader       int64
	MaxHeaderFields int
	// BodyMemory is the size in bytes up to which a body is kept in memory; longer bodies are
	// stored in a file in TempDir. Zero means 1 MiB. An empty TempDir means os.TempDir.
	BodyMemory int
	TempDir    string

	// NoHTTP2 does not offer HTTP/2 to https servers.
	NoHTTP2 bool
	// KeepAlive is how long a connection is kept idle for the next request to the same host, if its
	// answer was read to the end: for each host as many as were in use at once, MaxIdle in all.
	// Zero means 15 s, and 256. NoKeepAlive closes connections after each answer.
	KeepAlive   time.Duration
	MaxIdle     int
	NoKeepAlive bool
	// Jar stores cookies. Nil means that none are stored or sent. A Jar should limit what hosts can
	// store: see NewJar.
	Jar http.CookieJar
	// Networks decides which addresses may be contacted.
	Networks Networks
	// AnyPort permits the ports of other protocols, such as mail or IRC. By default the bad ports
	// of the Fetch Standard are forbidden: see PortError. The port in the URL is what counts.
	AnyPort bool

	// Sites say what is different for some hosts: headers, cookies, secrets, proxies.
	Sites []Site
	// Proxy, if set, is used for all requests, unless Sites say otherwise: an http, https or socks5
	// URL.
	Proxy *url.URL
	// ProxyLookup looks up the addresses of hosts behind a proxy, too, for Addresses only, so that
	// hosts with the same address share politeness. The proxy connects to what it looks up itself.
	// Name servers then see the names.
	ProxyLookup bool
	// Resolve replaces the address of a host when connecting, like curl's --connect-to. Keys are
	// "a.example", "a.example:8080", "*.example" (hosts below example), or "*"; the first of these
	// that matches applies. Values are an IP address or host name, with or without a port.
	Resolve map[string]string
	// Dial opens connections, to IP addresses if Lookup finds them. Nil means a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Lookup finds a host's addresses; crawler/dns has one with a cache. Nil means the system's
	// resolver; with a custom Dial, nil means that Dial looks names up, and addresses are judged
	// after it has connected.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	// TLS configures https. Nil means the system's roots.
	TLS *tls.Config
	// OldTLS also speaks what only old servers need: TLS 1.0 and 1.1, and ciphers with RSA key
	// exchange, CBC or 3DES, which crypto/tls leaves out by default. New servers choose something
	// better. Who can record such a connection may be able to read it later.
	OldTLS bool

	routes *routes
	sites  *siteIndex
}

func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.DialTimeout = cmp.Or(o.DialTimeout, 10*time.Second)
	o.TLSTimeout = cmp.Or(o.TLSTimeout, 10*time.Second)
	o.HeaderTimeout = cmp.Or(o.HeaderTimeout, 30*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 30*time.Second)
	o.RateWindow = cmp.Or(o.RateWindow, 20*time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.MaxRatio = cmp.Or(o.MaxRatio, 200)
	o.MaxHeaderFields = cmp.Or(o.MaxHeaderFields, 1000)
	o.BodyMemory = cmp.Or(o.BodyMemory, 1<<20)
	o.MaxIdle = cmp.Or(o.MaxIdle, 256)
	o.MinRate = cmp.Or(o.MinRate, 64)
	o.UserAgent = cmp.Or(o.UserAgent, DefaultUserAgent)
	o.MaxBody = cmp.Or(o.MaxBody, 10<<20)
	o.MaxHeader = cmp.Or(o.MaxHeader, 256<<10)
	if o.Dial == nil {
		if o.Lookup == nil {
			o.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
				return net.DefaultResolver.LookupNetIP(ctx, "ip", dns.Rooted(host))
			}
		}
		o.Dial = new(net.Dialer).DialContext
	}
	o.routes, o.sites = new(routes), indexSites(o.Sites)
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	wrong := faults.List(unit.CheckAll("", o))
	wrong.If(o.MaxBody < 0, "MaxBody is %d; want > 0", o.MaxBody)
	wrong.If(o.MaxHeader < 0, "MaxHeader is %d; want > 0", o.MaxHeader)
	wrong.If(o.MaxRatio < 0, "MaxRatio is %d; want > 0", o.MaxRatio)
	wrong.If(o.MinRate < 0, "MinRate is %d; want > 0", o.MinRate)
	wrong.If(o.MaxHeaderFields < 0, "MaxHeaderFields is %d; want > 0", o.MaxHeaderFields)
	wrong.If(o.BodyMemory < 0, "BodyMemory is %d; want > 0", o.BodyMemory)
	wrong.If(o.MaxIdle < 0, "MaxIdle is %d; want > 0", o.MaxIdle)
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	wrong.If(strings.ContainsFunc(o.UserAgent, control), "UserAgent is %q; want no control characters", o.UserAgent)
	if o.Proxy != nil {
		wrong.Add(checkProxy("Proxy", o.Proxy))
	}
	wrong.Add(o.sites.err)
	for k, v := range o.Resolve {
		wrong.If(k == "" || v == "" || strings.ContainsAny(k+v, " /"), "Resolve has %q=%q; want host=address", k, v)
	}
	return wrong.Of("fetch: options")
}
