// This file parses and writes URLs, ends and leases as JSON lines.

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// item is one URL of a request.
type item struct {
	entry    frontier.Entry
	crawl    string // its name; Service.resolve sets the number in the entry
	deep     bool   // a depth was given
	inherits bool   // it belongs to its page's crawl
	id       string
	err      error // why the frontier cannot take it
}

// end reports how a lease ended.
type end struct {
	lease   string
	outcome frontier.Outcome
	meta    map[string][]string
	add     []item
}

// parser parses the URLs and ends of a request, one after the other.
type parser struct {
	s   *Service
	in  jsonl.Scanner
	now time.Time // when it read the line
	url urlLine
	end endLine
}

// urlLine has the members of a URL, and endLine those of an end.
type urlLine struct {
	URL, Crawl  string
	Depth       int64
	Weight      float64
	Priority    int64
	NotBefore   time.Time `json:"not_before"`
	NotBeforeS  span      `json:"not_before_s"`
	Meta        meta
	Force, Hint bool
	Host        string
	Finished    bool
	ID          string
}

type endLine struct {
	Lease           string
	Result, Failure string
	Uncontacted     bool
	EndedAgoS       span `json:"ended_ago_s"`
	DurationS       span `json:"duration_s"`
	RetryAfterS     span `json:"retry_after_s"`
	CrawlDelayS     span `json:"crawl_delay_s"`
	Modified        time.Time
	Bytes           int64
	Next            time.Time
	NextS           span `json:"next_s"`
	Meta            meta
	Add             outlinks
}

// none is the value of a number that a line does not have, where 0 would be one.
const none = math.MinInt64

var (
	noURL = urlLine{Depth: none, Priority: none, NotBeforeS: none}
	noEnd = endLine{Result: resultName(frontier.Visited), Failure: frontier.FailureOther.String(), EndedAgoS: none, CrawlDelayS: none, NextS: none}
)

// parseURL parses a URL. Only malformed JSON is an error; other faults go into item.err.
func (p *parser) parseURL(b []byte) (item, error) {
	p.now, p.url = p.s.f.Now(), noURL
	if err := p.in.Line(b, &p.url); err != nil {
		return item{id: p.url.ID}, err
	}
	return p.item(), nil
}

// item returns the URL that was read.
func (p *parser) item() item {
	u := &p.url
	it := item{crawl: u.Crawl, deep: u.Depth != none, id: u.ID, entry: frontier.Entry{
		URL: u.URL, Weight: u.Weight, NotBefore: u.NotBefore, Force: u.Force, Hint: u.Hint, Finished: u.Finished,
	}}
	e := &it.entry
	if it.deep {
		e.Depth = int(u.Depth)
	}
	if u.Priority == none {
		u.Priority = 0
	} else if u.Priority < 1 || u.Priority > Priorities {
		it.err = fmt.Errorf("priority is %d; want 1 to %d", u.Priority, Priorities)
	}
	switch {
	case it.err != nil:
	case e.URL == "":
		it.err = errors.New("url is missing")
	case u.NotBeforeS == none:
	case !e.NotBefore.IsZero():
		it.err = errors.New("not_before and not_before_s: want one of them")
	default:
		e.NotBefore = p.now.Add(time.Duration(u.NotBeforeS))
	}
	if u.Host != "" && it.err == nil {
		e.Host, it.err = p.s.host(u.Host)
	}
	if it.err == nil {
		e.Meta = p.s.seal(uint8(u.Priority), u.Meta, p.now)
	}
	return it
}

// outlinks are the URLs of an end.
type outlinks struct {
	p   *parser
	all []item
}

// Scan reads an array of URLs.
func (o *outlinks) Scan(in *jsonl.Scanner) error {
	return in.Elements(func() error {
		o.p.url = noURL
		err := in.Object(&o.p.url)
		if err == nil {
			o.all = append(o.all, o.p.item())
		}
		return err
	})
}

// parseEnd parses an end. Any fault is an error.
func (p *parser) parseEnd(b []byte) (end, error) {
	x := &p.end
	*x = noEnd
	p.now, x.Add.p = p.s.f.Now(), p
	if err := p.in.Line(b, x); err != nil {
		return end{lease: x.Lease}, err
	}
	e := end{lease: x.Lease, meta: x.Meta, add: x.Add.all, outcome: frontier.Outcome{
		Uncontacted: x.Uncontacted, Duration: time.Duration(x.DurationS), RetryAfter: time.Duration(x.RetryAfterS), CrawlDelay: time.Duration(x.CrawlDelayS),
		Modified: x.Modified, Bytes: x.Bytes, Next: x.Next,
	}}
	o := &e.outcome
	var ok bool
	if o.Result, ok = results[x.Result]; !ok {
		return e, fmt.Errorf("result: %.40q is no result; want visited, changed, unchanged, gone, failed, denied, requeue or put_off", x.Result)
	}
	if o.Failure, ok = failures[x.Failure]; !ok {
		return e, fmt.Errorf("failure: %.40q is no failure; want other, dns, connect, timeout, server, unavailable or too_many_requests", x.Failure)
	}
	if x.EndedAgoS != none {
		o.Ended = p.now.Add(-max(0, time.Duration(x.EndedAgoS)-time.Millisecond)) // the client may have rounded up
	}
	if o.RetryAfter > 0 {
		o.RetryAfter = max(o.RetryAfter, unit.Measured) // the unit is certain, and the value may be a remainder
	}
	switch x.CrawlDelayS {
	case none:
		o.CrawlDelay = 0
	case 0:
		o.CrawlDelay = frontier.NoCrawlDelay
	default:
		o.CrawlDelay = max(o.CrawlDelay, unit.Least) // robots.txt may have any fraction of a second
	}
	switch {
	case o.Bytes < 0:
		return e, fmt.Errorf("bytes: %d is negative", o.Bytes)
	case x.NextS == none:
	case !o.Next.IsZero():
		return e, errors.New("next and next_s: want one of them")
	default:
		o.Next = p.now.Add(time.Duration(x.NextS))
	}
	if o.Result == frontier.Requeue && !o.Next.IsZero() {
		return e, errors.New("next: a URL that is requeued comes at once")
	}
	return e, nil
}

// span is a duration in seconds.
type span time.Duration

// Scan reads a number that is not negative.
func (s *span) Scan(in *jsonl.Scanner) error {
	x, err := in.Float()
	if err != nil {
		return err
	}
	d := x * float64(time.Second)
	if x < 0 || d >= math.MaxInt64 {
		return fmt.Errorf("%v s: want 0 or more, and less than 292 years", x)
	}
	*s = span(math.Round(d))
	return nil
}

type meta map[string][]string

// Scan reads an object whose values are lists of strings.
func (m *meta) Scan(in *jsonl.Scanner) error {
	*m = meta{}
	return in.Members(func(name []byte) error {
		key, values := string(name), []string{}
		if (*m)[key] != nil {
			return jsonl.Twice(name)
		}
		err := in.Elements(func() error {
			v, err := in.Text()
			values = append(values, v)
			return err
		})
		(*m)[key] = values
		return err
	})
}

var results, failures = func() (map[string]frontier.Result, map[string]frontier.Failure) {
	rs, fs := map[string]frontier.Result{}, map[string]frontier.Failure{}
	for r := frontier.Visited; r <= frontier.PutOff; r++ {
		rs[resultName(r)] = r
	}
	for f := frontier.FailureOther; f <= frontier.FailureTooMany; f++ {
		fs[strings.ReplaceAll(f.String(), " ", "_")] = f
	}
	return rs, fs
}()

// resultName returns a Result's name on the wire.
func resultName(r frontier.Result) string { return strings.ReplaceAll(r.String(), " ", "_") }

// appendSpan appends a duration in seconds, rounded down to milliseconds. Responses carry durations,
// never dates: a client's clock may differ.
func appendSpan(w *jsonl.Writer, name string, d time.Duration) {
	w.Float(name, d.Truncate(time.Millisecond).Seconds(), 'f')
}

// appendLease appends a lease. asked is when its request arrived; durations count from then.
func (s *Service) appendLease(b []byte, l *frontier.Lease, asked time.Time) []byte {
	w := jsonl.Writer(b)
	w.Open()
	w.Text("lease", l.ID())
	w.Text("url", l.Entry.URL)
	w.Text("host", l.Host)
	w.Text("group", l.Group)
	w.Text("crawl", s.CrawlName(l.Entry.Crawl))
	w.Int("depth", int64(l.Entry.Depth))
	if l.Entry.Weight != 0 {
		w.Float("weight", l.Entry.Weight, 'g')
	}
	w.Int("priority", int64(l.Priority))
	w.Int("attempt", int64(l.Attempt))
	s.appendKept(&w, l.Entry.Meta, &l.History)
	appendSpan(&w, "lease_s", max(0, l.Deadline.Sub(s.f.Now())))
	appendSpan(&w, "sent_s", time.Since(asked))
	if !l.Due.IsZero() {
		appendSpan(&w, "late_s", max(0, l.LeasedAt.Sub(l.Due)))
	}
	if l.Gap > 0 {
		w.Float("gap_s", l.Gap.Seconds(), 'f')
	}
	w.Close()
	return w
}

// appendKept appends a URL's metadata and history. It omits a Meta that is not an Envelope.
func (s *Service) appendKept(w *jsonl.Writer, kept []byte, h *frontier.History) {
	if e, err := OpenEnvelope(kept); err == nil && len(e.Meta) > 0 {
		meta, _ := json.Marshal(e.Meta)
		w.Name("meta")
		*w = append(*w, meta...)
	}
	if h.Last != 0 || h.Visits != 0 {
		w.Name("history")
		w.Open()
		w.Int("visits", int64(h.Visits))
		w.Int("changes", int64(h.Changes))
		w.Time("first_visit", instant.Millis(h.FirstVisit))
		w.Time("last_visit", instant.Millis(h.LastVisit))
		w.Time("last_change", instant.Millis(h.LastChange))
		w.Time("last_modified", instant.Millis(h.LastModified))
		w.Text("last", resultName(h.Last))
		w.Close()
	}
}
