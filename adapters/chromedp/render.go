// This file fetches a page and, if it is HTML, replaces its body by the rendered one.

package frontierchromedp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/internal/media"
)

// Renderer is a Fetcher of package crawler that runs the scripts of pages. It is safe for concurrent
// use. The methods of its fetch.Fetcher, such as Addresses and CheckPort, are its own, too.
type Renderer struct {
	*fetch.Fetcher
	opts    Options       // read-only after New
	tabs    chan struct{} // holds a token for each open tab
	closing sync.WaitGroup
	scripts *scripts
	rules   *rules

	mu      sync.Mutex
	browser *browser // guarded by mu; nil: none was started yet
	closed  bool     // guarded by mu
}

// New returns a Renderer, or an error that names every option out of range. The browser is started
// with the first page.
func New(o Options) (*Renderer, error) {
	o = o.withDefaults()
	f, err := fetch.New(o.Fetch)
	if err := errors.Join(o.validate(), err); err != nil {
		return nil, err
	}
	o.Fetch.MaxBody = cmp.Or(o.Fetch.MaxBody, 10<<20)
	return &Renderer{Fetcher: f, opts: o, tabs: make(chan struct{}, o.Tabs), scripts: newScripts(o.ScriptTTL, o.ScriptMemory), rules: newRules(o.Fetch.UserAgent)}, nil
}

// errClosed is the error of pages that are rendered after Close.
var errClosed = errors.New("frontierchromedp: the Renderer is closed")

// Close ends the browser. Pages that are being rendered fail.
func (r *Renderer) Close() error {
	r.mu.Lock()
	b := r.browser
	r.browser, r.closed = nil, true
	r.mu.Unlock()
	r.CloseIdle()
	var err error
	if b != nil {
		err = b.close()
	}
	r.closing.Wait()
	return err
}

// Fetch fetches a page as fetch.Fetcher does. The Body of an HTML page with status 2xx is the page after
// its scripts have run, in UTF-8, and Bytes counts everything received for it. Other responses are
// unchanged. If a page cannot be rendered, Fetch returns the unrendered Result and a *fetch.Error.
func (r *Renderer) Fetch(ctx context.Context, q fetch.Request) (*fetch.Result, error) {
	res, err := r.Fetcher.Fetch(ctx, q)
	r.rules.note(q.URL, res, err)
	if err != nil || !renderable(res) {
		return res, err
	}
	if err := r.render(ctx, q, res); err != nil {
		r.opts.Logger.Warn("a page could not be rendered", "url", fetch.Redact(q.URL), "error", err)
		res.Truncated, res.Broken = true, "unspecified"
		class := fetch.Other
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			class = fetch.Canceled
		case errors.Is(err, context.DeadlineExceeded):
			class, res.Broken = fetch.Timeout, "time"
		}
		return res, &fetch.Error{URL: q.URL, Class: class, Err: fmt.Errorf("render: %w", err)}
	}
	return res, nil
}

// renderable reports whether an answer is a page that scripts can change.
func renderable(res *fetch.Result) bool {
	if res.Status < 200 || res.Status > 299 || res.Body.Size() == 0 {
		return false
	}
	return media.Sniff(res.Header, res.Body.Head(media.SniffSize)).HTML() && fetch.Coded(res.Header, res.Body.Head(512)) == ""
}

// readMost is how long the rendered page may take to be read.
const readMost = 10 * time.Second

// render replaces the body of a Result by the rendered one. The contact with the page's host lasts
// until it returns.
func (r *Renderer) render(ctx context.Context, q fetch.Request, res *fetch.Result) error {
	p, err := r.newPage(q, res)
	if err != nil {
		return err
	}
	select {
	case r.tabs <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("no tab was free: %w", ctx.Err())
	}
	text, err := p.load(ctx)
	res.Ended, res.Bytes, res.RetryAfter = p.ended, res.Bytes+p.bytes, max(res.RetryAfter, p.retryAfter)
	if err != nil {
		return err
	}
	body := spool.New(spool.Options{Memory: r.opts.Fetch.BodyMemory, Dir: r.opts.Fetch.TempDir})
	limit := r.opts.Fetch.MaxBody
	if int64(len(text)) > limit {
		text, res.Truncated = text[:limit], true
	}
	_, err = body.Write([]byte(text))
	if err != nil {
		return errors.Join(err, body.Close())
	}
	err = res.Body.Close()
	res.Body, res.Header = body, res.Header.Clone()
	res.Header.Set("Content-Type", "text/html; charset=utf-8")
	res.Header.Del("Content-Encoding")
	return err
}

// notPassed are header fields of a response that the browser must not see: they describe the message, or
// would make it store the page instead of showing it.
var notPassed = map[string]bool{
	"Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Content-Disposition": true,
	"Connection": true, "Keep-Alive": true, "Alt-Svc": true, "Trailer": true,
}

// passed returns the header fields of a response that the browser sees.
func passed(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		if !notPassed[name] {
			out[name] = values
		}
	}
	return out
}
