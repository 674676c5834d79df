// This file loads one page in a tab of its own, waits until its scripts are done, and reads it.

package frontierchromedp

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdpfetch "github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// page is one page while it is rendered.
type page struct {
	r     *Renderer
	q     fetch.Request // that the page was fetched with
	doc   *fetch.Result
	host  string           // of the page, as a key
	tab   *chromedp.Target // set before the first request
	frame cdp.FrameID      // of the page itself

	ctx     context.Context // of its requests; ends when the page is done
	answers sync.WaitGroup
	turn    chan struct{} // held by the one request to the page's host

	mu       sync.Mutex
	given    bool      // the document was handed to the browser
	loaded   bool      // its load event has come
	crashed  bool      // the tab has
	closed   bool      // no more requests are answered
	busy     int       // requests that have no answer yet
	since    time.Time // when the last of them was answered
	requests int
	refused  bool     // the host asked for a pause
	targets  []string // where the page wanted to go
	changed  chan struct{}

	// Of the contact with the page's host; set by the holder of turn.
	ended      time.Time
	bytes      int64
	retryAfter time.Duration
}

const targetsMost = 100

var (
	errCrashed = errors.New("the tab crashed")
	errStuck   = errors.New("the tab does not respond")
)

func (r *Renderer) newPage(q fetch.Request, doc *fetch.Result) (*page, error) {
	host, err := r.opts.HostKey(q.URL)
	if err != nil {
		return nil, err
	}
	return &page{r: r, q: q, doc: doc, host: host, turn: make(chan struct{}, 1), changed: make(chan struct{}, 1), ended: doc.Ended, since: time.Now()}, nil
}

// load returns the page after its scripts have run. When it returns, nothing is requested any more.
func (p *page) load(ctx context.Context) (string, error) {
	b, err := p.r.running()
	if err != nil {
		<-p.r.tabs
		return "", err
	}
	var stop context.CancelFunc
	p.ctx, stop = context.WithCancel(ctx)
	defer stop()
	tab, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	defer func() {
		p.end(stop) // the contact is over; the tab may take a while to close
		p.r.closing.Go(func() { p.close(b, tab, cancel) })
	}()
	opened := context.AfterFunc(ctx, cancel) // while it opens: a tab has no deadline of its own
	if err := chromedp.Do(tab); err != nil {
		return "", errors.Join(ctx.Err(), err)
	}
	if !opened() {
		return "", ctx.Err()
	}
	p.tab = chromedp.FromContext(tab).Target
	p.frame = cdp.FrameID(p.tab.TargetID)
	if err := chromedp.Listen(tab, p.hear); err != nil {
		return "", err
	}
	if _, err := cdp.Call(ctx, p.tab, cdpfetch.Enable, cdpfetch.EnableParams{}); err != nil {
		return "", err
	}
	until := time.Now().Add(p.r.opts.Timeout)
	if d, ok := ctx.Deadline(); ok { // time to read the page must be left
		until = earlier(until, d.Add(-min(readMost, time.Until(d)/4)))
	}
	p.answers.Go(func() { _, _ = cdp.Call(p.ctx, p.tab, cdppage.Navigate, cdppage.NavigateParams{URL: p.q.URL}) })
	if err := p.settle(ctx, until); err != nil {
		return "", err
	}
	p.end(stop)
	return p.read(ctx)
}

// close closes the tab. If that cannot be done in time the browser ends, and the pages of its other
// tabs fail: otherwise the scripts of the page would run for ever.
func (p *page) close(b *browser, tab context.Context, cancel context.CancelFunc) {
	defer func() { <-p.r.tabs }()
	defer cancel()
	limited, done := context.WithTimeout(tab, closeMost)
	defer done()
	err := chromedp.Cancel(limited)
	if limited.Err() == context.DeadlineExceeded && b.ctx.Err() == nil {
		p.r.opts.Logger.Warn("a tab does not close: the browser is ended", "url", fetch.Redact(p.q.URL), "error", err)
		b.stop()
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// settle waits until the page is done, or its time is up.
func (p *page) settle(ctx context.Context, until time.Time) error {
	limited, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		p.mu.Lock()
		crashed, done, since := p.crashed, p.loaded && p.busy == 0, p.since
		p.mu.Unlock()
		wait := time.Until(until)
		if done {
			wait = min(wait, time.Until(since.Add(p.r.opts.Quiet)))
		}
		switch {
		case crashed:
			return errCrashed
		case ctx.Err() != nil:
			return ctx.Err()
		case limited.Err() != nil:
			return nil
		case wait <= 0 && p.idle(limited, since):
			return nil
		}
		select {
		case <-p.changed:
		case <-time.After(wait):
		case <-limited.Done():
		}
	}
}

// idle waits until the page has nothing to do, and reports whether it has requested nothing since.
// On a busy machine the page may not have come to read the last answer yet.
func (p *page) idle(ctx context.Context, since time.Time) bool {
	_, err := cdp.Call(ctx, p.tab, runtime.Evaluate, runtime.EvaluateParams{
		Expression: "new Promise(done => requestIdleCallback(() => setTimeout(done)))", AwaitPromise: new(true),
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return (err == nil || ctx.Err() == nil && !p.crashed) && p.busy == 0 && p.since.Equal(since)
}

// end stops everything that is requested for the page, and waits until it has.
func (p *page) end(stop context.CancelFunc) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	stop()
	p.answers.Wait()
}

// read returns the document as it is now, with links to where the page wanted to go.
func (p *page) read(ctx context.Context) (string, error) {
	limited, cancel := context.WithTimeout(ctx, readMost)
	defer cancel()
	root, err := cdp.Call(limited, p.tab, dom.GetDocument, dom.GetDocumentParams{Depth: new(int64(0))})
	var text dom.GetOuterHTMLResult
	if err == nil {
		text, err = cdp.Call(limited, p.tab, dom.GetOuterHTML, dom.GetOuterHTMLParams{NodeID: root.Root.NodeID})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.crashed:
		return "", errCrashed
	case limited.Err() != nil && err != nil:
		return "", fmt.Errorf("%w: %w", errStuck, limited.Err())
	case err != nil:
		return "", err
	case !p.given:
		return "", fmt.Errorf("%w: it did not load the page in time: %w", errStuck, context.DeadlineExceeded)
	}
	var links strings.Builder
	for _, u := range p.targets {
		fmt.Fprintf(&links, "\n<a href=\"%s\"></a>", html.EscapeString(u))
	}
	return text.OuterHTML + links.String(), nil
}

// hear takes what the tab says. It must not wait.
func (p *page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *cdpfetch.EventRequestPaused:
		if p.closed {
			return // the tab will be closed
		}
		p.busy++
		p.answers.Go(func() { p.answer(e) })
	case *cdppage.EventLoadEventFired:
		p.loaded = p.given
	case *cdppage.EventFrameStoppedLoading: // the load event does not come if the page wanted to go elsewhere before
		p.loaded = p.loaded || p.given && e.FrameID == p.frame
	case *cdppage.EventFrameRequestedNavigation: // comes even if the page changes its mind before it is sent
		if e.FrameID == p.frame && p.given {
			p.goesLocked(e.URL)
		}
	case *inspector.EventTargetCrashed:
		p.crashed = true
	case *cdppage.EventJavascriptDialogOpening:
		if !p.closed {
			p.answers.Go(func() {
				_, _ = cdp.Call(p.ctx, p.tab, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: e.Type == cdppage.DialogTypeBeforeunload})
			})
		}
	default:
		return
	}
	p.signalLocked()
}

func (p *page) signalLocked() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// goesLocked notes that the page wants to go elsewhere, where it is not let.
func (p *page) goesLocked(target string) {
	if u, _, _ := strings.Cut(target, "#"); u != p.q.URL && len(p.targets) < targetsMost && !slices.Contains(p.targets, u) {
		p.targets = append(p.targets, u)
	}
}

// entries converts header fields for the browser.
func entries(h http.Header) (out []*cdpfetch.HeaderEntry) {
	for name, values := range passed(h) {
		for _, v := range values {
			out = append(out, &cdpfetch.HeaderEntry{Name: name, Value: v})
		}
	}
	return out
}
