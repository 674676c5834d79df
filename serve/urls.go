// This file answers requests that add or look up URLs.

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/urllist"
)

// verdict is the result of adding one entry, as the client reads it.
type verdict struct {
	id     string
	status frontier.Verdict
	err    error
}

func (v *verdict) append(b []byte) []byte {
	w := jsonl.Writer(b)
	w.Open()
	w.Text("id", v.id)
	w.Text("status", v.status.String())
	if v.err != nil {
		w.Text("error", v.err.Error())
	}
	w.Close()
	return w
}

// summary counts verdicts. It answers an add whose client asked for no verdicts.
type summary struct {
	Lines   int           `json:"lines"`
	New     int           `json:"new"`
	Known   int           `json:"known"`
	Forced  int           `json:"forced,omitempty"`
	Hinted  int           `json:"hinted,omitempty"`
	Refused int           `json:"refused"`
	Bad     []lineProblem `json:"bad"` // the first lines with a fault; refused ones, too
	bad     int
}

// maxFaults is the most faulty lines that a summary lists.
const maxFaults = 100

func (x *summary) count(v *verdict, line int) {
	x.Lines++
	switch v.status {
	case frontier.EntryNew:
		x.New++
	case frontier.EntryKnown:
		x.Known++
	case frontier.EntryForced:
		x.Forced++
	case frontier.EntryHinted:
		x.Hinted++
	case frontier.EntryRefused:
		x.Refused++
	default:
		x.bad++
	}
	if v.err != nil && len(x.Bad) < maxFaults {
		x.Bad = append(x.Bad, lineProblem{line, v.err.Error()})
	}
}

// adding is a request that adds URLs.
type adding struct {
	c        *call
	lines    *lines
	each     bool // respond with a verdict per line
	items    []item
	numbers  []int
	size     int
	entries  []frontier.Entry
	verdicts []verdict
	out      []byte
	counts   summary
}

// postURLs adds URLs.
func (s *Service) postURLs(c *call) error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	defer l.close()
	a := &adding{c: c, lines: l, each: strings.Contains(c.r.Header.Get("Accept"), "ndjson"), counts: summary{Bad: []lineProblem{}}}
	if a.each {
		c.talk()
	}
	err = a.run()
	switch n := &a.counts; {
	case err != nil && !a.each && n.Lines > 0:
		p := *problemOf(err)
		p.detail += fmt.Sprintf("; before it %d lines were taken in, %d of them new", n.Lines, n.New)
		return &p
	case err != nil:
		return err
	case !a.each && n.bad > 0 && n.bad == n.Lines:
		return &problem{kind: "bad-request", status: http.StatusBadRequest, detail: n.Bad[0].Detail + a.hint(), errors: n.Bad}
	case !a.each:
		return c.reply(n)
	case !c.began:
		c.send(http.StatusOK, "application/x-ndjson", nil)
	}
	return nil
}

// hint suggests what is wrong with a body whose lines are all bad.
func (a *adding) hint() string {
	if fault := a.counts.Bad[0].Detail; a.lines.format == formatLines && strings.HasPrefix(fault, jsonl.ErrSyntax.Error()) && strings.Contains(fault, "'{' should be") {
		return "; URLs without JSON need Content-Type: text/plain"
	}
	return ""
}

// run adds batch by batch. It reads no further while the frontier takes one.
func (a *adding) run() error {
	for {
		b, err := a.lines.next()
		if err == nil {
			err = a.take(b)
		}
		full := len(a.items) >= batchURLs || a.size >= batchSize
		if err != nil || full || len(a.items) > 0 && a.each && a.lines.in.Buffered() == 0 && a.c.r.ContentLength < 0 {
			if failed := a.commit(); failed != nil && (err == nil || errors.Is(err, io.EOF)) {
				return failed
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// take parses a line and adds it to the batch.
func (a *adding) take(b []byte) error {
	var it item
	if a.lines.format == formatText {
		url, err := urllist.URL(b)
		it.entry, it.err = frontier.Entry{URL: string(url), Meta: a.c.s.seal(0, nil, a.c.s.f.Now())}, err
	} else {
		var err error
		if it, err = a.lines.parseURL(b); err != nil {
			it.err = err
		}
	}
	if room := int64(2*len(b) + 2*parsed); a.lines.grow(room) != nil {
		if err := a.commit(); err != nil { // to make room
			return err
		}
		if err := a.lines.grow(room); err != nil {
			return err
		}
	}
	a.size += len(b)
	a.items, a.numbers = append(a.items, it), append(a.numbers, a.lines.number)
	return nil
}

// commit adds the batch and answers.
func (a *adding) commit() error {
	if len(a.items) == 0 {
		return nil
	}
	var err error
	a.verdicts, a.entries, err = a.c.s.add(a.c.ctx, a.items, a.verdicts[:0], a.entries[:0])
	if err != nil {
		return err
	}
	a.out = a.out[:0]
	for i := range a.verdicts {
		a.counts.count(&a.verdicts[i], a.numbers[i])
		if a.each {
			a.out = append(a.verdicts[i].append(a.out), '\n')
		}
	}
	clear(a.items)
	clear(a.entries)
	a.items, a.numbers, a.size = a.items[:0], a.numbers[:0], 0
	a.lines.shrink(2 * readAhead)
	if !a.each {
		return nil
	}
	return a.c.stream(a.out)
}

// add adds items and appends their verdicts to out. On an error it has added none.
func (s *Service) add(ctx context.Context, items []item, out []verdict, entries []frontier.Entry) ([]verdict, []frontier.Entry, error) {
	defer s.Adding()()
	if err := s.resolve(items); err != nil {
		return nil, entries, err
	}
	for i := range items {
		if items[i].err == nil {
			entries = append(entries, items[i].entry)
		}
	}
	verdicts, err := s.f.AddVerdicts(ctx, entries...)
	if verdicts == nil {
		return nil, entries, err
	}
	return verdictsOf(items, verdicts, frontier.EntryErrors(err), nil, out), entries, nil
}

// verdictsOf appends a verdict per item. verdicts are the frontier's, for the items without an error;
// faults are its refusals, in order. An item refused without a fault gets the reason why.
func verdictsOf(items []item, verdicts []frontier.Verdict, faults []*frontier.EntryError, why error, out []verdict) []verdict {
	at := 0
	for i := range items {
		v := verdict{id: items[i].id, status: frontier.EntryBad, err: items[i].err}
		if errors.Is(v.err, errGone) {
			v.status = frontier.EntryRefused
		}
		if v.err == nil {
			if v.status = verdicts[at]; len(faults) > 0 && faults[0].Index == at {
				v.err, faults = faults[0].Err, faults[1:]
			} else if v.status == frontier.EntryRefused {
				v.err = why
			}
			at++
		}
		out = append(out, v)
	}
	return out
}

// getURL returns the state of a URL.
func (s *Service) getURL(c *call) error {
	q := c.query
	if q.Get("url") == "" {
		return badRequest("url is missing")
	}
	id, err := c.crawlNamed(q.Get("crawl"))
	if err != nil {
		return err
	}
	host := ""
	if q.Get("host") != "" {
		if host, err = s.host(q.Get("host")); err != nil {
			return err
		}
	}
	x, err := s.views.Status(c.ctx, frontier.Entry{URL: q.Get("url"), Host: host, Crawl: id})
	switch {
	case err != nil && c.ctx.Err() == nil && x.Host == "":
		return badRequest("url: %w", err)
	case err != nil:
		return err
	case x.State == inspect.URLUnknown:
		return &problem{kind: "unknown-url", status: http.StatusNotFound, detail: "the crawl does not know the URL"}
	}
	w := jsonl.Writer{'{'}
	w.Text("url", q.Get("url"))
	w.Text("crawl", Normal(q.Get("crawl")))
	w.Text("host", x.Host)
	w.Text("state", x.State.String())
	w.Int("priority", int64(x.Priority))
	w.Int("attempt", int64(x.Attempt))
	w.Int("depth", int64(x.Entry.Depth))
	w.Time("until", instant.Millis(x.Until))
	s.appendKept(&w, x.Entry.Meta, &x.History)
	c.send(http.StatusOK, "application/json", append(w, '}', '\n'))
	return nil
}
