// This file sends requests: errors and retries.

package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	firstPause = 50 * time.Millisecond // before the first retry; it doubles each time
	lastPause  = 5 * time.Second

	maxAnswer = 64 << 20 // bytes

	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

// ProblemError is an error response of the server. It wraps the matching error of package frontier or
// syscall, if there is one.
type ProblemError struct {
	Status int    // HTTP status
	Type   string // for example not-leased
	Detail string
	wait   time.Duration // Retry-After
}

// Error implements error.
func (e *ProblemError) Error() string {
	switch {
	case e.Detail != "":
		return fmt.Sprintf("client: the server answers %d: %s", e.Status, e.Detail)
	case e.Type != "":
		return fmt.Sprintf("client: the server answers %d: %s", e.Status, e.Type)
	}
	return fmt.Sprintf("client: the server answers %d %s", e.Status, http.StatusText(e.Status))
}

// problems maps types of problems to errors.
var problems = map[string]error{
	"not-leased":   frontier.ErrNotLeased,
	"unknown-host": frontier.ErrUnknownHost,
	"full":         frontier.ErrFull,
	"no-space":     syscall.ENOSPC,
}

// passes reports whether a retry may succeed.
func (e *ProblemError) passes() bool {
	return slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, e.Status)
}

// Unwrap returns the matching error.
func (e *ProblemError) Unwrap() error { return problems[e.Type] }

// problem is the JSON of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func (p *problem) err() *ProblemError {
	e := &ProblemError{Status: p.Status, Detail: p.Detail}
	if p.Type != "" && p.Type != "about:blank" {
		e.Type = path.Base(p.Type)
	}
	e.Detail = cmp.Or(e.Detail, p.Title)
	return e
}

// awayError is the failure of a request that got no response: it may be repeated.
type awayError struct {
	err   error
	tried string // addresses and their failures, if the client has several addresses
}

func (e *awayError) Error() string {
	if e.tried != "" {
		return "client: no server answers: " + e.tried
	}
	return "client: the server is away: " + e.err.Error()
}
func (e *awayError) Unwrap() error { return e.err }

// request is a request with all its retries.
type request struct {
	method, path string
	contentType  string
	accept       string
	body         []byte
	key          string    // Idempotency-Key
	sent         time.Time // when its latest try began
}

// jsonRequest returns a request with x as its body; nil: no body.
func jsonRequest(method, path string, x any) (*request, error) {
	q := &request{method: method, path: path, accept: jsonType}
	if x == nil {
		return q, nil
	}
	var err error
	q.contentType = jsonType
	if q.body, err = json.Marshal(x); err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return q, nil
}

// once sends a request and passes the body of a successful response to read. Timeout 0 means
// Options.Timeout.
func (c *Client) once(ctx context.Context, q *request, timeout time.Duration, read func(io.Reader) error) error {
	timeout = cmp.Or(timeout, c.o.Timeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	s := c.server()
	h, err := http.NewRequestWithContext(ctx, q.method, s.base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for name, value := range map[string]string{"Content-Type": q.contentType, "Accept": q.accept, "Idempotency-Key": q.key} {
		if value != "" {
			h.Header.Set(name, value)
		}
	}
	if c.o.Token != "" {
		h.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	q.sent = time.Now()
	res, err := s.http.Do(h)
	if err != nil {
		return c.missed(s, err)
	}
	defer res.Body.Close()
	body := io.LimitReader(res.Body, maxAnswer)
	if res.StatusCode >= 400 {
		return c.refused(s, q, refusal(res, body))
	}
	if err = read(body); err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	if e, ok := errors.AsType[*ProblemError](err); ok { // in the last line of the body
		return c.refused(s, q, e)
	}
	if err != nil {
		return c.missed(s, err)
	}
	c.heard(s)
	return nil
}

// refusal reads an error response.
func refusal(res *http.Response, body io.Reader) *ProblemError {
	var p problem
	if err := json.NewDecoder(body).Decode(&p); err != nil {
		p = problem{}
	}
	e := p.err()
	e.Status = res.StatusCode
	if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n > 0 {
		e.wait = time.Duration(n) * time.Second
	}
	return e
}

// refused returns the error of a request that the server refused.
func (c *Client) refused(s *server, q *request, e *ProblemError) error {
	if e.passes() {
		return c.missed(s, e)
	}
	c.heard(s)
	if q.key != "" && e.Type == "conflict" { // its first try is still running
		return &awayError{err: e}
	}
	return e
}

// do repeats a request until it is answered or ctx ends.
func (c *Client) do(ctx context.Context, q *request, read func(io.Reader) error) error {
	for tries := 0; ; tries++ {
		if c.isClosed() {
			return frontier.ErrClosed
		}
		err := c.once(ctx, q, 0, read)
		if _, away := errors.AsType[*awayError](err); !away {
			return err
		}
		if ctx.Err() != nil || !c.pause(ctx, tries, err) {
			if c.isClosed() {
				return frontier.ErrClosed
			}
			return fmt.Errorf("%w; %w", context.Cause(ctx), err)
		}
	}
}

// pause waits before a retry. Several servers share the pauses of one, as each is asked in its turn. It
// returns false if ctx or the Client has ended.
func (c *Client) pause(ctx context.Context, tries int, err error) bool {
	n := len(c.servers)
	d := min(firstPause<<min(tries/n, 10), lastPause)
	if e, ok := errors.AsType[*ProblemError](err); ok {
		d = max(d, min(e.wait, lastPause))
	}
	select {
	case <-time.After(d / time.Duration(n)):
		return true
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	return false
}

// decode reads the next value of a response that must have one.
func decode(d *json.Decoder, x any) error {
	err := d.Decode(x)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// into decodes a response of one JSON value.
func into(x any) func(io.Reader) error {
	return func(r io.Reader) error { return json.NewDecoder(r).Decode(x) }
}
