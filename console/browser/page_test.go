//go:build unix

// This file tests the page as an operator meets it, while a crawl goes on.

package browser

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// clean checks that nothing went wrong on the page, and that it asked for nothing
// elsewhere.
func (w *world) clean(t *testing.T, x *tab) {
	t.Helper()
	assert.Empty(t, x.complaints())
	for _, u := range x.asked() {
		assert.True(t, strings.HasPrefix(u, w.page+"/") || strings.HasPrefix(u, "data:") || u == "about:blank", u)
	}
}

// A host is paused by its button: what the crawl fetches next is not of it.
func TestPauseByTheButton(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	x.enter(t, w, "/host?name=site-1.example")
	assert.Zero(t, eval[int](t, x, "document.querySelectorAll('[type=password]').length"), "nothing asks for the token any more")
	x.pauses(t, w, "site-1.example")
	x.says(t, ".why", "Paused: it is paused") // without being loaded again
	x.submit(t, ".forms form:nth-of-type(2) button", "site-1.example goes on")
	x.until(t, "the host is fetched from again", func() bool {
		h, err := inspect.New(w.f).Host(t.Context(), "site-1.example")
		return err == nil && h.Reason != inspect.ReasonPaused
	})
	w.clean(t, x)
}

// enter opens a page with the token behind the #, and waits until the browser has entered.
func (x *tab) enter(t *testing.T, w *world, path string) {
	t.Helper()
	x.goTo(t, w.page+path+"#token="+url.QueryEscape(token))
	x.says(t, ".who", "Sign out")
	assert.NotContains(t, eval[string](t, x, "location.href"), "token")
}

// The whole crawl is paused by its button, says so wherever it is looked at, and goes on.
func TestPauseEverything(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	x.enter(t, w, "/")
	x.submit(t, ".actions form:first-child button", "* is paused")
	for _, path := range []string{"/", "/hosts", "/rules"} {
		x.goTo(t, w.page+path)
		x.says(t, ".pill", "Paused")
		assert.True(t, strings.HasPrefix(eval[string](t, x, "document.title"), "Paused"), path)
	}
	x.goTo(t, w.page+"/")
	x.submit(t, ".actions form:first-child button", "* goes on")
	x.says(t, ".pill", "Running")
	x.click(t, ".confirm summary")
	x.click(t, ".confirm button")
	x.says(t, ".pill", "Ended") // without being loaded again
	x.says(t, ".sentence", "Stopped by an operator")
	w.clean(t, x)
}

// pauses presses the button, and sees the frontier act.
func (x *tab) pauses(t *testing.T, w *world, host string) {
	t.Helper()
	pressed := time.Now()
	x.submit(t, ".forms form:nth-of-type(1) button", host+" is paused")
	t.Logf("the page says that it holds %v after the button was pressed", time.Since(pressed).Round(time.Millisecond))
	assert.Equal(t, scope.On, w.f.RuleOf(host).Paused, "it holds when the page says so")
	x.until(t, "what was being fetched is there", func() bool {
		h, err := inspect.New(w.f).Host(t.Context(), host)
		require.NoError(t, err)
		return h.Leased == 0
	})
	before, all := w.requests(host)
	x.until(t, "the crawl goes on elsewhere", func() bool {
		_, now := w.requests(host)
		return now >= all+100
	})
	after, _ := w.requests(host)
	assert.Equal(t, before, after, "requests to a paused host")
}

// Without JavaScript every page is whole, and every button works: the token is typed.
func TestWithoutJavaScript(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	x.do(t, "Emulation.setScriptExecutionDisabled", args{"value": true})
	x.until(t, "the hosts of this test are known, and URLs wait", func() bool {
		one, _ := w.requests("site-1.example")
		two, _ := w.requests("site-2.example")
		return one > 1 && two > 1 && w.f.Stats().Waiting > 0
	})
	for path, parts := range map[string][]string{
		"/": {"Pages fetched", "Problems", "Hosts by what they do", "Recent requests", "Pause", "Without JavaScript"}, "/hosts": {"site-0.example"}, "/urls": {"Priority"}, "/rules": {"No rule", "Set a rule"},
		"/url?url=http%3A%2F%2Fsite-0.example%2F0": {"site-0.example", "Crawl it next", "What became of it"}, "/url?url=site-0.example": {"site-0.example", "Its recent requests"},
	} {
		x.goTo(t, w.page+path)
		said := x.text(t, "body")
		for _, part := range parts {
			assert.Contains(t, said, part, path)
		}
	}
	x.goTo(t, w.page+"/")
	assert.NotZero(t, eval[int](t, x, "document.querySelectorAll('svg.chart').length"))
	x.goTo(t, w.page+"/host?name=site-1.example")
	x.click(t, ".forms form:nth-of-type(1) button")
	x.says(t, "main", "the page wants its token, once for this browser")
	x.fill(t, "[name=token]", "wrong")
	x.click(t, "main button")
	x.says(t, ".wrong", "That is not the token")
	assert.Equal(t, scope.Unset, w.f.RuleOf("site-1.example").Paused)
	x.fill(t, "[name=token]", token)
	x.submit(t, "main button", "site-1.example is paused")
	assert.Equal(t, scope.On, w.f.RuleOf("site-1.example").Paused, "what was wanted is done")
	x.goTo(t, w.page+"/host?name=site-2.example")
	x.pauses(t, w, "site-2.example") // it is not asked for again
}

// All that can be used is reached with the Tab key, in view and marked; a host is paused
// with keys alone.
func TestByKeyboard(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	for _, path := range []string{"/", "/hosts", "/host?name=site-1.example", "/urls", "/rules"} {
		x.goTo(t, w.page+path)
		// So that nothing comes or goes on the way.
		eval[any](t, x, "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
		x.press(t, "Tab")
		assert.True(t, x.focused(t, ".skip"), "%s: first the way past the menu", path)
		assert.Greater(t, eval[float64](t, x, "document.activeElement.getBoundingClientRect().right"), 0., "%s: it is seen", path)
		eval[any](t, x, "window.met = new Set()")
		for range 1000 {
			if !eval[bool](t, x, `(() => { const e = document.activeElement; if (e === document.body || met.has(e)) return false; met.add(e); return getComputedStyle(e).outlineStyle !== "none"; })()`) {
				break
			}
			x.press(t, "Tab")
		}
		missed := eval[[]string](t, x, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")].filter(e => !met.has(e) && e.checkVisibility()).map(e => e.outerHTML)`)
		assert.Empty(t, missed, path)
	}
	x.goTo(t, w.page+"/host?name=site-1.example")
	x.tabTo(t, ".forms form:nth-of-type(1) button")
	x.press(t, "Enter")
	x.says(t, "main", "the page wants its token")
	x.tabTo(t, "[name=token]")
	x.write(t, token)
	x.press(t, "Enter")
	x.says(t, "#said", "site-1.example is paused")
	assert.Equal(t, scope.On, w.f.RuleOf("site-1.example").Paused)
	assert.Empty(t, slices.DeleteFunc(x.complaints(), func(c string) bool { return strings.Contains(c, "401") }))
}

// tabTo presses the Tab key until an element has the focus.
func (x *tab) tabTo(t *testing.T, selector string) {
	t.Helper()
	for range 500 {
		if x.focused(t, selector) {
			return
		}
		x.press(t, "Tab")
	}
	t.Fatalf("%s is not reached", selector)
}

// A page that is left open says when the crawl does not answer, and follows it again when
// it does; it does not grow.
func TestAPageLeftOpen(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	x.goTo(t, w.page+"/")
	waiting := x.text(t, ".tiles")
	x.until(t, "the page is live", func() bool { return x.text(t, ".tiles") != waiting })
	w.clean(t, x)
	w.down.Store(true)
	x.says(t, "#gone", "The crawl does not answer")
	waiting = x.text(t, ".tiles")
	w.down.Store(false)
	x.until(t, "the page follows again", func() bool { return x.text(t, "#gone") == "" && x.text(t, ".tiles") != waiting })
	for _, c := range x.complaints() {
		assert.Contains(t, c, "Failed to load resource", "the browser's own words about the time without an answer")
	}

	// A hundred refreshes: what was shown before is let go.
	nodes := func() int {
		x.do(t, "HeapProfiler.collectGarbage", args{})
		var n struct{ Nodes int }
		x.c.call(t, x.session, "Memory.getDOMCounters", args{}, &n)
		return n.Nodes
	}
	eval[any](t, x, "(async () => { for (let i = 0; i < 20; i++) await refresh(); })()")
	before := nodes()
	eval[any](t, x, "(async () => { for (let i = 0; i < 100; i++) await refresh(); })()")
	assert.Less(t, nodes(), 2*before+2000, "nodes after 100 refreshes, %d before", before)
	w.clean(t, x)
}
