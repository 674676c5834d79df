// This file does what all HTTP requests have in common: authorization, error responses, logging.

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/storage"
)

// route is one method and path of the API.
type route struct {
	method, path string
	role         Role
	answer       func(*Service, *call) error
	query        string // its parameters, separated by blanks; anyQuery: ignored
}

const anyQuery = "any"

var routes = []route{
	{"POST", "/v1/urls", Crawl, (*Service).postURLs, ""},
	{"GET", "/v1/urls", Look, (*Service).getURL, "url crawl host"},
	{"POST", "/v1/leases", Crawl, (*Service).postLeases, ""},
	{"GET", "/v1/leases", Operate, toConsole("/api/leases", ""), "client scope n"}, // with an ID, a client can end another's lease
	{"DELETE", "/v1/leases", Operate, (*Service).deleteLeases, "client scope"},
	{"DELETE", "/v1/leases/{id}", Operate, (*Service).deleteLease, ""},
	{"POST", "/v1/stream", Crawl, (*Service).streamLeases, ""},
	{"GET", "/v1/leases/{id}", Look, (*Service).getLease, ""},
	{"POST", "/v1/leases/{id}/done", Crawl, (*Service).postDone, ""},
	{"POST", "/v1/leases/{id}/extend", Crawl, (*Service).postExtend, ""},
	{"POST", "/v1/leases/{id}/handback", Crawl, (*Service).postHandBack, ""},
	{"POST", "/v1/leases/{id}/join", Crawl, (*Service).postJoin, ""},
	{"POST", "/v1/done", Crawl, (*Service).postEnds, ""},
	{"POST", "/v1/hosts/{host}/contact", Crawl, (*Service).postContact, ""},
	{"GET", "/v1/crawls", Look, (*Service).getCrawls, ""},
	{"GET", "/v1/crawls/{name}", Look, (*Service).getCrawl, ""},
	{"PUT", "/v1/crawls/{name}", Operate, (*Service).putCrawl, ""},
	{"DELETE", "/v1/crawls/{name}", Operate, (*Service).deleteCrawl, "forget"},
	{"GET", "/v1/crawls/{name}/queues", Look, (*Service).getQueues, "after n"},
	{"GET", "/v1/list", Look, (*Service).getList, "crawl host finished n after"},
	{"DELETE", "/v1/hosts/{host}/urls", Operate, (*Service).deleteHost, "crawl forget"},
	{"GET", "/v1/hosts", Look, toConsole("/api/hosts", ""), "scope after n reason match sort sunk"},
	{"GET", "/v1/hosts/{host}", Look, (*Service).getHost, ""},
	{"GET", "/v1/due", Look, toConsole("/api/due", ""), "n"},
	{"GET", "/v1/rules", Look, toConsole("/api/rules", ""), ""},
	{"GET", "/v1/rules/{scope}", Look, (*Service).getRule, ""},
	{"PUT", "/v1/rules/{scope}", Operate, (*Service).putRule, ""},
	{"DELETE", "/v1/rules/{scope}", Operate, (*Service).deleteRule, ""},
	{"POST", "/v1/do", Operate, (*Service).postDo, ""},
	{"GET", "/v1/stats", Look, toConsole("/api/status", ""), ""},
	{"GET", "/v1/export", Operate, toConsole("/api/export", ""), ""},
	{"POST", "/v1/import", Operate, toConsole("/api/import", ""), ""},
	{"GET", "/v1/fleet", Look, (*Service).fleet, ""},
	{"POST", "/v1/fleet", Operate, (*Service).fleet, "drain back admit at remove"},
	{"GET", "/metrics", Look, toConsole("/metrics", ""), anyQuery},
	{"GET", "/livez", Anonymous, (*Service).getLive, anyQuery},
	{"GET", "/readyz", Anonymous, (*Service).getReady, anyQuery},
	{"GET", "/v1/openapi.json", Anonymous, (*Service).getOpenAPI, ""},
}

// methodsOf maps each path to its methods.
var methodsOf = func() map[string][]string {
	m := map[string][]string{}
	for _, x := range routes {
		m[x.path] = append(m[x.path], x.method)
	}
	return m
}()

// call is a request and its response.
type call struct {
	w     http.ResponseWriter
	r     *http.Request
	s     *Service
	ctx   context.Context // of the request; ends when the Service is cut
	query url.Values
	who   string
	asked time.Time // when the request arrived
	began bool      // part of the response is written
	n     int       // bytes written
	code  int
	talks bool // the client reads while it sends
}

// routed returns the Handler.
func (s *Service) routed() http.Handler {
	mux := http.NewServeMux()
	for _, x := range routes {
		mux.HandleFunc(x.method+" "+x.path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, &x) })
	}
	for path, methods := range methodsOf {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			s.refuse(w, r, "bad-request", http.StatusMethodNotAllowed, r.Method+" is not answered here; want "+strings.Join(methods, " or "))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		detail := "there is no " + r.URL.Path + "; /v1/openapi.json lists what there is"
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			detail = "there is no " + r.URL.Path + "; paths of the API begin with /v1/, as in /v1/urls"
		}
		s.refuse(w, r, "not-found", http.StatusNotFound, detail)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console.Foreign(r) {
			s.refuse(w, r, "forbidden", http.StatusForbidden, "a page of another site sent this")
			return
		}
		if at := r.URL.EscapedPath(); path.Clean(at) != at && path.Clean(at)+"/" != at { // the mux would redirect it
			s.refuse(w, r, "not-found", http.StatusNotFound, "a part of the path is empty, or dots: "+r.URL.Path)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// refuse answers a request that no route serves.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, kind string, status int, detail string) {
	s.answer(w, r, &route{role: Anonymous, query: anyQuery, answer: func(*Service, *call) error {
		return &problem{kind: kind, status: status, detail: detail}
	}})
}

// answer answers a request.
func (s *Service) answer(w http.ResponseWriter, r *http.Request, x *route) {
	began := time.Now()
	s.requests.Add(1)
	defer s.requests.Add(-1)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &call{w: w, r: r, s: s, ctx: ctx, asked: began, code: http.StatusOK}
	defer func() {
		if c.talks && c.code >= http.StatusBadRequest {
			DropRest(w, deadlined{c})
		}
	}()
	h := w.Header()
	h.Set("Frontier-Version", "1")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if len(r.TransferEncoding) > 0 {
		h.Set("Connection", "close") // there may have been a Content-Length, too, which net/http hides (RFC 9112, 6.1)
	}
	if r.ContentLength != 0 {
		// If the handler does not read the body, the server reads it before it sends the answer.
		_ = http.NewResponseController(w).SetReadDeadline(began.Add(s.o.Idle / 2))
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the previous answer's
	err := s.admit(c, x)
	if err == nil {
		err = c.parse(x)
	}
	if err == nil {
		switch {
		case x.role == Anonymous:
			err = x.answer(s, c)
		case s.requests.Load() > int64(s.o.MaxRequests):
			h.Set("Connection", "close") // for health probes
			err = errBusy
		case !s.begin():
			err = ErrClosing
		default:
			defer s.calls.Done()
			stop := context.AfterFunc(s.cut, cancel)
			defer stop()
			err = x.answer(s, c)
		}
	}
	gone := r.Context().Err() != nil
	if errors.Is(err, context.Canceled) && !gone {
		err = ErrClosing
	}
	if err != nil {
		c.fail(err)
	}
	if gone && err != nil {
		c.code = statusGone
	}
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", c.code),
		slog.Int("bytes", c.n), slog.Duration("took", time.Since(began)), slog.String("from", r.RemoteAddr), slog.String("who", c.who))
}

// maxScans is how many responses may scan the whole frontier at once. Each holds blocks of it until its
// client has read.
const maxScans = 4

// errBusy refuses a request when too many of its kind are under way.
var errBusy = errors.New("serve: too many such requests at once: try again")

// scan takes one of the maxScans slots. release returns it.
func (c *call) scan() (release func(), err error) {
	select {
	case c.s.scans <- struct{}{}:
		return func() { <-c.s.scans }, nil
	default:
		return nil, errBusy
	}
}

// waits counts a waiting request until over is called, so that waiting requests never use all
// connections.
func (c *call) waits() (over func(), err error) {
	most := c.s.o.MaxRequests
	if c.s.waiting.Add(1) > int64(most-most/8) {
		c.s.waiting.Add(-1)
		return nil, errBusy
	}
	return func() { c.s.waiting.Add(-1) }, nil
}

// statusGone is logged when the client disconnected before the response.
const statusGone = 499

// untilClosing ends a call's context when the Service begins to close: the call is about to wait, perhaps
// for long. The caller must call stop.
func (c *call) untilClosing() (stop func()) {
	ctx, cancel := context.WithCancel(c.ctx)
	forget := context.AfterFunc(c.s.closing, cancel)
	c.ctx = ctx
	return func() { forget(); cancel() }
}

// parse parses the query.
func (c *call) parse(x *route) error {
	if x.query == anyQuery {
		return nil
	}
	var err error
	if c.query, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		return badRequest("the query: %w", err)
	}
	for name, values := range c.query {
		if !slices.Contains(strings.Fields(x.query), name) {
			return badRequest("%.40s: there is no such parameter", name)
		}
		if len(values) > 1 {
			return badRequest("%.40s is there %d times", name, len(values))
		}
	}
	return nil
}

// admit checks that the client's role allows the request.
func (s *Service) admit(c *call, x *route) error {
	var role Role
	role, c.who = s.Role(c.r.Header.Get("Authorization"), c.r.TLS)
	switch {
	case len(c.r.URL.RawQuery) > 16<<10:
		return &problem{kind: "bad-request", status: http.StatusRequestURITooLong, detail: "the query is too long"}
	case !slices.Contains([]string{"", "identity"}, c.r.Header.Get("Content-Encoding")):
		return &problem{kind: "bad-request", status: http.StatusUnsupportedMediaType, detail: fmt.Sprintf("the body is encoded as %.40q; want it as it is", c.r.Header.Get("Content-Encoding"))}
	case s.Open() && !console.Ours(c.r.Host, s.o.Names):
		return &problem{kind: "forbidden", status: http.StatusMisdirectedRequest, detail: "the service does not answer under this host name without a token: allow it with -names"}
	case x.role == Anonymous || role >= x.role:
		return s.IsPart(c.r.Context(), c.r.Header.Get(PartHeader), x.role > Look && x.method != "GET")
	case role == Anonymous:
		c.w.Header().Set("WWW-Authenticate", "Bearer")
		return &problem{kind: "unauthorized", status: http.StatusUnauthorized, detail: s.missing(c.r)}
	}
	return &problem{kind: "forbidden", status: http.StatusForbidden, detail: fmt.Sprintf("the role %s may not do this; %s may", role, x.role)}
}

// problem is an error response in the form of RFC 9457.
type problem struct {
	kind   string
	status int
	detail string
	errors []lineProblem
}

type lineProblem struct {
	Line   int    `json:"line"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return p.detail }

// problemBase is the prefix of the problem types.
const problemBase = "https://github.com/seed-7440039f/frontier/problems/"

var problemTitles = map[string]string{
	"not-leased": "The lease has ended, or never was", "bad-request": "The request is malformed", "not-found": "There is no such resource",
	"unknown-host": "Nothing is known of the host", "unknown-url": "The URL is unknown", "unknown-crawl": "The crawl is unknown",
	"limit": "The frontier refuses this", "group-busy": "The group has no free slot", "full": "The frontier's memory is used up", "no-space": "The disk is full",
	"busy": "The service is busy", "unauthorized": "A token is needed", "forbidden": "This is not allowed",
	"too-large": "The request is too large", "conflict": "The request differs from the one before", "other-part": "The server is another part of the frontier", "internal": "The frontier has failed",
}

// MarshalJSON writes the JSON object of RFC 9457.
func (p *problem) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type   string        `json:"type"`
		Title  string        `json:"title"`
		Status int           `json:"status"`
		Detail string        `json:"detail,omitempty"`
		Errors []lineProblem `json:"errors,omitempty"`
	}{problemBase + p.kind, problemTitles[p.kind], p.status, p.detail, p.errors})
}

func badRequest(format string, args ...any) *problem {
	return &problem{kind: "bad-request", status: http.StatusBadRequest, detail: fmt.Errorf(format, args...).Error()}
}

// problemOf maps an error to its problem.
func problemOf(err error) *problem {
	var p *problem
	var large *http.MaxBytesError
	var entry *frontier.EntryError
	kind, status := "internal", http.StatusInternalServerError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, frontier.ErrNotLeased):
		kind, status = "not-leased", http.StatusConflict
	case errors.Is(err, frontier.ErrUnknownHost):
		kind, status = "unknown-host", http.StatusNotFound
	case errors.Is(err, frontier.ErrFull):
		kind, status = "full", http.StatusInsufficientStorage
	case errors.Is(err, syscall.ENOSPC):
		kind, status = "no-space", http.StatusInsufficientStorage
	case errors.Is(err, ErrClosing), errors.Is(err, ErrWithheld), errors.Is(err, storage.ErrMoved), errors.Is(err, frontier.ErrClosed), errors.Is(err, errRoom), errors.Is(err, errBusy), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind, status = "busy", http.StatusServiceUnavailable
	case errors.As(err, &large):
		return &problem{kind: "too-large", status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body is longer than %d bytes", large.Limit)}
	case errors.Is(err, errLong), errors.Is(err, errNever):
		kind, status = "too-large", http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // the client was silent for too long
		kind, status = "bad-request", http.StatusRequestTimeout
	case errors.Is(err, jsonl.ErrSyntax), errors.Is(err, errBody), errors.Is(err, frontier.ErrOutcome):
		kind, status = "bad-request", http.StatusBadRequest
	case errors.Is(err, frontier.ErrGroupBusy):
		kind, status = "group-busy", http.StatusUnprocessableEntity
	case errors.As(err, &entry):
		kind, status = "limit", http.StatusUnprocessableEntity
	}
	return &problem{kind: kind, status: status, detail: err.Error()}
}

// fail responds with an error, or appends it if the response has begun.
func (c *call) fail(err error) {
	p := problemOf(err)
	if p.kind == "internal" && c.r.Context().Err() == nil { // otherwise the client disconnected
		c.s.log.Warn("a request failed", "path", c.r.URL.Path, "error", err)
	}
	b, _ := json.Marshal(p)
	if c.began {
		c.code = p.status // for the log
		c.write(append(b, '\n'))
		return
	}
	if p.status == http.StatusServiceUnavailable {
		c.w.Header().Set("Retry-After", "1")
	}
	c.send(p.status, "application/problem+json", append(b, '\n'))
}

// send writes a complete response.
func (c *call) send(status int, contentType string, b []byte) {
	c.w.Header().Set("Content-Type", contentType)
	c.code, c.began = status, true
	c.w.WriteHeader(status)
	c.write(b)
}

// reply responds with x as JSON.
func (c *call) reply(x any) error {
	b, err := json.Marshal(x)
	if err == nil {
		c.send(http.StatusOK, "application/json", append(b, '\n'))
	}
	return err
}

// write writes part of a response. It fails if the client does not read in time.
func (c *call) write(b []byte) error {
	control := http.NewResponseController(c.w)
	_ = control.SetWriteDeadline(time.Now().Add(c.s.o.Idle)) // some writers have no deadlines
	n, err := c.w.Write(b)
	c.n += n
	return err
}

// stream writes lines of a response now. It begins the response, also if there are no lines yet.
func (c *call) stream(lines []byte) error {
	if !c.began {
		c.send(http.StatusOK, "application/x-ndjson", nil)
	}
	if len(lines) == 0 {
		return nil
	}
	if err := c.write(lines); err != nil {
		return err
	}
	return c.flush()
}

func (c *call) flush() error { return http.NewResponseController(c.w).Flush() }

// decode reads a small JSON object into x. Without a body, or with null, x is unchanged.
func (c *call) decode(x any) error {
	c.deadline()
	in := &counted{in: http.MaxBytesReader(c.w, c.r.Body, maxLine), room: &c.s.room}
	defer in.close()
	err := jsonl.Decode(in, x)
	var large *http.MaxBytesError
	if err == nil || errors.As(err, &large) || errors.Is(err, errRoom) || errors.Is(err, errNever) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return badRequest("the body: %w", err)
}

// deadline bounds the next read from the client.
func (c *call) deadline() {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.s.o.Idle))
}

// undeadline removes the bound while the client waits for the server.
func (c *call) undeadline() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) }

func (s *Service) getLive(c *call) error { return c.reply(map[string]string{"status": "live"}) }

func (s *Service) getReady(c *call) error {
	if err := s.Ready(); err != nil {
		return &problem{kind: "busy", status: http.StatusServiceUnavailable, detail: err.Error()}
	}
	return c.reply(map[string]string{"status": "ready"})
}

// Ready returns why the Service does not answer requests or hands out no leases at the moment, or nil.
func (s *Service) Ready() error {
	if s.closing.Err() != nil {
		return ErrClosing
	}
	if err := s.f.Err(); err != nil || s.o.Permit == nil {
		return err
	}
	if err := s.o.Permit(s.closing, time.Time{}); err != nil {
		return fmt.Errorf("%w: %w", ErrWithheld, err)
	}
	return nil
}
