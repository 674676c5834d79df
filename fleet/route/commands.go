// This file answers the commands that name a machine's folder: the requests of a console.Client, for all parts.

package route

import (
	"net/http"
	"net/url"
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
	"POST /api/changed": instead("add each URL that has changed with POST /v1/urls and the member hint"),
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
