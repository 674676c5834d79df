// This file adds URLs: each at the part that has its host.

package route

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/urllist"
)

// entry is a URL to add.
type entry struct {
	part    *part
	line    []byte          // the object
	number  int             // of the line in the body
	verdict json.RawMessage // nil: there is none yet
}

var errNoObject = errors.New("want a JSON object")

// verdict is the answer to an entry.
type verdict struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

// entry returns the entry of an object. If it has no host, the part other says what is wrong.
func (r *Router) entry(line []byte, other *part) entry {
	if line[0] != '{' { // a part would take an array apart
		b, _ := json.Marshal(verdict{Status: "bad", Error: errNoObject.Error()})
		return entry{part: other, verdict: b}
	}
	var x struct{ URL, Host string }
	_ = json.Unmarshal(line, &x)
	return entry{part: r.ofOr(x.URL, x.Host, other), line: line}
}

// listed returns the entry of a line of a list.
func (r *Router) listed(line []byte, other *part) entry {
	url, err := urllist.URL(line)
	if err != nil {
		b, _ := json.Marshal(verdict{Status: "bad", Error: err.Error()})
		return entry{part: other, verdict: b}
	}
	w := jsonl.Writer{}
	w.Open()
	w.Word("url", string(url))
	w.Close()
	return entry{part: r.ofOr(string(url), "", other), line: w}
}

// inLines sends lines to parts, those of each in their order, all parts at once. got gets each line of the
// answers. The errors are of the parts whose answers are not complete.
func (c *call) inLines(path string, parts []*part, line func(i int) []byte, got func(i int, answer json.RawMessage)) map[*part]error {
	by := map[*part][]int{}
	for i, p := range parts {
		if p != nil {
			by[p] = append(by[p], i)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	errs := map[*part]error{}
	for p, of := range by {
		wg.Go(func() {
			lines := make([][]byte, len(of))
			for n, i := range of {
				lines[n] = line(i)
			}
			answers, err := c.together(p, path, lines)
			for n, b := range answers {
				got(of[n], b)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs[p] = err
			}
		})
	}
	wg.Wait()
	return errs
}

// add adds entries, and sets their verdicts.
func (c *call) add(all []entry) map[*part]error {
	parts := make([]*part, len(all))
	for i := range all {
		if all[i].verdict == nil {
			parts[i] = all[i].part
		}
	}
	return c.inLines("/v1/urls", parts, func(i int) []byte { return all[i].line }, func(i int, b json.RawMessage) { all[i].verdict = b })
}

// maxFaults is the most lines that a summary describes.
const maxFaults = 100

// tally counts verdicts.
type tally struct {
	by     map[string]int
	lines  int
	faults []fault
}

type fault struct {
	Line   int    `json:"line"`
	Detail string `json:"detail"`
}

func (t *tally) count(e *entry) {
	var v verdict
	_ = json.Unmarshal(e.verdict, &v)
	t.lines++
	t.by[v.Status]++
	if v.Error != "" && len(t.faults) < maxFaults {
		t.faults = append(t.faults, fault{e.number, v.Error})
	}
}

// postURLs adds URLs.
func (c *call) postURLs() error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	each := strings.Contains(c.q.Header.Get("Accept"), "ndjson")
	if each {
		c.talk()
	}
	t := tally{by: map[string]int{}, faults: []fault{}}
	for was := c.held; err == nil; c.hold(int(was - c.held)) {
		var all []entry
		err = l.batch(1000, each && c.q.ContentLength < 0, func(line []byte) {
			e := c.r.entry
			if l.text {
				e = c.r.listed
			}
			all = append(all, e(line, c.r.parts[0]))
			all[len(all)-1].number = l.number
			c.hold(copies * len(line))
		})
		for _, failed := range c.add(all) {
			return failed // the client sends all lines again
		}
		var out []byte
		for i := range all {
			if out = append(append(out, all[i].verdict...), '\n'); !each {
				t.count(&all[i])
			}
		}
		if each && len(all) > 0 {
			if err := c.more(out); err != nil {
				return nil // the client has gone
			}
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case each:
		return c.more(nil)
	case t.by["bad"] > 0 && t.by["bad"] == t.lines:
		faults, _ := json.Marshal(t.faults)
		return &problem{kind: "bad-request", Status: http.StatusBadRequest, Detail: t.faults[0].Detail, Errors: faults}
	}
	answer := map[string]any{"lines": t.lines, "new": t.by["new"], "known": t.by["known"], "refused": t.by["refused"], "bad": t.faults}
	for _, name := range []string{"forced", "hinted"} {
		if t.by[name] > 0 {
			answer[name] = t.by[name]
		}
	}
	return c.reply(answer)
}

// more writes more lines of an answer.
func (c *call) more(out []byte) error {
	if !c.began {
		if err := c.send(http.StatusOK, linesType, nil); err != nil {
			return err
		}
	}
	if len(out) == 0 {
		return nil
	}
	if err := c.write(out); err != nil {
		return err
	}
	return http.NewResponseController(c.w).Flush()
}
