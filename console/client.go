// This file asks a Console, here or elsewhere.

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

// Client asks a Console. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string
	token string
}

// Dial returns a Client of the Console that listens on a Unix socket. It connects with
// the first request.
func Dial(socket string) *Client {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	return &Client{http: &http.Client{Transport: t}, base: "http://localhost"}
}

// Remote returns a Client of a Console's Page, http://127.0.0.1:8347 for instance.
func Remote(base, token string) *Client {
	return &Client{http: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}, base: strings.TrimSuffix(base, "/"), token: token}
}

// Direct returns a Client of a Console in this process.
func Direct(c *Console) *Client {
	return &Client{http: &http.Client{Transport: direct{c.Local()}}, base: "http://localhost"}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// APIError is an answer that says what is wrong.
type APIError struct {
	Code    int // the status
	Message string
}

// Error implements error.
func (e *APIError) Error() string { return e.Message }

// do asks, and decodes the answer into x.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, x any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(r)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // the URL says nothing of a socket
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

// Status asks for the frontier as a whole.
func (c *Client) Status(ctx context.Context) (x Status, err error) {
	return x, c.do(ctx, "GET", "/api/status", nil, &x)
}

// HostsQuery says which hosts. The zero value is the first hundred in domain order.
type HostsQuery struct {
	Scope  string // empty: all
	After  string // HostList.Next of the part before
	N      int    // of hosts at most, up to 1000; zero means 100
	Reason string // only those with this frontier.Reason
	Match  string // only those whose name contains this
	Sort   string // "domain" (or empty), or "waiting": those with most URLs, in one part
}

// Hosts asks for a part of the hosts. It waits while they are put in order.
func (c *Client) Hosts(ctx context.Context, q HostsQuery) (x HostList, err error) {
	v := url.Values{"scope": {q.Scope}, "after": {q.After}, "reason": {q.Reason}, "match": {q.Match}, "sort": {q.Sort}}
	if q.N > 0 {
		v.Set("n", strconv.Itoa(q.N))
	}
	for {
		x = HostList{}
		if err := c.do(ctx, "GET", "/api/hosts?"+v.Encode(), nil, &x); err != nil || !x.Preparing {
			return x, err
		}
	}
}

// Host asks for all about one.
func (c *Client) Host(ctx context.Context, name string) (x Host, err error) {
	return x, c.do(ctx, "GET", "/api/host?"+url.Values{"name": {name}}.Encode(), nil, &x)
}

// URLs asks for a part of the waiting URLs of a scope; after is URLList.Next of the part
// before. It waits while the hosts are put in order.
func (c *Client) URLs(ctx context.Context, scope, after string, n int) (x URLList, err error) {
	v := url.Values{"scope": {scope}, "after": {after}, "n": {strconv.Itoa(n)}}
	for {
		x = URLList{}
		if err := c.do(ctx, "GET", "/api/urls?"+v.Encode(), nil, &x); err != nil || !x.Preparing {
			return x, err
		}
	}
}

// URL asks what is known of one.
func (c *Client) URL(ctx context.Context, crawl uint32, u string) (x URL, err error) {
	v := url.Values{"crawl": {strconv.FormatUint(uint64(crawl), 10)}, "url": {u}}
	return x, c.do(ctx, "GET", "/api/url?"+v.Encode(), nil, &x)
}

// Due asks which hosts come next.
func (c *Client) Due(ctx context.Context, n int) (x HostList, err error) {
	return x, c.do(ctx, "GET", "/api/due?n="+strconv.Itoa(n), nil, &x)
}

// Rules asks for all that is set.
func (c *Client) Rules(ctx context.Context) (x RuleList, err error) {
	return x, c.do(ctx, "GET", "/api/rules", nil, &x)
}

// Leases asks what the clients of a server have.
func (c *Client) Leases(ctx context.Context, q LeaseQuery) (x LeaseList, err error) {
	v := url.Values{"client": {q.Client}, "scope": {q.Scope.String()}}
	if q.N > 0 {
		v.Set("n", strconv.Itoa(q.N))
	}
	return x, c.do(ctx, "GET", "/api/leases?"+v.Encode(), nil, &x)
}

// Do asks for an Action. What it did is durable when it returns.
func (c *Client) Do(ctx context.Context, a Action) (x Result, err error) {
	b, err := json.Marshal(a)
	if err != nil {
		return x, err
	}
	return x, c.do(ctx, "POST", "/api/do", bytes.NewReader(b), &x)
}

// Export writes the frontier to w, in the format of Frontier.Export. After an error what
// was written is not the whole.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	return c.do(ctx, "GET", "/api/export", nil, w)
}

// Import has the frontier take in what Export wrote, or a list of URLs: of that, the lines that
// are good.
func (c *Client) Import(ctx context.Context, r io.Reader) (x Imported, err error) {
	return x, c.do(ctx, "POST", "/api/import", r, &x)
}

// Changed gives the crawl a list of URLs that have changed, in a form of package changefeed,
// at a time to the second; zero means now. What the Result counts is durable when it returns.
func (c *Client) Changed(ctx context.Context, list io.Reader, at time.Time) (x changefeed.Result, err error) {
	path := "/api/changed"
	if !at.IsZero() {
		path += "?" + url.Values{"at": {at.UTC().Format(time.RFC3339)}}.Encode()
	}
	return x, c.do(ctx, "POST", path, list, &x)
}

// direct is a transport without a network. Answers are streams, as over one.
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
				w.begin(http.StatusInternalServerError)
				_ = body.CloseWithError(io.ErrUnexpectedEOF) // as a broken connection
				if x != http.ErrAbortHandler {
					panic(x)
				}
			}
		}()
		d.h.ServeHTTP(w, in)
		w.begin(http.StatusOK)
		_ = body.Close()
	}()
	select {
	case code := <-w.begun:
		return &http.Response{
			Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.sent, Body: out, ContentLength: -1, Request: r,
		}, nil
	case <-r.Context().Done():
		_ = out.Close() // the handler's writes fail
		return nil, r.Context().Err()
	}
}

// pipeWriter is the http.ResponseWriter of direct.
type pipeWriter struct {
	header http.Header
	sent   http.Header // as it was when the answer began
	body   *io.PipeWriter
	begun  chan int
	once   bool
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) begin(code int) {
	if w.once {
		return
	}
	w.once = true
	w.sent = w.header.Clone()
	w.begun <- code
}

func (w *pipeWriter) WriteHeader(code int) { w.begin(code) }

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.body.Write(p)
}
