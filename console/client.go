// This file is the client of a Console, in this process or another.

package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/crawler/changefeed"
)

// Client sends requests to a Console. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string
	token string
}

// Dial returns a Client of the Console behind a Unix socket. The first request connects.
func Dial(socket string) *Client {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	return &Client{http: &http.Client{Transport: t}, base: "http://localhost"}
}

// Remote returns a Client of a Console's Page, such as http://127.0.0.1:8347.
func Remote(base, token string) *Client {
	return &Client{http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, base: strings.TrimSuffix(base, "/"), token: token}
}

// Direct returns a Client of a Console in this process.
func Direct(c *Console) *Client {
	return &Client{http: &http.Client{Transport: direct{c.Local()}}, base: "http://localhost"}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// APIError is an error response.
type APIError struct {
	Code    int // HTTP status
	Message string
}

// Error implements error.
func (e *APIError) Error() string { return e.Message }

// Ask sends a request, also one that is not a Console's to the same server, and decodes the response into x.
func (c *Client) Ask(ctx context.Context, method, path string, body io.Reader, x any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // for a socket the URL means nothing
		}
		return fmt.Errorf("console: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var said struct{ Error string }
		b, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		if json.Unmarshal(b, &said) != nil || said.Error == "" {
			said.Error = "console: " + res.Status
		}
		return &APIError{res.StatusCode, said.Error}
	}
	if w, ok := x.(io.Writer); ok {
		_, err = io.Copy(w, res.Body)
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(x); err != nil {
		return fmt.Errorf("console: the answer: %w", err)
	}
	return nil
}

// Status returns the status of the frontier as a whole.
func (c *Client) Status(ctx context.Context) (x Status, err error) {
	return x, c.Ask(ctx, "GET", "/api/status", nil, &x)
}

// HostsQuery selects hosts. The zero value selects the first hundred in domain order.
type HostsQuery struct {
	Scope  string // empty: all
	After  string // HostList.Next of the previous part
	N      int    // most hosts, up to 1000; zero means 100
	Reason string // only hosts with this inspect.Reason
	Match  string // only hosts whose name contains this
	Sort   string // "domain" or empty; or "waiting": most URLs first, in one part
	Sunk   bool   // only hosts that were moved down
}

// Hosts returns a part of the hosts. It waits while the frontier sorts them.
func (c *Client) Hosts(ctx context.Context, q HostsQuery) (x HostList, err error) {
	v := url.Values{"scope": {q.Scope}, "after": {q.After}, "reason": {q.Reason}, "match": {q.Match}, "sort": {q.Sort}}
	if q.N > 0 {
		v.Set("n", strconv.Itoa(q.N))
	}
	if q.Sunk {
		v.Set("sunk", "true")
	}
	for {
		x = HostList{}
		if err := c.Ask(ctx, "GET", "/api/hosts?"+v.Encode(), nil, &x); err != nil || !x.Preparing {
			return x, err
		}
	}
}

// Host returns everything about a host.
func (c *Client) Host(ctx context.Context, name string) (x Host, err error) {
	return x, c.Ask(ctx, "GET", "/api/host?"+url.Values{"name": {name}}.Encode(), nil, &x)
}

// URLs returns a part of a scope's waiting URLs; after is URLList.Next of the previous part. It waits
// while the frontier sorts its hosts.
func (c *Client) URLs(ctx context.Context, scope, after string, n int) (x URLList, err error) {
	v := url.Values{"scope": {scope}, "after": {after}, "n": {strconv.Itoa(n)}}
	for {
		x = URLList{}
		if err := c.Ask(ctx, "GET", "/api/urls?"+v.Encode(), nil, &x); err != nil || !x.Preparing {
			return x, err
		}
	}
}

// URL returns what is known about a URL.
func (c *Client) URL(ctx context.Context, crawl uint32, u string) (x URL, err error) {
	v := url.Values{"crawl": {strconv.FormatUint(uint64(crawl), 10)}, "url": {u}}
	return x, c.Ask(ctx, "GET", "/api/url?"+v.Encode(), nil, &x)
}

// Due returns the hosts that come next.
func (c *Client) Due(ctx context.Context, n int) (x HostList, err error) {
	return x, c.Ask(ctx, "GET", "/api/due?n="+strconv.Itoa(n), nil, &x)
}

// Rules returns all rules.
func (c *Client) Rules(ctx context.Context) (x RuleList, err error) {
	return x, c.Ask(ctx, "GET", "/api/rules", nil, &x)
}

// Leases lists the leases of a server's clients.
func (c *Client) Leases(ctx context.Context, q LeaseQuery) (x LeaseList, err error) {
	v := url.Values{"client": {q.Client}, "scope": {q.Scope.String()}}
	if q.N > 0 {
		v.Set("n", strconv.Itoa(q.N))
	}
	return x, c.Ask(ctx, "GET", "/api/leases?"+v.Encode(), nil, &x)
}

// Do carries out an Action. When it returns, the change is durable.
func (c *Client) Do(ctx context.Context, a Action) (x Result, err error) {
	b, err := json.Marshal(a)
	if err != nil {
		return x, err
	}
	return x, c.Ask(ctx, "POST", "/api/do", bytes.NewReader(b), &x)
}

// Export writes the frontier to w, in the format of transfer.Export. After an error w has only a part.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	return c.Ask(ctx, "GET", "/api/export", nil, w)
}

// Import imports an export, or the good lines of a list of URLs.
func (c *Client) Import(ctx context.Context, r io.Reader) (x Imported, err error) {
	return x, c.Ask(ctx, "POST", "/api/import", r, &x)
}

// Changed reports URLs that have changed, as a list in a format of package changefeed, at a time to the
// second; zero means now. When it returns, what the Result counts is durable.
func (c *Client) Changed(ctx context.Context, list io.Reader, at time.Time) (x changefeed.Result, err error) {
	path := "/api/changed"
	if !at.IsZero() {
		path += "?" + url.Values{"at": {at.UTC().Format(time.RFC3339)}}.Encode()
	}
	return x, c.Ask(ctx, "POST", path, list, &x)
}

// direct is a transport without a network. Responses are streams, as over a connection.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	in := r.Clone(r.Context())
	in.Host, in.RequestURI = r.URL.Host, r.URL.RequestURI()
	out, body := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: body, begun: make(chan int, 1)}
	go func() {
		defer r.Body.Close()
		defer func() {
			if x := recover(); x != nil {
				w.WriteHeader(http.StatusInternalServerError)
				_ = body.CloseWithError(io.ErrUnexpectedEOF) // like a connection that breaks
				if x != http.ErrAbortHandler {
					panic(x)
				}
			}
		}()
		d.h.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
		_ = body.Close()
	}()
	select {
	case code := <-w.begun:
		return &http.Response{
			Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.sent, Body: out, ContentLength: -1, Request: r,
		}, nil
	case <-r.Context().Done():
		_ = out.Close() // makes the handler's writes fail
		return nil, r.Context().Err()
	}
}

// pipeWriter is the http.ResponseWriter of direct.
type pipeWriter struct {
	header http.Header
	sent   http.Header // a copy from when the response began
	body   *io.PipeWriter
	begun  chan int
	once   bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	if w.once {
		return
	}
	w.once = true
	w.sent = w.header.Clone()
	w.begun <- code
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}
