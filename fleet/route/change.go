// This file changes rules, crawls and hosts: at the one part that has the hosts, or at all of them.

package route

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// within returns the parts that may have hosts of a scope. A scope that is none has the first part, which
// says what is wrong with it.
func (r *Router) within(scope string) ([]*part, error) {
	s, err := console.ParseScope(scope)
	if err != nil {
		return r.parts[:1], nil
	}
	text := s.String()
	if strings.HasPrefix(text, "crawl:") {
		return nil, badRequest("scope: a crawl has another number at each part: name it, as in PUT /v1/crawls/news")
	}
	if text == "*" {
		return r.parts, nil
	}
	domain, isDomain := strings.CutPrefix(text, "*.")
	key, err := hostkey.Spelled(domain)
	switch {
	case err != nil:
		return r.parts[:1], nil
	case isDomain:
		if below, ok := domainOf("any." + key); !ok || len(below) > len(key) { // it has registrable domains below it
			return r.parts, nil
		}
	}
	return []*part{r.home(key)}, nil
}

// ofHost lets the part of a host answer.
func (c *call) ofHost() error { return c.pass(c.r.of("", c.q.PathValue("host"))) }

// getURL lets the part of a URL answer.
func (c *call) getURL() error { return c.passIn(c.r.of(c.query.Get("url"), c.query.Get("host"))) }

// deleteURLs deletes the URLs of a host.
func (c *call) deleteURLs() error { return c.passIn(c.r.of("", c.q.PathValue("host"))) }

// passIn lets a part answer for one of its hosts in a crawl. If only others know the crawl, one of them does: it has
// none of the host's URLs.
func (c *call) passIn(p *part) error {
	err := c.pass(p)
	for _, other := range c.r.parts {
		if err == nil || problemOf(err).kind != "unknown-crawl" {
			break
		}
		err = c.pass(other)
	}
	return err
}

// changeRule sets or deletes a rule.
func (c *call) changeRule() error {
	parts, err := c.r.within(c.q.PathValue("scope"))
	if err != nil {
		return err
	}
	return c.rule(parts)
}

// putCrawl sets a crawl's rule.
func (c *call) putCrawl() error { return c.rule(c.r.parts) }

func (c *call) rule(parts []*part) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	o, err := objectOf(body)
	if err != nil { // the parts say what is wrong
		return c.at(parts, func(*part) []byte { return body })
	}
	if _, err := o.divide("limits", len(parts)); err != nil {
		return err
	}
	return c.at(parts, func(*part) []byte { return o.bytes() })
}

// everywhere makes a change at all parts, or adds what they answer.
func (c *call) everywhere() error {
	return c.at(c.r.parts, func(*part) []byte { return nil })
}

// at makes a change at some parts. It is in force at all of them, or the error names those at which it is
// not.
func (c *call) at(parts []*part, body func(*part) []byte) error {
	all, errs := c.asks(parts, func(p *part) asking {
		return asking{method: c.q.Method, path: c.q.URL.RequestURI(), body: body(p), wait: long}
	})
	done, err := settled(parts, errs)
	if err != nil {
		return err
	}
	var results []map[string]any
	for i, b := range all {
		if errs[i] == nil {
			results = append(results, values(b))
		}
	}
	return c.reply(merged(done, results))
}

// settled returns the names of the parts where a change is in force, if it is so at all that know what it is about.
func settled(parts []*part, errs []error) (done []string, err error) {
	var not []string
	var first *problem
	for i, p := range parts {
		switch err := errs[i]; {
		case err == nil:
			done = append(done, p.name)
		case problemOf(err).kind == "unknown-crawl" || problemOf(err).kind == "unknown-host":
			if first == nil {
				first = problemOf(err) // unless another part knows it
			}
		default:
			if not = append(not, p.name+" ("+err.Error()+")"); len(not) == 1 {
				first = problemOf(err)
			}
		}
	}
	if len(not) == 0 && len(done) > 0 {
		return done, nil
	}
	if len(not) > 0 && len(done) > 0 {
		x := *first
		x.Detail = fmt.Sprintf("done at %s, and not at %s", strings.Join(done, ", "), strings.Join(not, ", "))
		if away(first) {
			x.Detail += ": send it again, which does no harm"
		}
		return nil, &x
	}
	return nil, first
}

// postDo carries out an action.
func (c *call) postDo() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	o, err := objectOf(body)
	var a struct {
		Do, Scope, Lease, Client string
		URLs                     []string
		Crawl                    any
	}
	if err != nil || json.Unmarshal(body, &a) != nil { // a part says what is wrong
		return c.at(c.r.parts[:1], func(*part) []byte { return body })
	}
	switch a.Do {
	case "stop", "checkpoint":
		if a.Do == "checkpoint" && c.client == c.r.consoles { // the parts say that they make none
			return c.at(c.r.parts, func(*part) []byte { return body })
		}
		return instead("stop each part by itself")(c)
	case "add", "crawl-now":
		if n, ok := a.Crawl.(float64); ok && n != 0 {
			return badRequest("crawl: a crawl has another number at each part; want its name")
		}
		return c.doURLs(o, a.URLs)
	case "end-leases":
		if a.Lease != "" {
			p, id, err := c.r.owner(a.Lease)
			if err != nil {
				return err
			}
			o.set("lease", id)
			permits, err := c.r.permits(a.Lease)
			if err == nil {
				err = c.at([]*part{p}, func(*part) []byte { return o.bytes() })
			}
			for _, x := range permits {
				if o.set("lease", x.id); err == nil { // one whose part does not answer ends at its deadline
					_, _ = c.ask(c.q.Context(), x.part, asking{method: "POST", path: c.q.URL.Path, body: o.bytes()})
				}
			}
			return err
		}
		if a.Client != "" && a.Scope == "" {
			a.Scope = "*"
		}
	}
	parts, err := c.r.within(a.Scope)
	if err == nil && a.Do == "limit" {
		_, err = o.divide("limits", len(parts))
	}
	if err != nil {
		return err
	}
	return c.at(parts, func(*part) []byte { return o.bytes() })
}

// doURLs carries out an action on URLs: each part gets its own.
func (c *call) doURLs(o object, urls []string) error {
	by := map[*part][]string{}
	for _, u := range urls {
		p := c.r.ofTyped(u, c.r.parts[0])
		by[p] = append(by[p], u)
	}
	parts := []*part{}
	for _, p := range c.r.parts {
		if by[p] != nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		parts = c.r.parts[:1]
	}
	return c.at(parts, func(p *part) []byte {
		own := append(object{}, o...)
		own.set("urls", by[p])
		return own.bytes()
	})
}
