// This file parses and writes URLs, ends and leases as JSON lines.

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier"
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

// item parses a URL. Only malformed JSON is an error; other faults go into item.err.
func (s *Service) item(in *scanner, now time.Time) (it item, err error) {
	if err := in.take('{'); err != nil {
		return it, err
	}
	var priority int64
	var meta map[string][]string
	var dated, spanned bool
	known := members{names: itemMembers}
	e := &it.entry
	wrong := func(format string, args ...any) {
		if it.err == nil {
			it.err = fmt.Errorf(format, args...)
		}
	}
	for first := true; ; first = false {
		name, ok, err := in.member(first, &known)
		if err != nil {
			return it, err
		}
		if !ok {
			break
		}
		switch string(name) {
		case "url":
			e.URL, err = in.text()
		case "crawl":
			it.crawl, err = in.text()
		case "depth":
			var depth int64
			depth, err = in.int()
			e.Depth, it.deep = int(depth), true
		case "weight":
			e.Weight, err = in.float()
		case "priority":
			if priority, err = in.int(); err == nil && (priority < 1 || priority > Priorities) {
				wrong("priority is %d; want 1 to %d", priority, Priorities)
			}
		case "not_before":
			e.NotBefore, err = in.time()
			dated = !e.NotBefore.IsZero()
		case "not_before_s":
			var wait time.Duration
			wait, err = in.seconds()
			e.NotBefore, spanned = now.Add(wait), true
		case "meta":
			meta, err = in.meta()
		case "force":
			e.Force, err = in.bool()
		case "hint":
			e.Hint, err = in.bool()
		case "host":
			e.Host, err = in.text()
		case "finished":
			e.Finished, err = in.bool()
		case "id":
			it.id, err = in.text()
		}
		if err != nil {
			return it, fmt.Errorf("%.40s: %w", name, err)
		}
	}
	if e.URL == "" {
		wrong("url is missing")
	}
	if dated && spanned {
		wrong("not_before and not_before_s: want one of them")
	}
	if e.Host != "" {
		if e.Host, err = s.host(e.Host); err != nil {
			wrong("%w", err)
		}
	}
	if it.err == nil {
		e.Meta = s.seal(uint8(priority), meta, now)
	}
	return it, nil
}

// itemMembers are the members of a URL's object; endMembers those of an end.
var (
	itemMembers = []string{"url", "crawl", "depth", "weight", "priority", "not_before", "not_before_s", "meta", "force", "hint", "host", "finished", "id"}
	endMembers  = []string{
		"lease", "result", "failure", "uncontacted", "ended_ago_s", "duration_s", "retry_after_s", "crawl_delay_s", "modified",
		"bytes", "next", "next_s", "meta", "add",
	}
)

// end reports how a lease ended.
type end struct {
	lease   string
	outcome frontier.Outcome
	meta    map[string][]string
	add     []item
}

var results = func() map[string]frontier.Result {
	m := map[string]frontier.Result{}
	for r := frontier.Visited; r <= frontier.PutOff; r++ {
		m[resultName(r)] = r
	}
	return m
}()

// resultName returns a Result's name on the wire.
func resultName(r frontier.Result) string { return strings.ReplaceAll(r.String(), " ", "_") }

var failures = func() map[string]frontier.Failure {
	m := map[string]frontier.Failure{}
	for f := frontier.FailureOther; f <= frontier.FailureTooMany; f++ {
		m[strings.ReplaceAll(f.String(), " ", "_")] = f
	}
	return m
}()

// end parses an end. Any fault is an error.
func (s *Service) end(in *scanner, now time.Time) (e end, err error) {
	if err := in.take('{'); err != nil {
		return e, err
	}
	o := &e.outcome
	var dated, spanned bool // Next
	known := members{names: endMembers}
	for first := true; ; first = false {
		name, ok, err := in.member(first, &known)
		switch {
		case err != nil || ok:
		case o.Result == frontier.Requeue && !o.Next.IsZero():
			err = errors.New("next: a URL that is requeued comes at once")
		case dated && spanned:
			err = errors.New("next and next_s: want one of them")
		}
		if !ok || err != nil {
			return e, err
		}
		var text []byte
		switch string(name) {
		case "lease":
			e.lease, err = in.text()
		case "result":
			if text, err = in.bytes(); err == nil {
				if o.Result, ok = results[string(text)]; !ok {
					err = fmt.Errorf("%.40q is no result; want visited, changed, unchanged, gone, failed, denied, requeue or put_off", text)
				}
			}
		case "failure":
			if text, err = in.bytes(); err == nil {
				if o.Failure, ok = failures[string(text)]; !ok {
					err = fmt.Errorf("%.40q is no failure; want other, dns, connect, timeout, server, unavailable or too_many_requests", text)
				}
			}
		case "uncontacted":
			o.Uncontacted, err = in.bool()
		case "ended_ago_s":
			var ago time.Duration
			ago, err = in.seconds()
			o.Ended = now.Add(-max(0, ago-time.Millisecond)) // the client may have rounded up
		case "duration_s":
			o.Duration, err = in.seconds()
		case "retry_after_s":
			if o.RetryAfter, err = in.seconds(); o.RetryAfter > 0 {
				o.RetryAfter = max(o.RetryAfter, unit.Measured) // the unit is certain, and the value may be a remainder
			}
		case "crawl_delay_s":
			switch o.CrawlDelay, err = in.seconds(); {
			case err != nil:
			case o.CrawlDelay == 0:
				o.CrawlDelay = frontier.NoCrawlDelay
			default:
				o.CrawlDelay = max(o.CrawlDelay, unit.Least) // robots.txt may have any fraction of a second
			}
		case "modified":
			o.Modified, err = in.time()
		case "bytes":
			if o.Bytes, err = in.int(); err == nil && o.Bytes < 0 {
				err = fmt.Errorf("%d is negative", o.Bytes)
			}
		case "next":
			o.Next, err = in.time()
			dated = !o.Next.IsZero()
		case "next_s":
			var wait time.Duration
			wait, err = in.seconds()
			o.Next, spanned = now.Add(wait), true
		case "meta":
			e.meta, err = in.meta()
		case "add":
			err = in.take('[')
			for first := true; err == nil; first = false {
				var it item
				if ok, err = in.more(first, ']'); !ok || err != nil {
					break
				}
				if it, err = s.item(in, now); err == nil {
					e.add = append(e.add, it)
				}
			}
		}
		if err != nil {
			return e, fmt.Errorf("%.40s: %w", name, err)
		}
	}
}

// appendText appends a JSON string.
func appendText(b []byte, s string) []byte {
	plain := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		b = append(b, '"')
		b = append(b, s...)
		return append(b, '"')
	}
	x, _ := json.Marshal(s) // cannot fail for a string
	return append(b, x...)
}

func appendMember(b []byte, name string) []byte {
	if c := b[len(b)-1]; c != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// appendString appends a member, unless its value is empty.
func appendString(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(appendMember(b, name), value)
}

func appendInt(b []byte, name string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(appendMember(b, name), int64(n), 10)
}

// appendTime appends a time in milliseconds, rounded up, unless it is zero.
func appendTime(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	t = t.Add(time.Millisecond - 1).UTC()
	b = append(appendMember(b, name), '"')
	return append(t.AppendFormat(b, "2006-01-02T15:04:05.000Z"), '"')
}

// appendSpan appends a duration in seconds, rounded down to milliseconds. Responses carry durations,
// never dates: a client's clock may differ.
func appendSpan(b []byte, name string, d time.Duration) []byte {
	return strconv.AppendFloat(appendMember(b, name), d.Truncate(time.Millisecond).Seconds(), 'f', -1, 64)
}

// appendLease appends a lease. asked is when its request arrived; durations count from then.
func (s *Service) appendLease(b []byte, l *frontier.Lease, asked time.Time) []byte {
	b = append(b, '{')
	b = appendString(b, "lease", l.ID())
	b = appendString(b, "url", l.Entry.URL)
	b = appendString(b, "host", l.Host)
	b = appendString(b, "group", l.Group)
	b = appendString(b, "crawl", s.CrawlName(l.Entry.Crawl))
	b = appendInt(b, "depth", l.Entry.Depth)
	if l.Entry.Weight != 0 {
		b = strconv.AppendFloat(appendMember(b, "weight"), l.Entry.Weight, 'g', -1, 64)
	}
	b = appendInt(b, "priority", l.Priority)
	b = appendInt(b, "attempt", l.Attempt)
	b = s.appendKept(b, l.Entry.Meta, &l.History)
	b = appendSpan(b, "lease_s", max(0, l.Deadline.Sub(s.f.Now())))
	b = appendSpan(b, "sent_s", time.Since(asked))
	if !l.Due.IsZero() {
		b = appendSpan(b, "late_s", max(0, l.LeasedAt.Sub(l.Due)))
	}
	if l.Gap > 0 {
		b = strconv.AppendFloat(appendMember(b, "gap_s"), l.Gap.Seconds(), 'f', -1, 64)
	}
	return append(b, '}')
}

// appendKept appends a URL's metadata and history. It omits a Meta that is not an Envelope.
func (s *Service) appendKept(b, kept []byte, h *frontier.History) []byte {
	if e, err := OpenEnvelope(kept); err == nil && len(e.Meta) > 0 {
		meta, _ := json.Marshal(e.Meta)
		b = append(appendMember(b, "meta"), meta...)
	}
	if h.Last != 0 || h.Visits != 0 {
		b = append(appendMember(b, "history"), '{')
		b = appendInt(b, "visits", h.Visits)
		b = appendInt(b, "changes", h.Changes)
		b = appendTime(b, "first_visit", h.FirstVisit)
		b = appendTime(b, "last_visit", h.LastVisit)
		b = appendTime(b, "last_change", h.LastChange)
		b = appendTime(b, "last_modified", h.LastModified)
		b = append(appendString(b, "last", resultName(h.Last)), '}')
	}
	return b
}
