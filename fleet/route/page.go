// This file leads browsers: a page lists the parts, and each part's own page is below it.

package route

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"

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
	var sent []byte
	if form {
		var err error
		if sent, err = c.belongs(p); err != nil {
			return err
		}
	}
	return c.showPage(p, "/"+what, sent)
}

// belongs refuses a form that would add a URL of another part's host, and returns the form.
func (c *call) belongs(p *part) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(c.w, io.NopCloser(deadlined{c, true}), maxForm))
	f, _ := url.ParseQuery(string(b))
	if u := f.Get("url"); err == nil && u != "" && c.r.ofTyped(u, p) != p {
		err = &problem{kind: "conflict", Status: http.StatusConflict, Detail: "this URL's host is at part " + c.r.ofTyped(u, p).name + ": use that part's page"}
	}
	return b, err
}

// showPage passes a browser's request and the answer on, with all that belongs to signing in. It asks one of the
// part's addresses after the other.
func (c *call) showPage(p *part, path string, form []byte) (err error) {
	ctx, cancel := context.WithTimeoutCause(c.q.Context(), patience, errSilent)
	defer cancel()
	defer context.AfterFunc(c.r.closing, cancel)()
	for range p.bases {
		at := p.at.Load()
		to, err2 := url.Parse(p.bases[at] + path)
		if err2 != nil {
			return badRequest("the path: %v", err2)
		}
		err = nil
		proxy := httputil.ReverseProxy{
			Transport: c.client.Transport,
			Rewrite: func(q *httputil.ProxyRequest) {
				q.Out.URL, q.Out.Host, q.Out.Body = to, "", io.NopCloser(bytes.NewReader(form))
				q.Out.ContentLength = int64(len(form))
				q.Out.Header.Set(serve.PartHeader, p.mark())
				q.Out.Header.Del("Origin") // the router has judged it
			},
			ModifyResponse: func(a *http.Response) error {
				if passes(a.StatusCode) && len(p.bases) > 1 {
					return errors.New(a.Status)
				}
				c.code, c.began = a.StatusCode, true
				return nil
			},
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, failed error) {
				err = busy("part %s does not answer: %v", p.name, cmp.Or(context.Cause(ctx), failed))
			},
		}
		proxy.ServeHTTP(paced{c.w, c}, c.q.WithContext(ctx))
		if err == nil || ctx.Err() != nil {
			break
		}
		p.at.CompareAndSwap(at, (at+1)%int32(len(p.bases)))
	}
	return err
}

// paced writes to a browser that reads in time.
type paced struct {
	http.ResponseWriter
	c *call
}

func (w paced) Write(b []byte) (int, error) { return len(b), w.c.write(b) }

// Unwrap serves http.ResponseController.
func (w paced) Unwrap() http.ResponseWriter { return w.ResponseWriter }
