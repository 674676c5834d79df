// This file leads browsers: a page lists the parts, and each part's own page is below it.

package route

import (
	"bytes"
	"html/template"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/serve"
)

const maxForm = 64 << 10 // bytes

var index = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Parts of the frontier</title>
<link rel="stylesheet" href="parts/{{(index . 0).Name}}/style.css"></head>
<body><main><div class="card"><h1>Parts of the frontier</h1>
<table><thead><tr><th scope="col">Part</th><th scope="col">State</th></tr></thead>
<tbody>{{range .}}<tr><th scope="row"><a href="parts/{{.Name}}/">{{.Name}}</a></th><td data-label="State">{{with .Wrong}}{{.}}{{else}}ready{{end}}</td></tr>{{end}}</tbody></table></div></main></body></html>
`))

// getIndex lists the parts.
func (c *call) getIndex() error {
	type row struct{ Name, Wrong string }
	var rows []row
	not := c.notReady()
	for _, p := range c.r.parts {
		rows = append(rows, row{p.name, not[p.name]})
	}
	var b bytes.Buffer
	if err := index.Execute(&b, rows); err != nil {
		return err
	}
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'")
	return c.send(http.StatusOK, "text/html; charset=utf-8", b.Bytes())
}

// onPart lets a part answer what the path names: a request that reads, or its page.
func (c *call) onPart() error {
	p := c.r.named(c.q.PathValue("part"))
	page := c.q.PathValue("page")
	form := c.q.Method == "POST" && slices.Contains([]string{"do", "enter", "leave"}, page)
	switch {
	case p == nil:
		return &problem{kind: "not-found", Status: http.StatusNotFound, Detail: "there is no such part"}
	case c.q.Method == "POST" && !form:
		return &problem{kind: "not-found", Status: http.StatusNotFound, Detail: "a part's page takes do, enter and leave here; send other requests without /parts/ and the part's name"}
	}
	_, what, _ := strings.Cut(strings.TrimPrefix(c.q.URL.RequestURI(), "/parts/"), "/")
	if page == "metrics" || strings.HasPrefix(page, "v1/") {
		return c.passTo(p, "/"+what)
	}
	if form {
		if err := c.belongs(p); err != nil {
			return err
		}
	}
	return c.showPage(p, "/"+what)
}

// belongs refuses a form that would add a URL of another part's host.
func (c *call) belongs(p *part) error {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, io.NopCloser(deadlined{c, true}), maxForm))
	if err != nil {
		return err
	}
	c.q.Body = io.NopCloser(bytes.NewReader(b))
	f, _ := url.ParseQuery(string(b))
	if u := f.Get("url"); u != "" && c.r.ofOr(u, "", p) != p {
		return &problem{kind: "conflict", Status: http.StatusConflict, Detail: "this URL's host is at part " + c.r.of(u, "").name + ": use that part's page"}
	}
	return nil
}

// showPage passes a browser's request and the answer on, with all that belongs to signing in.
func (c *call) showPage(p *part, path string) (err error) {
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(idle))
	at := p.at.Load()
	to, err := url.Parse(p.bases[at] + path)
	if err != nil {
		return badRequest("the path: %v", err)
	}
	proxy := httputil.ReverseProxy{
		Transport: c.client.Transport,
		Rewrite: func(q *httputil.ProxyRequest) {
			q.Out.URL, q.Out.Host = to, ""
			q.Out.Header.Set(serve.PartHeader, p.mark())
			q.Out.Header.Del("Origin") // the router has judged it
		},
		ModifyResponse: func(a *http.Response) error {
			c.code, c.began = a.StatusCode, true
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
			p.at.CompareAndSwap(at, (at+1)%int32(len(p.bases)))
			err = busy("part %s does not answer: %v", p.name, failed)
		},
	}
	proxy.ServeHTTP(c.w, c.q)
	return err
}
