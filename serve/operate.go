// This file answers operators' requests, most of them through package console.

package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// toConsole forwards a request to the Console at path. param is the path parameter of ours that the
// Console calls name; empty: there is none.
func toConsole(path, param string) func(*Service, *call) error {
	return func(s *Service, c *call) error {
		query := c.r.URL.RawQuery
		if param != "" {
			query = url.Values{"name": {c.r.PathValue(param)}}.Encode()
		}
		return c.console(path, query, deadlined{c})
	}
}

// console lets the Console answer a call.
func (c *call) console(path, query string, body io.Reader) error {
	r := c.r.Clone(console.As(c.ctx, c.client()))
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Pattern = path, "", query, ""
	r.Body = io.NopCloser(body)
	w := &translated{c: c}
	c.s.console.Local().ServeHTTP(w, r)
	return w.end()
}

// fleet lets Options.Fleet answer a call.
func (s *Service) fleet(c *call) error {
	if s.o.Fleet == nil {
		return &problem{kind: "not-found", status: http.StatusNotFound, detail: "one machine serves this frontier: there is no fleet"}
	}
	w := &translated{c: c}
	s.o.Fleet.ServeHTTP(w, c.r)
	return w.end()
}

// translated turns the Console's error responses into problems.
type translated struct {
	c      *call
	failed int // the status of an error
	said   bytes.Buffer
}

func (w *translated) Header() http.Header { return w.c.w.Header() }

func (w *translated) WriteHeader(status int) {
	if status >= 400 {
		w.failed = status
		return
	}
	w.c.code, w.c.began = status, true
	w.c.w.WriteHeader(status)
}

func (w *translated) Write(b []byte) (int, error) {
	if w.failed != 0 {
		return w.said.Write(b)
	}
	w.c.began = true
	return len(b), w.c.write(b)
}

// Unwrap serves http.ResponseController.
func (w *translated) Unwrap() http.ResponseWriter { return w.c.w }

// end returns the problem, or nil.
func (w *translated) end() error {
	if w.failed == 0 {
		return nil
	}
	var said struct{ Error string }
	if json.Unmarshal(w.said.Bytes(), &said) != nil || said.Error == "" {
		said.Error = http.StatusText(w.failed)
	}
	p := &problem{kind: cmp.Or(consoleProblems[w.failed], "internal"), status: w.failed, detail: said.Error}
	switch p.kind {
	case "busy":
		p.status = http.StatusServiceUnavailable
	case "internal":
		p.status = http.StatusInternalServerError
	}
	return p
}

// consoleProblems are the kinds of the Console's error responses, by status. All others are internal.
var consoleProblems = map[int]string{
	http.StatusBadRequest: "bad-request", http.StatusNotFound: "not-found", http.StatusConflict: "conflict", http.StatusRequestEntityTooLarge: "too-large",
	http.StatusUnprocessableEntity: "limit", http.StatusTooManyRequests: "busy", http.StatusServiceUnavailable: "busy",
}

// getHost describes a host.
func (s *Service) getHost(c *call) error {
	host, err := s.host(c.r.PathValue("host"))
	if err != nil {
		return err
	}
	if _, err := s.views.Host(c.ctx, host); errors.Is(err, frontier.ErrUnknownHost) {
		return err
	}
	return c.console("/api/host", url.Values{"name": {host}}.Encode(), deadlined{c})
}

// postDo runs an operator's action through the Console.
func (s *Service) postDo(c *call) error {
	key := c.r.Header.Get("Idempotency-Key")
	if key == "" {
		return c.console("/api/do", c.r.URL.RawQuery, deadlined{c})
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, io.NopCloser(deadlined{c}), maxLine))
	if err != nil {
		return err
	}
	return s.once.do(c, key, body, func() error { return c.console("/api/do", c.r.URL.RawQuery, bytes.NewReader(body)) })
}

// scope returns the scope that a client named.
func (c *call) scope(name string) (scope.Scope, error) {
	of, err := console.ScopeOf(c.s.f, name)
	if err == nil {
		err = c.s.f.CheckScope(of)
	}
	if err != nil {
		return of, badRequest("scope: %w", err)
	}
	return of, nil
}

func (c *call) replyRule(of scope.Scope) error {
	r, _ := c.s.f.Rule(of)
	return c.reply(console.ScopeRule{Scope: of.String(), Rule: console.RuleOf(r)})
}

func (s *Service) getRule(c *call) error {
	of, err := c.scope(c.r.PathValue("scope"))
	if err != nil {
		return err
	}
	return c.replyRule(of)
}

// putRule replaces a whole rule.
func (s *Service) putRule(c *call) error {
	of, err := c.scope(c.r.PathValue("scope"))
	if err != nil {
		return err
	}
	r, err := c.rule()
	if err != nil {
		return err
	}
	if err := s.setRule(c, of, r); err != nil {
		return err
	}
	return c.replyRule(of)
}

// rule parses the rule in the body.
func (c *call) rule() (frontier.Rule, error) {
	var r *console.Rule
	if err := c.decode(&r); err != nil {
		return frontier.Rule{}, err
	}
	if r == nil {
		return frontier.Rule{}, badRequest("the rule is missing: want an object; {} sets nothing")
	}
	set, err := r.Rule()
	if err != nil {
		return set, badRequest("the rule: %w", err)
	}
	return set, nil
}

// ruleRefused returns the error for a rule that its scope cannot have.
func ruleRefused(err error) error {
	if problemOf(err).kind != "internal" {
		return err
	}
	return &problem{kind: "limit", status: http.StatusUnprocessableEntity, detail: err.Error()}
}

// setRule sets a rule.
func (s *Service) setRule(c *call, of scope.Scope, r frontier.Rule) error {
	if err := s.f.UpdateRule(of, func(x *frontier.Rule) { *x = r }); err != nil {
		return ruleRefused(err)
	}
	s.log.Info("a client set a rule", "scope", of.String(), "who", c.who)
	return nil
}

func (s *Service) deleteRule(c *call) error {
	of, err := c.scope(c.r.PathValue("scope"))
	if err == nil {
		err = s.f.Clear(of)
	}
	if err != nil {
		return err
	}
	s.log.Info("a client cleared a rule", "scope", of.String(), "who", c.who)
	return c.replyRule(of)
}

// crawlInfo describes a crawl.
type crawlInfo struct {
	Name      string           `json:"name"`
	Number    uint32           `json:"number"`
	Rule      console.Rule     `json:"rule"`
	Waiting   int64            `json:"waiting"`
	Scheduled int64            `json:"scheduled"`
	Leased    int64            `json:"leased"`
	Finished  int64            `json:"finished"`
	Added     int64            `json:"added"`
	HandedOut int64            `json:"handed_out"`
	Done      map[string]int64 `json:"done,omitempty"`
}

func (s *Service) crawlInfo(name string, id uint32) crawlInfo {
	x, _ := s.views.Crawl(id)
	info := crawlInfo{Name: name, Number: id, Rule: console.RuleOf(x.Rule), Waiting: x.Waiting, Scheduled: x.Scheduled, Leased: x.Leased, Finished: x.Finished, Added: x.Added, HandedOut: x.HandedOut, Done: map[string]int64{}}
	for r, n := range x.Done {
		if n > 0 {
			info.Done[resultName(frontier.Result(r))] = n
		}
	}
	return info
}

func (s *Service) getCrawls(c *call) error {
	release, err := c.scan()
	if err != nil {
		return err
	}
	defer release()
	all := []crawlInfo{}
	for _, name := range s.CrawlNames() {
		if id, ok := s.Crawl(name); ok {
			all = append(all, s.crawlInfo(name, id))
		}
	}
	return c.reply(map[string]any{"crawls": all})
}

// crawl returns the crawl named in the path.
func (c *call) crawl() (string, uint32, error) {
	name := Normal(c.r.PathValue("name"))
	id, err := c.crawlNamed(name)
	return name, id, err
}

// crawlNamed returns the number of the crawl that a client named.
func (c *call) crawlNamed(name string) (uint32, error) {
	id, ok := c.s.Crawl(name)
	if !ok {
		return 0, &problem{kind: "unknown-crawl", status: http.StatusNotFound, detail: fmt.Sprintf("there is no crawl %.80q", name)}
	}
	return id, nil
}

func (s *Service) getCrawl(c *call) error {
	name, id, err := c.crawl()
	if err != nil {
		return err
	}
	return c.reply(s.crawlInfo(name, id))
}

// putCrawl sets a crawl's weight, pause and limits. It creates the crawl if necessary.
func (s *Service) putCrawl(c *call) error {
	name := Normal(c.r.PathValue("name"))
	r, err := c.rule()
	if err != nil {
		return err
	}
	if err := r.CheckCrawl(); err != nil { // before the crawl is created
		return ruleRefused(err)
	}
	id, err := s.NewCrawl(name)
	if errors.Is(err, errName) {
		return badRequest("%w", err)
	}
	if err != nil {
		return err
	}
	if err := s.setRule(c, scope.Crawl(id), r); err != nil {
		return err
	}
	return c.reply(s.crawlInfo(name, id))
}

// deleteCrawl deletes a crawl's URLs. With forget a crawl of the same name starts anew.
func (s *Service) deleteCrawl(c *call) error {
	name, id, err := c.crawl()
	if err != nil {
		return err
	}
	forget, err := c.flag("forget")
	if err != nil {
		return err
	}
	n, err := s.f.Delete(c.ctx, scope.Crawl(id))
	if err == nil && forget {
		var late int64
		late, err = s.ForgetCrawl(c.ctx, name)
		n += late
	}
	if err != nil {
		return err
	}
	s.log.Info("a client deleted a crawl", "crawl", name, "urls", n, "who", c.who)
	return c.reply(map[string]int64{"deleted": n})
}

// flag parses a boolean parameter.
func (c *call) flag(name string) (bool, error) {
	v := c.query.Get(name)
	if v == "" {
		return false, nil
	}
	x, err := strconv.ParseBool(v)
	if err != nil {
		return false, badRequest("%s is %.40q; want true or false", name, v)
	}
	return x, nil
}
