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
	"strconv"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier/internal/urllist"
)

// getExport answers with the exports of all parts in a row.
func (c *call) getExport() error {
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

// partNote is the value in which a server's export says which part it was.
const partNote = "part"

// feed is an import at one part, which gets a blank line for each line that is not its own: so it counts lines as
// the client does.
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
	var all []map[string]any
	var order []string
	for more := true; more; {
		sum, err := c.importOne(l)
		if err == nil {
			more, err = l.more()
		}
		if err != nil && len(all) > 0 {
			x := *problemOf(err)
			x.Detail = fmt.Sprintf("after %d exports of %d lines: %s", len(all), l.number, x.Detail)
			return &x
		} else if err != nil {
			return err
		}
		all, order = append(all, sum), append(order, strconv.Itoa(len(all)+1))
	}
	return c.reply(merged(order, all))
}

// more skips blank lines, and reports whether others follow.
func (l *lines) more() (bool, error) {
	for {
		b, err := l.in.Peek(1)
		if err != nil || b[0] != '\n' {
			return err == nil, unlessEOF(err)
		}
		_, _ = l.in.Discard(1)
		l.number++
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
	s := splitter{r: c.r, before: l.number}
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
	if err != nil {
		return nil, err
	}
	return imported(all)
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
		if err := l.c.grow(copies * len(line)); err != nil {
			return nil, err
		}
		o, err := objectOf(line)
		if v, _ := o.find("value"); v != nil && o.text("value") == partNote {
			s.only, err = s.noted(o.text("data")), nil
			head[len(head)-1] = nil // each part has its own
		}
		if !slices.ContainsFunc([]string{"frontier", "settings", "rule", "used", "value", "value64"}, func(name string) bool { v, _ := o.find(name); return v != nil }) || err != nil {
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
		} else if line, err = l.line(); err != nil {
			return nil, unlessEOF(err)
		}
		parts, err := s.parts(line)
		if err != nil {
			return nil, badRequest("line %d: %v", s.before+n, err)
		}
		for _, f := range all {
			if slices.Contains(parts, f.part) {
				_, _ = f.to.Write(line)
			}
			err := f.to.WriteByte('\n')
			if n > len(head) && l.in.Buffered() == 0 {
				err = cmp.Or(err, f.to.Flush()) // the client may pause, and the part would think that it has gone
			}
			if err != nil {
				return f, err
			}
		}
	}
	return nil, nil
}

// splitter knows which parts a line is for.
type splitter struct {
	r      *Router
	before int   // lines before the export
	only   *part // of which the export is; nil: of none of this division
	ended  bool  // the export's last line was seen
}

// parts returns the parts that a line is for.
func (s *splitter) parts(line []byte) ([]*part, error) {
	line = bytes.TrimSpace(line)
	parts, err := s.home(line)
	if len(parts) == 1 && s.only != nil && parts[0] != s.only {
		return nil, fmt.Errorf("it is of a host of part %s, and the export is of part %s", parts[0].name, s.only.name)
	}
	return parts, err
}

func (s *splitter) home(line []byte) ([]*part, error) {
	if len(line) == 0 {
		return nil, nil
	}
	first := cmp.Or(s.only, s.r.parts[0]) // says what is wrong
	if line[0] != '{' {
		url, err := urllist.URL(line)
		if err != nil {
			return []*part{first}, nil
		}
		return []*part{s.r.ofOr(string(url), "", first)}, nil
	}
	o, err := objectOf(line)
	if err != nil {
		return []*part{first}, nil
	}
	is := func(name string) bool { v, _ := o.find(name); return v != nil }
	s.ended = is("end")
	switch {
	case is("url") || is("url64") || is("host") || is("host64"):
		return []*part{s.r.ofOr(o.maybe64("url"), o.maybe64("host"), first)}, nil
	case o.text("rule")+o.text("used") == "host":
		return s.r.within(o.maybe64("name"))
	case o.text("rule")+o.text("used") == "domain":
		return s.r.within("*." + o.maybe64("name"))
	}
	return s.r.parts, nil
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

// imported puts the figures of all parts into one. What goes to all of them counts once.
func imported(all []*feed) (map[string]any, error) {
	var done, not []string
	var results []map[string]any
	var err error
	for _, f := range all {
		if f.err != nil {
			err = cmp.Or(err, f.err)
			not = append(not, f.part.name)
			continue
		}
		done, results = append(done, f.part.name), append(results, values(f.answer))
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
	return sum, nil
}
