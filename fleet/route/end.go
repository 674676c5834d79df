// This file ends leases: the links of a page go to the parts that have their hosts, and then the end goes
// to the part of the lease.

package route

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	endsAtOnce = 500
	looksAt    = 100 // leases that a part is asked for at once
)

// end is the end of a lease.
type end struct {
	id, key string // as the client names the lease, and without permits; empty: the part says what is wrong
	part    *part
	line    object
	raw     []byte   // for the part, if line is nil
	links   []entry  // of the page; those of the lease's part stay in the end
	away    int      // how many of them are other parts'
	mark    string   // blanks that stand for all links: a part knows an end that is repeated by its bytes
	permits []permit // of the lease
	over    bool     // the lease has ended: the end is repeated, or late
	answer  object
	err     error
}

// end returns the end that a line asks for. id is the lease's, if the path has it.
func (r *Router) end(line []byte, id string) *end {
	e := &end{part: r.parts[0], raw: line}
	if line[0] != '{' {
		e.err = badRequest("the end: %v", errNoObject)
		return e
	}
	o, err := objectOf(line)
	_, twice := o.find("lease")
	links, twice2 := o.find("add")
	if err != nil || twice || twice2 {
		return e
	}
	switch in := o.text("lease"); {
	case id == "":
		id = in
	case in != "" && in != id:
		e.err = badRequest("the body: lease: it is another one than in the path")
		return e
	}
	if id == "" {
		return e
	}
	e.id = id
	p, own, err := r.owner(id)
	if e.err = err; err != nil {
		return e
	}
	e.part, e.line = p, o
	e.line.set("lease", own)
	e.key = own + p.tail
	if e.permits, e.err = r.permits(id); e.err != nil {
		return e
	}
	if again := r.groups.of(e.key).again; again > 0 {
		e.turn(again)
	}
	var all []json.RawMessage
	if json.Unmarshal(links, &all) != nil {
		return e
	}
	for _, b := range all {
		x := r.entry(b, p)
		if e.links = append(e.links, x); x.part != p {
			e.away++
		}
	}
	if e.away > 0 {
		own := []json.RawMessage{}
		sum := sha256.New()
		for _, x := range e.links {
			if x.part == p {
				own = append(own, x.line)
			}
			_, _ = sum.Write(append(x.line, '\n'))
		}
		e.line.set("add", own)
		e.mark = blanks.Replace(fmt.Sprintf("%064b", binary.BigEndian.Uint64(sum.Sum(nil))))
	}
	return e
}

// blanks spells a number in blanks.
var blanks = strings.NewReplacer("0", " ", "1", "\t")

// body returns the line for the part.
func (e *end) body() []byte {
	if e.line == nil {
		return e.raw
	}
	return append([]byte("{"+e.mark), e.line.bytes()[1:]...)
}

// goneText is the reason to refuse a link as the server refuses it, or as it would.
const goneText = "the crawl was deleted and forgotten while the page was fetched, or never had a name"

// pages asks the parts for the pages of ends with links to other parts, looksAt leases at once.
func (c *call) pages(all []*end) {
	by := map[*part][]*end{}
	for _, e := range all {
		if e.err == nil && e.away > 0 {
			by[e.part] = append(by[e.part], e)
		}
	}
	var wg sync.WaitGroup
	for p, of := range by {
		wg.Go(func() {
			for some := range slices.Chunk(of, looksAt) {
				c.inherit(p, some)
			}
		})
	}
	wg.Wait()
}

// inherit gives the links of one part's pages to other parts what they have of their page: its crawl, and a depth one
// greater.
func (c *call) inherit(p *part, ends []*end) {
	ids := []string{"-"} // a list, also of one
	for _, e := range ends {
		ids = append(ids, url.PathEscape(e.line.text("lease")))
	}
	type page struct {
		Lease, URL, Crawl string
		Depth             int
	}
	var got struct{ Leases []page }
	b, err := c.ask(c.q.Context(), p, asking{method: "GET", path: "/v1/leases/" + strings.Join(ids, ",")})
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	pages := map[string]page{}
	for _, x := range got.Leases {
		pages[x.Lease] = x
	}
	for _, e := range ends {
		if e.err = err; err == nil {
			page, out := pages[e.line.text("lease")]
			if e.over = !out; out && page.URL != "" { // otherwise the lease was for a contact
				c.bequeath(e, page.Crawl, page.Depth)
			}
		}
	}
}

// bequeath completes the links of a page to other parts.
func (c *call) bequeath(e *end, crawl string, depth int) {
	gone := strings.HasPrefix(crawl, "crawl:")
	if gone { // unless that is a name
		_, err := c.ask(c.q.Context(), e.part, asking{method: "GET", path: "/v1/crawls/" + url.PathEscape(crawl)})
		gone = err != nil
	}
	for i := range e.links {
		x := &e.links[i]
		o, err := objectOf(x.line)
		if x.part == e.part || err != nil {
			continue
		}
		if v, _ := o.find("depth"); v == nil {
			o.set("depth", depth+1)
		}
		if strings.TrimSpace(o.text("crawl")) == "" {
			if gone {
				x.verdict, _ = json.Marshal(verdict{ID: o.text("id"), Status: "refused", Error: goneText})
			}
			o.set("crawl", crawl)
		}
		x.line = o.bytes()
	}
}

// end ends leases, and sets the answers. What asks for the end of a lease again waits for the first answer: the links
// of a page that has ended are not added.
func (c *call) end(all []*end) {
	seen := map[string]bool{}
	for i, e := range all {
		if e.key != "" && seen[e.key] {
			c.endEach(all[:i])
			c.end(all[i:])
			return
		}
		seen[e.key] = true
	}
	c.endEach(all)
}

// endEach ends leases that are there once.
func (c *call) endEach(all []*end) {
	c.pages(all)
	c.addLinks(all)
	parts := make([]*part, len(all))
	for i, e := range all {
		if e.err == nil {
			parts[i] = e.part
		}
	}
	errs := c.inLines("/v1/done", parts, func(i int) []byte { return all[i].body() }, func(i int, b json.RawMessage) {
		if all[i].answer, all[i].err = objectOf(b); all[i].err == nil {
			all[i].merge()
		}
	})
	for i, e := range all {
		if parts[i] != nil && e.answer == nil && e.err == nil {
			e.err = errs[e.part]
		}
	}
	c.endPermits(slices.DeleteFunc(slices.Clone(all), func(e *end) bool {
		over := len(e.permits) > 0 && e.ended()
		if over {
			c.r.groups.ended(e.key)
		}
		return !over
	}))
}

// addLinks adds the links to other parts. An end whose links were not added is not reported.
func (c *call) addLinks(all []*end) {
	var links []entry
	var of []*entry
	for _, e := range all {
		for i := range e.links {
			if x := &e.links[i]; x.part != e.part && e.err == nil && !e.over && x.verdict == nil {
				links, of = append(links, *x), append(of, x)
			}
		}
	}
	errs := c.add(links)
	for i := range links {
		of[i].verdict = links[i].verdict
	}
	for _, e := range all {
		for i := range e.links {
			x := &e.links[i]
			switch err := errs[x.part]; {
			case x.part == e.part || e.err != nil || x.verdict != nil:
			case e.over: // if the end is repeated, it was added then
				x.verdict, _ = json.Marshal(verdict{Status: "known"})
			case err != nil && problemOf(err).kind == "full": // it is lost, as it would be with its page's part
				x.verdict, _ = json.Marshal(verdict{Status: "refused", Error: err.Error()})
			default:
				e.err = err
			}
		}
	}
}

// merge puts the verdicts of all parts into the answer, in the order of the links.
func (e *end) merge() {
	if e.id != "" {
		e.answer.set("lease", e.id)
	}
	if failed, _ := e.answer.find("error"); failed != nil || e.away == 0 {
		return
	}
	var own []json.RawMessage
	b, _ := e.answer.find("add")
	_ = json.Unmarshal(b, &own)
	added := 0
	b, _ = e.answer.find("added")
	_ = json.Unmarshal(b, &added)
	all := make([]json.RawMessage, 0, len(e.links))
	for _, x := range e.links {
		if x.part == e.part {
			if len(own) == 0 {
				return // never: the part has answered for each
			}
			x.verdict, own = own[0], own[1:]
		} else if bytes.Contains(x.verdict, []byte(`"status":"new"`)) || bytes.Contains(x.verdict, []byte(`"status":"forced"`)) {
			added++
		}
		all = append(all, x.verdict)
	}
	e.answer.set("added", added)
	e.answer.set("add", all)
}

// postDone ends one lease.
func (c *call) postDone() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	if body = bytes.TrimSpace(body); len(body) == 0 {
		body = []byte("{}")
	}
	var one bytes.Buffer
	if json.Compact(&one, body) != nil {
		one.Reset()
		one.Write(bytes.ReplaceAll(body, []byte("\n"), []byte(" "))) // a part says what is wrong
	}
	e := c.r.end(one.Bytes(), c.q.PathValue("id"))
	if c.end([]*end{e}); e.err != nil {
		return e.err
	}
	if b, _ := e.answer.find("error"); b != nil {
		x := &problem{Status: http.StatusInternalServerError}
		_ = json.Unmarshal(b, x)
		return refusal(e.part, &http.Response{StatusCode: x.Status}, b)
	}
	if e.answer[0].name == "lease" {
		e.answer = e.answer[1:]
	}
	return c.send(http.StatusOK, jsonType, append(e.answer.bytes(), '\n'))
}

// postEnds ends many leases, and answers one line for each.
func (c *call) postEnds() error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	c.talk()
	for was := c.held; err == nil; c.hold(int(was - c.held)) {
		var all []*end
		err = l.batch(endsAtOnce, true, func(line []byte) {
			all = append(all, c.r.end(line, ""))
			c.hold(copies * len(line))
		})
		c.end(all)
		var out []byte
		for _, e := range all {
			if e.err != nil {
				if errors.Is(e.err, context.Canceled) {
					return e.err
				}
				e.answer = nil
				if e.id != "" {
					e.answer.set("lease", e.id)
				}
				e.answer.set("error", problemOf(e.err))
			}
			out = append(append(out, e.answer.bytes()...), '\n')
		}
		if len(all) > 0 && c.more(out) != nil {
			return nil // the client has gone
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return c.more(nil)
}
