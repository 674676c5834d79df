// This file answers the commands that name a machine's folder: the requests of a console.Client, for all parts.

package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
)

// commands are their requests, by method and path. Each is answered as the one of routes that says the same,
// and the parts are asked what was asked here.
var commands = map[string]func(*call) error{
	"GET /api/status":   (*call).getStats,
	"GET /api/hosts":    (*call).getHosts,
	"GET /api/host":     func(c *call) error { return c.pass(c.r.of("", c.query.Get("name"))) },
	"GET /api/urls":     (*call).getHosts, // a list with a cursor, as that of hosts is
	"GET /api/url":      (*call).lookUp,
	"GET /api/due":      sorted("hosts", 20, "due"),
	"GET /api/rules":    (*call).getRules,
	"GET /api/leases":   sorted("leases", 100, "since"),
	"POST /api/do":      (*call).postDo,
	"POST /api/import":  (*call).postImport,
	"POST /api/changed": (*call).postChanged,
	"GET /api/export":   (*call).getExport,
}

// Commands answers the commands of this machine, which may do everything. Options.Consoles must be set.
func (r *Router) Commands() http.Handler {
	mux := http.NewServeMux()
	for pattern, answer := range commands {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, q *http.Request) {
			c := &call{r: r, w: w, q: q, client: r.consoles, code: http.StatusOK}
			defer func() { r.used.Add(-c.held) }()
			err := error(busy("the router is stopping"))
			if r.begin() {
				defer r.going.Done()
				c.query, _ = url.ParseQuery(q.URL.RawQuery)
				err = answer(c)
			}
			if err != nil {
				c.fail(err)
			}
		})
	}
	return mux
}

// lookUp lets a URL's part say what it knows.
func (c *call) lookUp() error {
	if crawl := c.query.Get("crawl"); crawl != "" && crawl != "0" {
		return badRequest("crawl: a crawl has another number at each part; GET /v1/urls?crawl=NAME&url=URL takes its name")
	}
	return c.pass(c.r.ofTyped(c.query.Get("url"), c.r.parts[0]))
}

// postChanged tells the part of each URL of a list that it has changed.
func (c *call) postChanged() error {
	x, err := changefeed.Add(c.q.Context(), changes{c}, deadlined{c: c}, changefeed.Options{})
	if err == nil {
		return c.reply(x)
	}
	said := *badRequest("")
	if p, ok := errors.AsType[*problem](err); ok {
		said = *p
	}
	said.Detail = fmt.Sprintf("%v (the %d URLs before are taken)", err, x.URLs)
	return &said
}

// changes is a changefeed.Adder: each part gets a list of its URLs.
type changes struct{ *call }

func (c changes) Add(_ context.Context, entries ...frontier.Entry) (fresh int, err error) {
	lists, by := map[*part][]byte{}, map[*part][]int{}
	for i, e := range entries {
		p := c.r.of(e.URL, "")
		lists[p], by[p] = append(lists[p], e.URL+"\n"...), append(by[p], i)
	}
	parts := slices.DeleteFunc(slices.Clone(c.r.parts), func(p *part) bool { return by[p] == nil })
	all, errs := c.asks(parts, func(p *part) asking {
		return asking{method: "POST", path: c.q.URL.RequestURI(), body: lists[p], kind: "text/plain", wait: long}
	})
	var bad []error
	for n, p := range parts {
		var x changefeed.Result
		errs[n] = cmp.Or(errs[n], json.Unmarshal(all[n], &x))
		fresh, bad = fresh+int(x.New), append(bad, x.Errors(by[p])...)
	}
	if _, err := settled(parts, errs); err != nil {
		return 0, err
	}
	return fresh, errors.Join(bad...)
}
