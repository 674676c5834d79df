// This file exports and imports all parts. Of an export that is not of a part, each part gets the lines of its
// hosts and those of all hosts.

package route

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier/internal/urllist"
	"github.com/seed-7440039f/frontier/serve"
)

// getExport answers with the exports of all parts in a row.
func (c *call) getExport() error {
	if c.q.Method == http.MethodHead {
		return c.send(http.StatusOK, linesType, nil)
	}
	for _, p := range c.r.parts {
		res, err := c.open(c.q.Context(), p, asking{method: "GET", path: c.q.URL.RequestURI(), wait: long})
		if err == nil && !c.began {
			err = c.send(http.StatusOK, res.Header.Get("Content-Type"), nil)
		}
		if err == nil {
			_, err = io.Copy(&unhurried{c}, res.Body)
			_ = res.Body.Close()
		}
		switch {
		case err != nil && c.began:
			c.r.o.Logger.Warn("an export broke off", "partition", p.name, "error", err)
			panic(http.ErrAbortHandler) // the client must not take it for whole
		case err != nil:
			return err
		}
	}
	return nil
}

// faultsMost is the most faults in an answer.
const faultsMost = 10

// feed is an import at one part, which gets a filler for each line that is not its own: so it counts lines as the
// client does.
type feed struct {
	part *part
	to   *bufio.Writer
	pipe *io.PipeWriter

	answer []byte
	err    error
}

// postImport imports an export, or several in a row as getExport writes them, or a list.
func (c *call) postImport() error {
	l := &lines{c: c, in: bufio.NewReaderSize(urllist.NewReader(deadlined{c: c}), readAhead)}
	if err := c.grow(2 * (1 + len(c.r.parts)) * readAhead); err != nil {
		return err
	}
	var all []map[string]any
	for more := true; more; {
		before := l.number
		sum, err := c.importOne(l)
		if err == nil {
			more, err = l.more()
		}
		if err != nil && len(all) > 0 {
			x := *problemOf(err)
			x.Detail = fmt.Sprintf("after %d exports of %d lines: %s", len(all), before, x.Detail)
			return &x
		} else if err != nil {
			return err
		}
		all = append(all, sum)
	}
	return c.reply(merged(make([]string, len(all)), all)) // figures only, which no names stand before
}

// more skips blanks and byte order marks, and reports whether lines follow.
func (l *lines) more() (bool, error) {
	for {
		b, err := l.in.Peek(1)
		switch {
		case err != nil:
			return false, unlessEOF(err)
		case b[0] == '\n':
			l.number++
		case !strings.Contains(" \t\r\xef\xbb\xbf", string(b)):
			return true, nil
		}
		_, _ = l.in.Discard(1)
	}
}

func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// importOne imports one export, at all parts at once. If it is of one of them, it imports there.
func (c *call) importOne(l *lines) (map[string]any, error) {
	s := splitter{r: c.r}
	head, err := s.head(l)
	if err != nil {
		return nil, err
	}
	parts := c.r.parts
	if s.only != nil {
		parts = []*part{s.only}
	}
	var all []*feed
	var wg sync.WaitGroup
	for _, p := range parts {
		from, pipe := io.Pipe()
		f := &feed{part: p, to: bufio.NewWriterSize(pipe, readAhead), pipe: pipe}
		all = append(all, f)
		wg.Go(func() {
			f.answer, f.err = c.ask(c.q.Context(), p, asking{method: "POST", path: c.q.URL.Path, stream: from, kind: linesType, wait: long})
			_ = from.CloseWithError(errRefused)
		})
	}
	refused, err := s.split(l, head, all)
	for _, f := range all {
		if err == nil {
			_ = f.to.Flush()
		}
		_ = f.pipe.CloseWithError(err)
	}
	wg.Wait()
	if refused != nil {
		err = cmp.Or(refused.err, err)
	}
	return s.imported(all, err)
}

// errRefused is what a feed's writer gets when the part has answered before it had all lines.
var errRefused = errors.New("the part has refused it")

// head reads the lines that come before those of hosts, and what they say of the part that the export is of.
func (s *splitter) head(l *lines) (head [][]byte, err error) {
	for {
		line, err := l.line()
		if errors.Is(err, io.EOF) {
			return head, nil
		} else if err != nil {
			return nil, err
		}
		head = append(head, line)
		if err := l.c.grow(len(line)); err != nil {
			return nil, &problem{kind: "too-large", Status: http.StatusRequestEntityTooLarge, Detail: "the rules before the export's hosts are too many to be held here: import it at the parts themselves"}
		}
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '{' && !s.json {
			s.filler = "#"
		}
		s.json = s.json || len(text) > 0 && text[0] == '{'
		o, err := objectOf(text)
		if o.text("value") == serve.PartKey {
			s.only, err = s.noted(o.text("data")), nil
			head[len(head)-1] = nil // each part has its own
		}
		s.export = s.export || len(head) == 1 && o.has("frontier")
		if err != nil && len(text) > 0 || err == nil && !o.has("frontier", "settings", "rule", "used", "value", "value64") {
			return head, nil
		}
	}
}

// split gives each line to its parts, up to the end of the export or list. It returns the part that refuses to
// go on.
func (s *splitter) split(l *lines, head [][]byte, all []*feed) (refused *feed, err error) {
	for n, was := 0, l.c.held; !s.ended; l.c.hold(int(was - l.c.held)) {
		var line []byte
		if n++; n <= len(head) {
			line = head[n-1]
		} else {
			if b, _ := l.in.Peek(l.in.Buffered()); bytes.IndexByte(b, '\n') < 0 { // the client may pause, and a part would think that it has gone
				for _, f := range all {
					if err := f.to.Flush(); err != nil {
						return f, err
					}
				}
			}
			if line, err = l.line(); err != nil {
				return nil, unlessEOF(err)
			}
		}
		parts, err := s.parts(&line)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			own := []byte(s.filler)
			if slices.Contains(parts, f.part) {
				own = line
			}
			_, _ = f.to.Write(own)
			if err := f.to.WriteByte('\n'); err != nil {
				return f, err
			}
		}
	}
	return nil, nil
}

// splitter knows which parts a line is for.
type splitter struct {
	r      *Router
	only   *part  // the one that wrote the export; nil: none of this division
	json   bool   // a line of JSON was seen in the head
	filler string // # in a list, which a part must know for one
	export bool   // the first line says that it is one
	ended  bool   // its last line was seen
	lines  int
	rules  int // lines of rules
}

// parts returns the parts that a line is for. What it limits is divided among them.
func (s *splitter) parts(line *[]byte) ([]*part, error) {
	s.lines++
	parts, err := s.home(line)
	if len(parts) == 1 && s.only != nil && parts[0] != s.only {
		err = badRequest("it is of a host of part %s, and the export is of part %s", parts[0].name, s.only.name)
	}
	if err != nil {
		x := *problemOf(err)
		x.Detail = fmt.Sprintf("line %d: %s", s.lines, x.Detail)
		return nil, &x
	}
	return parts, nil
}

func (s *splitter) home(at *[]byte) ([]*part, error) {
	line := bytes.TrimSpace(*at)
	if len(line) == 0 {
		return nil, nil
	}
	first := cmp.Or(s.only, s.r.parts[0]) // says what is wrong
	if line[0] != '{' {
		url, err := urllist.URL(line)
		if err != nil {
			return []*part{first}, nil
		}
		return []*part{s.r.ofTyped(string(url), first)}, nil
	}
	o, err := objectOf(line)
	if err != nil {
		return []*part{first}, nil
	}
	s.ended = s.export && o.has("end")
	switch {
	case o.has("url", "url64", "host", "host64"):
		return []*part{s.r.ofOr(o.maybe64("url"), o.maybe64("host"), first)}, nil
	case o.has("rule", "used", "settings"):
		parts, err := s.scope(&o)
		*at = o.bytes()
		return parts, err
	case o.has("group", "group64"), s.export && o.has("frontier", "end", "value", "value64", "forgotten", "marks"):
		return s.r.parts, nil
	}
	return []*part{first}, nil
}

// scope returns the parts of what is set for a scope or a crawl, or was used of it, and divides it.
func (s *splitter) scope(o *object) (parts []*part, err error) {
	if parts = s.r.parts; o.has("rule") {
		s.rules++
	}
	switch o.text("rule") + o.text("used") {
	case "host":
		parts, err = s.r.within(o.maybe64("name"))
	case "domain":
		parts, err = s.r.within("*." + o.maybe64("name"))
	}
	for _, member := range []string{"limits", "counts"} {
		if err == nil && s.only == nil {
			_, err = o.divide(member, len(parts))
		}
	}
	return parts, err
}

// has reports whether an object has one of some members.
func (o object) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { v, _ := o.find(name); return v != nil })
}

// maybe64 returns a text, or the one in base64 that stands for it.
func (o object) maybe64(name string) string {
	if b, err := base64.StdEncoding.DecodeString(o.text(name + "64")); err == nil && len(b) > 0 {
		return string(b)
	}
	return o.text(name)
}

// noted returns the part of this division that a note names, or nil.
func (s *splitter) noted(data string) *part {
	b, _ := base64.StdEncoding.DecodeString(data)
	if i := slices.IndexFunc(s.r.parts, func(p *part) bool { return p.mark() == string(b) }); i >= 0 {
		return s.r.parts[i]
	}
	return nil
}

// imported puts the figures of all parts into one. What goes to all of them counts once. err is why the import
// broke off.
func (s *splitter) imported(all []*feed, err error) (map[string]any, error) {
	var done, not []string
	var results []map[string]any
	faults := []any{}
	for _, f := range all {
		if f.err != nil {
			err = cmp.Or(err, f.err)
			not = append(not, f.part.name)
			continue
		}
		m := values(f.answer)
		some, _ := m["faults"].([]any)
		faults = append(faults, some...)
		delete(m, "faults")
		done, results = append(done, f.part.name), append(results, m)
	}
	if err != nil && len(done) > 0 {
		x := *problemOf(err)
		x.Detail = fmt.Sprintf("imported at %s, and not at %s: import it again, which does no harm: %s", strings.Join(done, ", "), strings.Join(not, ", "), x.Detail)
		return nil, &x
	} else if err != nil {
		return nil, err
	}
	sum := merged(done, results)
	for _, name := range []string{"lines", "crawls", "values", "groups", "marks", "foreign_marks"} {
		most := 0.0
		for _, m := range results {
			n, _ := m[name].(float64)
			most = max(most, n)
		}
		sum[name] = most
	}
	if n, _ := sum["rules"].(float64); n > float64(s.rules) {
		sum["rules"] = s.rules
	}
	if len(faults) > 0 {
		sum["faults"] = faults[:min(len(faults), faultsMost)]
	}
	return sum, nil
}
