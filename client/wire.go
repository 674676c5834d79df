// This file defines the JSON of requests and responses.

package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// meta is a URL's metadata in JSON. Bytes that are not the JSON of such a map go under bytesKey.
type meta map[string][]string

const bytesKey = "bytes"

// metaOf converts an Entry's Meta: JSON as Map makes it, or any bytes.
func metaOf(b []byte) meta {
	if b == nil {
		return nil
	}
	var m meta
	if len(b) > 0 && b[0] == '{' && json.Unmarshal(b, &m) == nil && bytes.Equal(m.bytes(), b) && !m.hasNull() {
		return m
	}
	return meta{bytesKey: {base64.StdEncoding.EncodeToString(b)}}
}

// hasNull reports whether a key has null instead of a list, which the server does not accept.
func (m meta) hasNull() bool {
	for _, v := range m {
		if v == nil {
			return true
		}
	}
	return false
}

// bytes converts m to an Entry's Meta.
func (m meta) bytes() []byte {
	if v := m[bytesKey]; len(m) == 1 && len(v) == 1 {
		if b, err := base64.StdEncoding.DecodeString(v[0]); err == nil {
			return b
		} // otherwise it is a key of another client
	}
	if len(m) == 0 {
		return nil
	}
	return Map(m)
}

// Map returns metadata as an Entry's Meta, which clients in other languages get as a map. URLs that such
// a client added have a Meta of this form: JSON.
func Map(m map[string][]string) []byte {
	b, err := json.Marshal(m) // sorts the keys
	if err != nil {
		panic(err) // cannot fail for strings
	}
	return b
}

// entry is a URL to add.
type entry struct {
	URL       string     `json:"url"`
	Host      string     `json:"host,omitempty"`
	Crawl     string     `json:"crawl,omitempty"`
	Depth     *int       `json:"depth,omitempty"`
	Weight    float64    `json:"weight,omitempty"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	Wait      *float64   `json:"not_before_s,omitempty"`
	Meta      meta       `json:"meta,omitempty"`
	Force     bool       `json:"force,omitempty"`
	Hint      bool       `json:"hint,omitempty"`
	Finished  bool       `json:"finished,omitempty"`
}

// wire converts an Entry to JSON, in a crawl. A link omits what it inherits from its page.
func (c *Client) wire(e *frontier.Entry, crawl string, link bool) (entry, error) {
	if e.Crawl != 0 {
		return entry{}, fmt.Errorf("the crawl is number %d; want 0, as Options.Crawl names it", e.Crawl)
	}
	if !utf8.ValidString(e.URL) || !utf8.ValidString(e.Host) {
		return entry{}, errors.New("the URL or the host is not UTF-8")
	}
	w := entry{
		URL: e.URL, Host: e.Host, Crawl: crawl, Weight: e.Weight,
		Meta: metaOf(e.Meta), Force: e.Force, Hint: e.Hint, Finished: e.Finished,
	}
	if e.Depth != 0 || link && e.AsIs {
		w.Depth = &e.Depth
	}
	w.NotBefore, w.Wait = comes(e.NotBefore, time.Now())
	return w, nil
}

// steady reports whether a time has a monotonic reading of this machine's clock, so that setting the
// clock does not matter. The clock of testing/synctest has no such reading, and is never set.
func steady(t, now time.Time) bool { return t != t.Round(0) || now == now.Round(0) }

// farthest is the longest wait that is sent; a later time is sent as a date, if JSON can express it.
const farthest = 100 * 365 * 24 * time.Hour

// comes returns when a URL comes, as a date or a wait. A time derived from this machine's clock is sent
// as a wait, because that clock means nothing to the server. Any other is a calendar date.
func comes(t, now time.Time) (date *time.Time, wait *float64) {
	if t.IsZero() || !steady(t, now) || t.Sub(now) > farthest {
		return moment(t), nil
	}
	left := max(0, t.Sub(now)+time.Millisecond-1).Truncate(time.Millisecond).Seconds()
	return nil, &left
}

// ago returns how long ago a lease's contact ended, in seconds; nil: now. A time without a monotonic
// reading counts only if the clock was not set during the lease.
func ago(l *frontier.Lease, ended, now time.Time) *float64 {
	if ended.IsZero() {
		return nil
	}
	if !steady(ended, now) {
		set := now.Round(0).Sub(l.LeasedAt.Round(0)) - now.Sub(l.LeasedAt)
		if !steady(l.LeasedAt, now) || set.Abs() >= time.Millisecond {
			return nil // when in doubt, wait
		}
	}
	s := max(0, now.Sub(ended)).Seconds()
	return &s
}

// moment returns a time for JSON: in milliseconds, rounded up; nil: none.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.Add(time.Millisecond - 1).Truncate(time.Millisecond).UTC()
	return &t
}

func (c *Client) entryLine(e *frontier.Entry, crawl string) ([]byte, error) {
	w, err := c.wire(e, crawl, false)
	if err != nil {
		return nil, err
	}
	return line(&w)
}

// maxLine and maxName are package serve's limits of a line, without the line feed, and of a crawl's name, in bytes.
const (
	maxLine = 1 << 20
	maxName = frontier.MaxValueKey - len("crawl/")
)

// line encodes a value as a line. It fails if the server would not accept it.
func line(x any) ([]byte, error) {
	b, err := json.Marshal(x)
	if err == nil && len(b) > maxLine {
		err = fmt.Errorf("too long: %d bytes in JSON; want at most %d", len(b), maxLine)
	}
	return append(b, '\n'), err
}

// verdict is the result of adding an entry.
type verdict struct {
	Status statusText `json:"status"`
	Error  string     `json:"error"`
	Type   string     `json:"type"` // of the problem that ends the response
	Title  string     `json:"title"`
	Detail string     `json:"detail"`
}

// statusText is the status of an entry, as a word; of a problem, as a number.
type statusText string

func (s *statusText) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(s))
	}
	*s = statusText(b)
	return nil
}

// problem returns the error in place of a verdict.
func (v *verdict) problem() error {
	if v.Type == "" {
		return nil
	}
	p := problem{Type: v.Type, Title: v.Title, Detail: v.Detail}
	fmt.Sscan(string(v.Status), &p.Status) //nolint:errcheck // 0 says as much
	return p.err()
}

// take is a request for leases.
type take struct {
	Hosts   int      `json:"hosts,omitempty"`
	PerHost int      `json:"per_host,omitempty"`
	Max     int      `json:"max,omitempty"`
	Crawls  []string `json:"crawls,omitempty"`
	Lease   float64  `json:"lease_s,omitempty"`
	Wait    float64  `json:"wait_s"`
}

// leases is the response to it.
type leases struct {
	Leases []lease `json:"leases"`
	next
	Exhausted bool  `json:"exhausted"`
	Held      int64 `json:"held"`
}

// next is when to ask again, in a response without leases.
type next struct {
	In *float64 `json:"next_s"`
}

// at returns that time by this machine's clock; zero: unknown.
func (n next) at() time.Time {
	if n.In == nil {
		return time.Time{}
	}
	return time.Now().Add(seconds(*n.In))
}

// lease is a lease in JSON.
type lease struct {
	Lease    string   `json:"lease"`
	URL      string   `json:"url"`
	Host     string   `json:"host"`
	Group    string   `json:"group"`
	Crawl    string   `json:"crawl"`
	Depth    int      `json:"depth"`
	Weight   float64  `json:"weight"`
	Priority int      `json:"priority"`
	Attempt  int      `json:"attempt"`
	Meta     meta     `json:"meta"`
	History  history  `json:"history"`
	Left     float64  `json:"lease_s"`
	Sent     float64  `json:"sent_s"`
	Late     *float64 `json:"late_s"`
}

// contact is the response to a contact: a lease, or when to ask again.
type contact struct {
	lease
	next
}

// history is a URL's History in JSON.
type history struct {
	Visits       int       `json:"visits"`
	Changes      int       `json:"changes"`
	FirstVisit   time.Time `json:"first_visit"`
	LastVisit    time.Time `json:"last_visit"`
	LastChange   time.Time `json:"last_change"`
	LastModified time.Time `json:"last_modified"`
	Last         string    `json:"last"`
}

// leaseOf converts a lease, with times of this machine's clock. Its request was sent at asked, and Sent
// counts from when the server received it: so the deadline here is never later than the server's.
func (c *Client) leaseOf(w *lease, asked time.Time) (frontier.Lease, error) {
	h := &w.History
	l := frontier.Lease{
		Entry: frontier.Entry{URL: w.URL, Depth: w.Depth, Weight: w.Weight, Meta: w.Meta.bytes()},
		Host:  w.Host, Group: w.Group, Priority: w.Priority, Attempt: w.Attempt,
		History: frontier.History{
			Visits: h.Visits, Changes: h.Changes, FirstVisit: h.FirstVisit, LastVisit: h.LastVisit,
			LastChange: h.LastChange, LastModified: h.LastModified,
		},
		LeasedAt: asked.Add(seconds(w.Sent)),
	}
	l.Deadline = l.LeasedAt.Add(seconds(w.Left))
	if w.Late != nil {
		l.Due = l.LeasedAt.Add(-seconds(*w.Late))
	}
	for r := frontier.Visited; r <= frontier.PutOff; r++ {
		if resultName(r) == h.Last {
			l.History.Last = r
		}
	}
	if host, err := frontier.HostName(w.URL); w.URL != "" && (err != nil || host != w.Host) {
		l.Entry.Host = w.Host // it was set when the URL was added
	}
	l, err := frontier.RestoreLease(w.Lease, l)
	if err != nil {
		return frontier.Lease{}, fmt.Errorf("client: %w", err)
	}
	return l, nil
}

// resultName returns a Result's name in JSON.
func resultName(r frontier.Result) string { return strings.ReplaceAll(r.String(), " ", "_") }

// outcome is an Outcome in JSON.
type outcome struct {
	Lease       string     `json:"lease"`
	Result      string     `json:"result"`
	Failure     string     `json:"failure,omitempty"`
	Uncontacted bool       `json:"uncontacted,omitempty"`
	Ended       *float64   `json:"ended_ago_s,omitempty"`
	Duration    float64    `json:"duration_s,omitempty"`
	RetryAfter  float64    `json:"retry_after_s,omitempty"`
	CrawlDelay  *float64   `json:"crawl_delay_s,omitempty"`
	Modified    *time.Time `json:"modified,omitempty"`
	Bytes       int64      `json:"bytes,omitempty"`
	Next        *time.Time `json:"next,omitempty"`
	Wait        *float64   `json:"next_s,omitempty"`
	Meta        meta       `json:"meta,omitempty"`
	Add         []entry    `json:"add,omitempty"`
}

// doneLine returns the line that ends a lease.
func (c *Client) doneLine(l frontier.Lease, o *frontier.Outcome) ([]byte, error) {
	if l.ID() == "" {
		return nil, frontier.ErrNotLeased
	}
	if o.Move || o.Crawl != 0 {
		return nil, fmt.Errorf("client: done: Outcome.Move is set, and Crawl is %d; a Client has one crawl", o.Crawl)
	}
	if unit.Missing(o.RetryAfter, unit.Measured) && !o.Uncontacted && o.Result != frontier.PutOff || unit.Missing(o.CrawlDelay, unit.Least) {
		return nil, fmt.Errorf("client: done: %w: RetryAfter is %v, CrawlDelay %v: is the unit missing?", frontier.ErrOutcome, o.RetryAfter, o.CrawlDelay)
	}
	now := time.Now()
	w := outcome{
		Lease: l.ID(), Result: resultName(o.Result), Uncontacted: o.Uncontacted, Ended: ago(&l, o.Ended, now),
		Duration: o.Duration.Seconds(), RetryAfter: o.RetryAfter.Seconds(), Modified: moment(o.Modified), Bytes: o.Bytes,
		Meta: metaOf(o.Meta),
	}
	w.Next, w.Wait = comes(o.Next, now)
	if o.Failure != 0 {
		w.Failure = strings.ReplaceAll(o.Failure.String(), " ", "_")
	}
	switch {
	case o.CrawlDelay == frontier.NoCrawlDelay:
		none := 0.0
		w.CrawlDelay = &none
	case o.CrawlDelay != 0:
		s := o.CrawlDelay.Seconds()
		w.CrawlDelay = &s
	}
	for i := range o.Add {
		e, err := c.wire(&o.Add[i], "", true) // the crawl is the page's
		if err != nil {
			return nil, err
		}
		w.Add = append(w.Add, e)
	}
	b, err := line(&w)
	if err != nil {
		return nil, fmt.Errorf("client: done: %w", err)
	}
	return b, nil
}

// doneAnswer is a line of the response: the verdicts of the outlinks and, in Error, the lease's error; or
// the problem that ends the response.
type doneAnswer struct {
	Lease string    `json:"lease"`
	Add   []verdict `json:"add"`
	Error *problem  `json:"error"`
	problem
}

// onLease sends a request about a lease that returns a lease.
func (c *Client) onLease(l frontier.Lease, verb string, body any) (frontier.Lease, error) {
	id := l.ID()
	if id == "" {
		return frontier.Lease{}, frontier.ErrNotLeased
	}
	q, err := jsonRequest(http.MethodPost, "/v1/leases/"+id+"/"+verb, body)
	if err != nil {
		return frontier.Lease{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Timeout)
	defer cancel()
	var w lease
	if err := c.do(ctx, q, into(&w)); err != nil {
		return frontier.Lease{}, err
	}
	return c.leaseOf(&w, q.sent)
}
