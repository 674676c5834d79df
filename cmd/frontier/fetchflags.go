// This file reads crawl's flags about fetching: addresses, protocols, limits.

package main

import (
	"log/slog"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// fetchFlags are these flags before they are checked.
type fetchFlags struct {
	userAgent, contact, proxy    string
	ports                        string
	resolving                    repeated
	allow, deny                  list
	servers                      list
	cookies                      bool
	maxBody, minRate, bodyMemory byteSize
}

func (w *fetchFlags) define(fs *flagSet, o *fetch.Options) {
	fs.StringVar(&w.userAgent, "user-agent", "", "User-Agent `header`; name yourself (default \""+fetch.DefaultUserAgent+"\")")
	fs.StringVar(&w.contact, "contact", "", "`URL or e-mail` address by which a host's owner reaches you; added to the User-Agent")
	fs.StringVar(&w.proxy, "proxy", "", "proxy `URL` (http, https, socks5) for all requests, or env:NAME or file:PATH, which has it; HTTP_PROXY and the like mean nothing")
	fs.BoolVar(&o.ProxyLookup, "proxy-lookup", false, "look up the addresses of hosts behind a proxy, too, so that hosts with one address are one to politeness; name servers then see the names")
	fs.Var(&w.resolving, "resolve", "`host=address` to connect to, with or without a port; *.domain and * too; repeatable")
	fs.DurationVar(&o.Timeout, "timeout", time.Minute, "time limit of a fetch")
	fs.Var(w.maxBody.set(10<<20), "max-body", "`bytes` of a page that are read; k, M, G may follow. Of films, disk images and the like that say to be longer nothing is read, unless for -warc")
	fs.Var(&w.allow, "allow-network", "`networks` (CIDR) to contact though they are not public: 127.0.0.0/8, an intranet's; comma-separated")
	fs.Var(&w.deny, "deny-network", "`networks` never to contact, comma-separated")
	fs.StringVar(&w.ports, "ports", "web", "which `ports` URLs may name: web, for all but those of mail, IRC and the like, which browsers refuse too; or any")
	fs.Var(&w.servers, "dns", "name `servers` to ask, IP addresses with or without a port, comma-separated (default: the system's resolver)")
	fs.BoolVar(&w.cookies, "cookies", false, "keep cookies, in memory")
	fs.BoolVar(&o.OldTLS, "old-tls", false, "also speak TLS 1.0 and 1.1, and ciphers with RSA key exchange, CBC or 3DES, which old servers need; who records such a connection may be able to read it later")
	fs.BoolVar(&o.NoHTTP2, "no-http2", false, "HTTP/1.1 only")
	fs.BoolVar(&o.NoKeepAlive, "no-keep-alive", false, "a new connection for each request")
	fs.DurationVar(&o.KeepAlive, "keep-alive", 15*time.Second, "how long a host's connection is kept idle for its next request")
	fs.Var(w.minRate.set(64), "min-rate", "`bytes` a second of a body that must come at least in its first 20 s; 4 times as many in the next 20 s, 16 times from then on")
	fs.IntVar(&o.MaxRatio, "max-ratio", 200, "how many times as large a body of more than 2 MiB may get by decoding")
	fs.Var(w.bodyMemory.set(1<<20), "body-memory", "`bytes` of a page that are kept in memory; longer ones are in a file of -temp")
	fs.StringVar(&o.TempDir, "temp", "", "`folder` for such files (default: the system's)")
}

// apply checks the flags and completes the settings.
func (w *fetchFlags) apply(s *settings) {
	o := &s.fetch
	o.Networks = fetch.Networks{Allow: s.networks("allow-network", w.allow), Deny: s.networks("deny-network", w.deny)}
	if o.AnyPort = w.ports == "any"; !o.AnyPort && w.ports != "web" {
		s.bad("want web or any", "ports")
	}
	if w.cookies {
		o.Jar = fetch.NewJar()
	}
	names, err := dns.New(dns.Options{Servers: w.servers})
	if err != nil {
		s.wrong(err, "dns")
	} else {
		o.Lookup = names.Lookup
	}
	s.names = names
	o.MaxBody, o.MinRate, o.BodyMemory = int64(w.maxBody), int64(w.minRate), int(w.bodyMemory)
	s.badIf(o.Timeout <= 0, "want > 0", "timeout")
	s.badIf(o.MaxBody <= 0, "want > 0", "max-body")
	s.badIf(o.KeepAlive <= 0, "want > 0", "keep-alive")
	s.badIf(o.MinRate <= 0, "want > 0", "min-rate")
	s.badIf(o.MaxRatio <= 0, "want > 0", "max-ratio")
	s.badIf(o.BodyMemory <= 0, "want > 0", "body-memory")
	if w.contact != "" && !reaches(w.contact) {
		s.badItem("contact", w.contact, "want a URL like https://me.example/bot, or a mail address")
	}
	o.UserAgent = agent(w.userAgent, w.contact)
	s.crawler.UserAgent = o.UserAgent
	w.applyPlaces(s)
	f, err := fetch.New(*o)
	if err != nil {
		s.wrong(err, "timeout", "UserAgent", "user-agent", "Proxy", "proxy", "Resolve", "resolve", "MaxBody", "max-body", "KeepAlive", "keep-alive",
			"MinRate", "min-rate", "MaxRatio", "max-ratio", "BodyMemory", "body-memory",
			"the header field Authorization", "auth", "the header field", "header", "the cookie", "cookie", "the proxy", "proxy-for")
		return
	}
	s.crawler.Fetcher = f
	s.crawler.Prefetch = func(host string) {
		if o.ProxyLookup || !f.Proxied(host) {
			names.Prefetch(host)
		}
	}
}

// networks reads the networks of an option.
func (o *options) networks(name string, l list) (out []netip.Prefix) {
	for _, n := range l {
		p, err := netip.ParsePrefix(n)
		if err != nil {
			o.badItem(name, n, "want networks like 192.0.2.0/24")
			continue
		}
		out = append(out, p)
	}
	return out
}

// applyPlaces checks where requests may go.
func (w *fetchFlags) applyPlaces(s *settings) {
	if w.proxy != "" {
		value, _, err := named(w.proxy)
		if err == nil {
			s.fetch.Proxy, err = proxyURL(value)
		}
		if err != nil {
			s.fault([]string{"proxy"}, "%s: %v", s.shown("proxy"), err)
		}
	}
	s.fetch.Resolve = map[string]string{}
	for _, r := range w.resolving {
		host, addr, ok := strings.Cut(r, "=")
		if _, port, err := net.SplitHostPort(addr); err == nil && !isPort(port) {
			s.badItem("resolve", r, "want a port from 1 to 65535")
		}
		if !ok || host == "" || addr == "" {
			s.badItem("resolve", r, "want host=address")
		}
		if s.fetch.Resolve[strings.ToLower(host)] != "" {
			s.badItem("resolve", r, "want each host once")
		}
		s.fetch.Resolve[strings.ToLower(host)] = addr
	}
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// reaches reports whether a contact is a URL or a mail address.
func reaches(contact string) bool {
	if u, err := url.Parse(contact); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return true
	}
	a, err := mail.ParseAddress(strings.TrimPrefix(contact, "mailto:"))
	return err == nil && a.Name == "" && !strings.ContainsAny(contact, "<> ")
}

// warnOfContact warns that no contact is given, if the crawl may leave private networks.
func (s *settings) warnOfContact(log *slog.Logger) {
	if s.web.contact != "" || strings.Contains(s.web.userAgent, "@") || strings.Contains(s.web.userAgent, "://") {
		return
	}
	sc := s.crawler.Scope
	places := slices.Concat(sc.Hosts, sc.Domains, hostsOf(s.seeds))
	if len(places) > 0 && !slices.ContainsFunc(places, public) {
		return
	}
	log.Warn("no -contact is given: the owner of a site cannot reach you, and will block you or ask the authors of this program instead")
}

// public reports whether a host's name may be one on the internet.
func public(host string) bool {
	for _, name := range []string{"localhost", "test", "example", "invalid", "local", "internal", "home.arpa"} { // RFC 6761, 6762, 8375 and similar
		if host == name || strings.HasSuffix(host, "."+name) {
			return false
		}
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return networkOf(strings.Trim(host, "[]")) == ""
}

// agent composes the User-Agent.
func agent(name, contact string) string {
	if name == "" {
		if contact == "" {
			return fetch.DefaultUserAgent
		}
		name = "frontier/0.1"
	}
	if contact == "" {
		return name
	}
	return name + " (+" + contact + ")"
}
