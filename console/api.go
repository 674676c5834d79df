// This file answers API requests.

package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

const (
	maxList  = 1000   // hosts or URLs per response
	maxRules = 20_000 // rules per response
	maxBody  = 16 << 20
)

// routes registers the API's handlers. Requests that change something go through changing.
func (c *Console) routes(mux *http.ServeMux, changing func(http.HandlerFunc) http.Handler) {
	get := func(path string, answer func(*http.Request) (any, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { reply(w, r, answer) })
	}
	get("/api/status", func(r *http.Request) (any, error) { return c.status(r.Context()), nil })
	get("/api/hosts", c.hosts)
	get("/api/host", c.host)
	get("/api/urls", c.urls)
	get("/api/url", c.url)
	get("/api/due", c.due)
	get("/api/rules", c.rules)
	mux.Handle("GET /api/leases", changing(func(w http.ResponseWriter, r *http.Request) { reply(w, r, c.leases) })) // with an ID, a reader could end the lease
	c.metrics(mux, func(h http.Handler) http.Handler { return h })
	mux.Handle("POST /api/do", changing(func(w http.ResponseWriter, r *http.Request) {
		reply(w, r, func(r *http.Request) (any, error) {
			var a Action
			if err := jsonl.Decode(http.MaxBytesReader(w, r.Body, maxBody), &a); err != nil {
				return nil, &badRequest{fmt.Errorf("the action, of at most %d bytes: %w", maxBody, err)}
			}
			done, err := c.act(r.Context(), a)
			return done, refused(err)
		})
	}))
	mux.Handle("GET /api/export", changing(c.export))
	mux.Handle("POST /api/import", changing(func(w http.ResponseWriter, r *http.Request) {
		reply(w, r, func(r *http.Request) (any, error) { return c.takeIn(r.Context(), r.Body) })
	}))
	mux.Handle("POST /api/changed", changing(func(w http.ResponseWriter, r *http.Request) { reply(w, r, c.changed) }))
}

// badRequest is an error in the request.
type badRequest struct{ error }

func (e *badRequest) Unwrap() error { return e.error }

// refusal is an error with which the frontier refused a request.
type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }

func refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusal{err}
}

// reply responds with JSON, or with an error.
func reply(w http.ResponseWriter, r *http.Request, answer func(*http.Request) (any, error)) {
	x, err := answer(r)
	if err != nil {
		writeJSON(w, statusOf(err), map[string]string{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, x)
}

func writeJSON(w http.ResponseWriter, status int, x any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(x) // fails only if the client disconnected
}

// statusOf returns the HTTP status for an error: 4xx for the client's faults, 5xx for ours.
func statusOf(err error) int {
	var bad *badRequest
	var no *refusal
	var large *http.MaxBytesError
	var corrupt *frontier.CorruptError
	var line *transfer.LineError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrConflict), errors.Is(err, frontier.ErrNotLeased):
		return http.StatusConflict
	case errors.As(err, &bad), errors.As(err, &line), errors.Is(err, ErrAction), errors.Is(err, frontier.ErrVersion): // ErrVersion: of an export
		return http.StatusBadRequest
	case errors.Is(err, errNoPage):
		return http.StatusNotFound
	case errors.Is(err, errToken):
		return http.StatusUnauthorized
	case errors.Is(err, errBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, frontier.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.As(err, &no) && !errors.As(err, &corrupt):
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}

var errBusy = errors.New("console: too many such requests at once: ask again")

// scan takes one of the maxScans slots, or returns an error if all are taken.
func (c *Console) scan() (release func(), err error) {
	select {
	case c.scans <- struct{}{}:
		return func() { <-c.scans }, nil
	default:
		return nil, errBusy
	}
}

// query parses a request's parameters.
type query struct {
	r    *http.Request
	errs faults.List
}

func (q *query) str(name string) string { return q.r.FormValue(name) }

func (q *query) num(name string, most, otherwise int) int {
	s := q.str(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	q.errs.If(err != nil || n < 0, "%s: want a number, not %.40q", name, s)
	return min(n, most)
}

func (q *query) flag(name string) bool {
	s := q.str(name)
	if s == "" {
		return false
	}
	x, err := strconv.ParseBool(s)
	q.errs.If(err != nil, "%s: want true or false, not %.40q", name, s)
	return x
}

func (q *query) scope(f *frontier.Frontier) scope.Scope {
	s := cmp.Or(q.str("scope"), "*")
	of, err := ScopeOf(f, s)
	if err == nil {
		err = f.CheckScope(of)
	}
	q.errs = append(q.errs, err)
	return of
}

func (q *query) err() error {
	if err := errors.Join(q.errs...); err != nil {
		return &badRequest{err}
	}
	return nil
}

func (c *Console) host(r *http.Request) (any, error) {
	name, err := KeyOf(c.f, r.FormValue("name"))
	if err != nil {
		return nil, &badRequest{err}
	}
	h, err := c.views.Host(r.Context(), name)
	x := c.hostView(h, c.f.Now())
	if errors.Is(err, frontier.ErrUnknownHost) {
		x.Known, x.Why, err = false, c.noURL(r.Context(), name), nil
	}
	return x, refused(err)
}

func (c *Console) urls(r *http.Request) (any, error) {
	q := &query{r: r}
	scope, n, after := q.scope(c.f), q.num("n", maxList, 100), q.str("after")
	if err := q.err(); err != nil {
		return nil, err
	}
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	defer release()
	out := URLList{URLs: []URL{}}
	if !c.ready(c.ordered) {
		out.Preparing = true
		return out, nil
	}
	for u, err := range c.views.URLs(r.Context(), scope, after) {
		if err != nil {
			return nil, refused(err)
		}
		if len(out.URLs) == n {
			out.Next = after
			break
		}
		after = u.Cursor()
		home, why, parked := c.lot(u.Entry.Crawl)
		state := inspect.URLWaiting.String()
		if parked {
			state = reasonParked
		}
		out.URLs = append(out.URLs, URL{
			URL: u.Entry.URL, Crawl: home, State: state, Why: why, Host: u.Host, Priority: u.Priority,
			Attempt: u.Attempt, Depth: u.Entry.Depth, Visits: u.History.Visits, Changes: u.History.Changes, Last: when(u.History.LastVisit),
		})
	}
	return out, nil
}

// url describes a URL, and explains why it waits.
func (c *Console) url(r *http.Request) (any, error) {
	q := &query{r: r}
	crawl := q.num("crawl", 1<<31-1, 0)
	if err := q.err(); err != nil {
		return nil, err
	}
	u, err := c.o.Normalize(r.FormValue("url"))
	if err != nil {
		return nil, refused(fmt.Errorf("console: the URL: %w", err))
	}
	s, err := c.views.Status(r.Context(), frontier.Entry{URL: u, Crawl: uint32(crawl)})
	if err != nil {
		return nil, refused(err)
	}
	x := URL{
		URL: u, Crawl: uint32(crawl), State: s.State.String(), Host: s.Host, Priority: s.Priority, Attempt: s.Attempt,
		Depth: s.Entry.Depth, Until: when(s.Until), Visits: s.History.Visits, Changes: s.History.Changes, Last: when(s.History.LastVisit),
	}
	now := c.f.Now()
	left := Ago(s.Until.Sub(now))
	switch s.State {
	case inspect.URLUnknown:
		x.Why = "it was never admitted"
	case inspect.URLLeased:
		x.Why = "it is being fetched; its lease ends in " + left
	case inspect.URLScheduled:
		x.Priorities, x.Importance = len(c.f.Stats().WaitingBy), c.worth(s.Entry, s.Host)
		x.Why = "it waits for its time, in " + left
		h, err := c.views.Host(r.Context(), s.Host)
		if err == nil && (h.Due.After(s.Until) || h.GroupDue.After(s.Until)) {
			x.Why += "; its host is left alone for longer, for " + Ago(max(h.Due.Sub(now), h.GroupDue.Sub(now)))
		}
		if err == nil && byHand(h.Reason) {
			x.Why += "; its host: " + why(h, now)
		}
	case inspect.URLKnown:
		x.Why = "it was admitted, and is done for good or given up"
		if c.o.Parked == nil {
			break
		}
		if why, err := c.o.Parked(r.Context(), x.Crawl, x.Host, u); err != nil {
			return nil, refused(err)
		} else if why != "" {
			x.State, x.Why = reasonParked, why
		}
	case inspect.URLFinished:
		x.Why = "it is done, and its record was kept"
	case inspect.URLWaiting:
		x.Why = "it waits for its host"
		x.Priorities, x.Importance = len(c.f.Stats().WaitingBy), c.worth(s.Entry, s.Host)
		if h, err := c.views.Host(r.Context(), s.Host); err == nil {
			if h.Waiting > 1 {
				x.Why += ", with " + plural(h.Waiting-1, "other")
			}
			if x.Why += ": " + why(h, now); h.Rule.Priority != 0 {
				x.Why += "; a rule sets its priority"
			}
			x.Standing, x.Ahead = h.Standing, c.ahead(h, s.Priority)
		}
	}
	if x.Ends, err = c.ends(r.Context(), u); err != nil {
		return nil, refused(err)
	}
	if (s.State == inspect.URLKnown || s.State == inspect.URLFinished) && x.State != reasonParked && len(x.Ends) > 0 {
		x.Why = "it is done: the last request for it " + x.Ends[0].words(now)
	}
	return x, nil
}

func (c *Console) due(r *http.Request) (any, error) {
	q := &query{r: r}
	n := q.num("n", maxList, 20)
	if err := q.err(); err != nil {
		return nil, err
	}
	out := HostList{Now: c.f.Now().UTC(), Hosts: []HostRow{}}
	next, err := c.views.Upcoming(r.Context(), n, false)
	if err != nil {
		return nil, refused(err)
	}
	for _, u := range next {
		out.Hosts = append(out.Hosts, c.hostRow(u.Host))
	}
	return out, nil
}

func (c *Console) rules(r *http.Request) (any, error) {
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	defer release()
	out := RuleList{Rules: []ScopeRule{}}
	for s, x := range c.f.Rules() {
		if len(out.Rules) == maxRules {
			out.More = true
			break
		}
		out.Rules = append(out.Rules, ScopeRule{s.String(), RuleOf(x)})
	}
	return out, r.Context().Err()
}

// changed takes in a list of changed URLs.
func (c *Console) changed(r *http.Request) (any, error) {
	if c.o.Changed == nil {
		return nil, fmt.Errorf("%w: it fetches nothing again, so changes mean nothing to it", ErrAction)
	}
	var at time.Time
	if s := r.URL.Query().Get("at"); s != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, s); err != nil || at.After(c.f.Now()) {
			return nil, &badRequest{fmt.Errorf("at: want a time that has passed, as in 2027-01-31T08:00:00Z, not %.40q", s)}
		}
	}
	x, err := c.o.Changed(r.Context(), r.Body, at)
	if x.URLs > 0 {
		c.log.Info("a list of changed URLs was taken", "urls", x.URLs, "taken", x.New+x.Known)
	}
	if err != nil {
		return nil, refused(fmt.Errorf("%w (the %d URLs before are taken)", err, x.URLs))
	}
	return x, nil
}

// exportMemory is the memory for sorting of each of maxScans exports.
const exportMemory = 8 << 20

// export streams an export. If it fails half way it aborts the connection, so that the client does not
// take a part for the whole.
func (c *Console) export(w http.ResponseWriter, r *http.Request) {
	release, err := c.scan()
	if err != nil {
		writeJSON(w, statusOf(err), map[string]string{"error": err.Error()})
		return
	}
	defer release()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="frontier.jsonl"`)
	counted := &countingWriter{w: w}
	switch err := transfer.Export(r.Context(), c.f, counted, transfer.ExportOptions{Memory: exportMemory}); {
	case err == nil:
	case counted.n == 0:
		reply(w, r, func(*http.Request) (any, error) { return nil, err })
	default:
		c.log.Error("an export failed", "error", err)
		panic(http.ErrAbortHandler)
	}
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
