// This file defines Router: its options, its routes, and what all requests have in common. It knows
// nothing of what is asked.

package route

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/rendezvous"
	"github.com/seed-7440039f/frontier/serve"
)

// Options configure a Router.
type Options struct {
	// Parts are the parts by name, with the addresses of each: one, or those of a fleet's machines, as
	// http://HOST:PORT or https://HOST:PORT. The names decide which part has a host.
	Parts map[string][]string
	// Fleet says that the parts are the partitions of one fleet: any of them answers for its machines.
	Fleet bool
	// Transport sends the requests to the parts. Nil means connections of its own, and the system's
	// authorities for https.
	Transport http.RoundTripper
	// Consoles sends requests to the Console of each part, at the same addresses: see Router.Commands.
	Consoles http.RoundTripper
	// Names are host names, beside localhost and loopback addresses, under which requests without a token
	// are answered.
	Names []string
	// MaxBuffered bounds the bytes of requests and answers held in memory: beyond it new requests are
	// refused. Zero means 64 MiB.
	MaxBuffered int64
	// MaxRequests bounds the requests under way; 7 in 8 of them may wait for leases. Zero means 4,096.
	MaxRequests int
	// Logger logs requests, and parts that do not answer. Nil: none.
	Logger *slog.Logger
}

// Router answers the HTTP API for several parts. It is safe for concurrent use.
type Router struct {
	o      Options
	parts  []*part // by name
	by     map[string]*part
	nodes  *rendezvous.Nodes
	typed  *urlnorm.Normalizer
	client *http.Client
	// consoles asks the Consoles of the parts.
	consoles *http.Client
	handler  http.Handler

	groups groups
	lanes  lanes

	homes sync.Map     // hosts to parts
	known atomic.Int64 // how many, at most

	turn     atomic.Uint32 // of the part that is asked for leases first
	used     atomic.Int64  // bytes in memory
	requests atomic.Int64  // under way
	waiting  atomic.Int64  // those among them that wait for leases
	scans    chan struct{} // slots for answers of all parts that are put together in memory

	closing context.Context
	close   context.CancelFunc
	mu      sync.Mutex     // guards closed together with going
	closed  bool           // guarded by mu
	going   sync.WaitGroup // requests, and leases that are given back
}

// idle is how long a client may neither send nor read during a request.
const idle = time.Minute

// name is what a part's name consists of.
var name = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// New returns a Router. It does not contact the parts. Close the Router after use.
func New(o Options) (*Router, error) {
	o.MaxBuffered, o.MaxRequests = cmp.Or(o.MaxBuffered, 64<<20), cmp.Or(o.MaxRequests, 4096)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	r := &Router{o: o, by: map[string]*part{}, scans: make(chan struct{}, 4), groups: groups{turns: map[string]time.Time{}, leases: map[string]joined{}}, lanes: lanes{waits: map[lane][]*load{}, sends: map[lane]int{}}}
	names := slices.Sorted(maps.Keys(o.Parts))
	var wrong faults.List
	wrong.If(len(names) == 0, "there is no part")
	if err := console.CheckNames(o.Names); err != nil {
		wrong.If(true, "Names: %w", err)
	}
	wrong.If(o.MaxBuffered < 0 || o.MaxRequests < 0, "MaxBuffered is %d, MaxRequests %d; want 0 or more", o.MaxBuffered, o.MaxRequests)
	taken := map[string]string{}
	for _, n := range names {
		sum := sha256.Sum256([]byte(strings.Join(names, "\n") + "\n\n" + n))
		p := &part{name: n, tail: "." + base64.RawURLEncoding.EncodeToString(sum[:4])}
		wrong.If(!name.MatchString(n), "the name of a part is %.80q; want 1 to 64 letters, digits, dots, underscores and hyphens", n)
		wrong.If(len(o.Parts[n]) == 0, "part %s has no address", n)
		wrong.If(r.by[p.tail] != nil, "the names of the parts %v cannot be told apart in leases: choose others", names)
		for _, address := range o.Parts[n] {
			base, err := baseOf(address)
			wrong.If(err != nil, "part %s: %w", n, err)
			wrong.If(taken[base] != "" && err == nil, "part %s: the address %s is there twice, at part %s too", n, base, taken[base])
			taken[base] = n
			p.bases = append(p.bases, base)
		}
		r.parts, r.by[p.tail] = append(r.parts, p), p
	}
	if err := wrong.Of("route: options"); err != nil {
		return nil, err
	}
	r.nodes, r.typed = rendezvous.New(names...), urlnorm.New()
	r.client = &http.Client{Transport: cmp.Or[http.RoundTripper](o.Transport, &http.Transport{
		DialContext: (&net.Dialer{Timeout: 3 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Minute, DisableCompression: true,
	})}
	r.consoles = &http.Client{Transport: o.Consoles}
	r.closing, r.close = context.WithCancel(context.Background())
	r.handler = r.routed()
	return r, nil
}

// baseOf returns the beginning of the URLs at an address.
func baseOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err == nil {
		_, err = net.LookupPort("tcp", u.Port())
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/")+u.RawQuery+u.Fragment != "" || u.User != nil {
		return "", errors.New("the address is " + address + "; want http://HOST:PORT or https://HOST:PORT")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host), nil
}

// Handler answers the requests of docs/http.md.
func (r *Router) Handler() http.Handler { return r.handler }

// Close ends requests that wait for leases, refuses others, and returns when those under way have ended
// and the leases that no client got were given back.
func (r *Router) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.close()
	r.going.Wait()
	r.client.CloseIdleConnections()
	r.consoles.CloseIdleConnections()
	return nil
}

// begin registers a request, unless the Router is closing. It ends with r.going.Done.
func (r *Router) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.going.Add(1)
	}
	return !r.closed
}

// Home returns the name of the part that has a host. A name that no host has is at the first part.
func (r *Router) Home(host string) string {
	if host == "" {
		return r.parts[0].name
	}
	return r.of("", host).name
}

// Mark is what the servers of a part know it by: see serve.PartHeader.
func (r *Router) Mark(part string) string { return r.named(part).mark() }

// named returns the part of a name, or nil.
func (r *Router) named(name string) *part {
	if at := slices.IndexFunc(r.parts, func(p *part) bool { return p.name == name }); at >= 0 {
		return r.parts[at]
	}
	return nil
}

// homesMost is the most hosts whose part is remembered.
const homesMost = 64 << 10

// home returns the part that has a host, given by its key.
func (r *Router) home(host string) *part {
	if p, ok := r.homes.Load(host); ok {
		return p.(*part)
	}
	domain, _ := domainOf(host)
	p := r.named(r.nodes.Owner(domain))
	if r.known.Add(1) > homesMost {
		r.known.Store(0)
		r.homes.Clear()
	}
	r.homes.Store(strings.Clone(host), p)
	return p
}

// of returns the part of a URL, or of the host that was given with it. One without a host has the first part,
// which says what is wrong with it.
func (r *Router) of(url, host string) *part { return r.ofOr(url, host, r.parts[0]) }

// ofOr is of with another part in place of the first.
func (r *Router) ofOr(url, host string, other *part) *part {
	key, err := hostkey.Spelled(host)
	if host == "" {
		key, err = hostkey.Of(url)
	}
	if err != nil {
		return other
	}
	return r.home(key)
}

// ofTyped is ofOr for a URL that a part's Console reads as people type it.
func (r *Router) ofTyped(url string, other *part) *part {
	if u, err := r.typed.Typed(url); err == nil {
		url = u
	}
	return r.ofOr(url, "", other)
}

// domainOf returns the shortest end of a host's name that is no public suffix; without one, the whole
// name. A registrable domain may have others below it, as amazonaws.com has: they are at its part.
func domainOf(host string) (domain string, ok bool) {
	for at := strings.LastIndexByte(host, '.'); at > 0; {
		at = strings.LastIndexByte(host[:at], '.')
		if domain, err := urlnorm.RegistrableDomain(host[at+1:]); err == nil {
			return domain, true
		}
	}
	return host, false
}

// routes are the requests that are answered, by method and path.
var routes = map[string]func(*call) error{
	"POST /v1/urls":                 (*call).postURLs,
	"GET /v1/urls":                  (*call).getURL,
	"POST /v1/leases":               (*call).postLeases,
	"GET /v1/leases":                sorted("leases", 100, "since"),
	"DELETE /v1/leases":             (*call).everywhere,
	"GET /v1/leases/{id}":           (*call).onLease,
	"DELETE /v1/leases/{id}":        (*call).onLease,
	"POST /v1/leases/{id}/extend":   (*call).onLease,
	"POST /v1/leases/{id}/handback": (*call).onLease,
	"POST /v1/leases/{id}/join":     (*call).postJoin,
	"POST /v1/leases/{id}/done":     (*call).postDone,
	"POST /v1/done":                 (*call).postEnds,
	"POST /v1/hosts/{host}/contact": (*call).postContact,
	"GET /v1/hosts/{host}":          (*call).ofHost,
	"DELETE /v1/hosts/{host}/urls":  (*call).deleteURLs,
	"GET /v1/hosts":                 (*call).getHosts,
	"GET /v1/due":                   sorted("hosts", 20, "due"),
	"GET /v1/rules":                 (*call).getRules,
	"GET /v1/rules/{scope}":         (*call).getRule,
	"PUT /v1/rules/{scope}":         (*call).changeRule,
	"DELETE /v1/rules/{scope}":      (*call).changeRule,
	"POST /v1/do":                   (*call).postDo,
	"GET /v1/crawls":                (*call).getCrawls,
	"GET /v1/crawls/{name}":         (*call).everywhere,
	"PUT /v1/crawls/{name}":         (*call).putCrawl,
	"DELETE /v1/crawls/{name}":      (*call).everywhere,
	"GET /v1/crawls/{name}/queues":  (*call).getQueues,
	"GET /v1/list":                  (*call).getList,
	"GET /v1/stats":                 (*call).getStats,
	"GET /v1/openapi.json":          func(c *call) error { return c.pass(c.r.parts[0]) },
	"GET /livez":                    func(c *call) error { return c.reply(map[string]string{"status": "live"}) },
	"GET /readyz":                   (*call).getReady,
	"POST /v1/stream":               instead("ask for leases with POST /v1/leases and wait_s"),
	"GET /{$}":                      (*call).getIndex,
	"GET /parts/{part}/{page...}":   (*call).onPart,
	"POST /parts/{part}/{page...}":  (*call).onPart,
	"GET /v1/export":                (*call).getExport,
	"POST /v1/import":               (*call).postImport,
	"GET /v1/fleet":                 (*call).ofFleet,
	"POST /v1/fleet":                (*call).ofFleet,
	"GET /metrics":                  instead("ask each part for its figures, with GET /parts/{part}/metrics"),
}

// ofFleet lets a machine of the fleet answer that has one of the partitions.
func (c *call) ofFleet() (err error) {
	if !c.r.o.Fleet {
		return instead("ask a machine of the part that is a fleet")(c)
	}
	for _, p := range c.r.parts {
		if err = c.pass(p); err == nil || problemOf(err).Status != http.StatusServiceUnavailable {
			break
		}
	}
	return err
}

// instead refuses a request that only a part can answer.
func instead(what string) func(*call) error {
	return func(c *call) error {
		return &problem{kind: "not-routed", Status: http.StatusNotImplemented, Detail: "a router does not answer this: " + what}
	}
}

// call is a request and its answer.
type call struct {
	r      *Router
	w      http.ResponseWriter
	q      *http.Request
	client *http.Client // asks the parts
	query  url.Values
	asked  time.Time
	held   int64 // bytes counted in r.used
	began  bool  // a part of the answer is written
	code   int
	talks  bool   // the client reads while it sends
	host   string // by which the client calls the router, if only a part can judge its token; or empty
}

func (r *Router) routed() http.Handler {
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for pattern, answer := range routes {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) { r.answer(w, q, answer) })
		method, path, _ := strings.Cut(pattern, " ")
		methods[path] = append(methods[path], method)
	}
	refuse := func(w http.ResponseWriter, q *http.Request, p *problem) {
		r.answer(w, q, func(*call) error { return p })
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		mux.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			refuse(w, q, &problem{kind: "bad-request", Status: http.StatusMethodNotAllowed, Detail: q.Method + " is not answered here; want " + strings.Join(allowed, " or ")})
		})
	}
	missing := func(w http.ResponseWriter, q *http.Request) {
		refuse(w, q, &problem{kind: "not-found", Status: http.StatusNotFound, Detail: "a router has no " + q.URL.Path + "; /v1/openapi.json lists what there is"})
	}
	mux.HandleFunc("/", missing)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if at := q.URL.EscapedPath(); path.Clean(at) != at && path.Clean(at)+"/" != at { // the mux would redirect it
			missing(w, q)
			return
		}
		mux.ServeHTTP(w, q)
	})
}

// answer answers a request.
func (r *Router) answer(w http.ResponseWriter, q *http.Request, answer func(*call) error) {
	c := &call{r: r, w: w, q: q, client: r.client, asked: time.Now(), code: http.StatusOK}
	defer func() {
		if r.used.Add(-c.held); c.talks && c.code >= http.StatusBadRequest {
			serve.DropRest(w, deadlined{c: c})
		}
	}()
	h := w.Header()
	h.Set("Frontier-Version", "1")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if len(q.TransferEncoding) > 0 {
		h.Set("Connection", "close") // there may have been a Content-Length, too, which net/http hides (RFC 9112, 6.1)
	}
	probe := q.URL.Path == "/livez" || q.URL.Path == "/readyz"
	under := r.requests.Add(1)
	defer r.requests.Add(-1)
	if !console.Ours(q.Host, r.o.Names) {
		c.host = q.Host
	}
	var err error
	switch {
	case console.Foreign(q):
		err = &problem{kind: "forbidden", Status: http.StatusForbidden, Detail: "a page of another site sent this"}
	case !probe && (q.Header.Get("Authorization") == "" || ofPages(q)) && !console.Ours(q.Host, r.o.Names):
		err = &problem{kind: "forbidden", Status: http.StatusMisdirectedRequest, Detail: "the service does not answer under this host name without a token, and pages not at all: allow it with -names"}
	case !slices.Contains([]string{"", "identity"}, q.Header.Get("Content-Encoding")):
		err = &problem{kind: "bad-request", Status: http.StatusUnsupportedMediaType, Detail: "the body is encoded; want it as it is"}
	case len(q.URL.RawQuery) > 16<<10:
		err = &problem{kind: "bad-request", Status: http.StatusRequestURITooLong, Detail: "the query is too long"}
	case !probe && (under > int64(r.o.MaxRequests) || r.used.Load() > r.o.MaxBuffered):
		err = busy("the router has too many requests at once: try again")
	case !r.begin():
		err = busy("the router is stopping")
	default:
		defer r.going.Done()
		if c.query, err = url.ParseQuery(q.URL.RawQuery); err != nil {
			err = badRequest("the query: %v", err)
		} else if q.Method == "POST" && len(c.query) > 0 && q.URL.Path != "/v1/fleet" {
			err = badRequest("%.80q: a POST has no such parameter", q.URL.RawQuery)
		} else if strings.HasPrefix(q.URL.Path, "/v1/") && slices.ContainsFunc(slices.Collect(maps.Values(c.query)), func(v []string) bool { return len(v) > 1 }) {
			err = badRequest("%.80q: a parameter is there more than once", q.URL.RawQuery)
		} else {
			err = answer(c)
		}
	}
	if err != nil {
		c.fail(err)
	}
	r.o.Logger.LogAttrs(q.Context(), slog.LevelInfo, "request", slog.String("method", q.Method), slog.String("path", q.URL.Path), slog.Int("status", c.code),
		slog.Duration("took", time.Since(c.asked)), slog.String("from", q.RemoteAddr))
}

// ofPages reports whether a request is for a page.
func ofPages(q *http.Request) bool {
	return q.URL.Path == "/" || strings.HasPrefix(q.URL.Path, "/parts/")
}

// hold counts n more bytes in memory until the request has ended.
func (c *call) hold(n int) {
	c.held += int64(n)
	c.r.used.Add(int64(n))
}

// grow counts n more bytes, and refuses them if too many are in memory.
func (c *call) grow(n int) error {
	if c.hold(n); n > 0 && c.r.used.Load() > c.r.o.MaxBuffered {
		return busy("the router has too many requests at once: try again")
	}
	return nil
}

// fail answers with an error, or appends it if the answer has begun.
func (c *call) fail(err error) {
	p := problemOf(err)
	b, _ := json.Marshal(p)
	if c.client == c.r.consoles {
		b, _ = json.Marshal(map[string]string{"error": p.Detail})
	}
	if c.began {
		c.code = p.Status // for the log
		_ = c.write(append(b, '\n'))
		return
	}
	switch p.Status {
	case http.StatusServiceUnavailable:
		c.w.Header().Set("Retry-After", cmp.Or(p.wait, "1"))
	case http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	_ = c.send(p.Status, "application/problem+json", append(b, '\n'))
}

// send writes the status, and a whole answer or its beginning.
func (c *call) send(status int, contentType string, b []byte) error {
	c.w.Header().Set("Content-Type", contentType)
	c.code, c.began = status, true
	c.w.WriteHeader(status)
	return c.write(b)
}

// write writes a part of an answer. It fails if the client does not read in time.
func (c *call) write(b []byte) error {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(idle))
	_, err := c.w.Write(b)
	return err
}

// reply answers with x as JSON.
func (c *call) reply(x any) error {
	b, err := json.Marshal(x)
	if err == nil {
		_ = c.send(http.StatusOK, "application/json", append(b, '\n'))
	}
	return err
}
