//go:build unix

// This file tries to have what was crawled run as a script, or shown as markup.

package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/scope"
)

// attacks would each set window.owned, open a dialog or ask for something elsewhere.
var attacks = []string{
	`"><script>window.owned=1</script>`,
	`'"><img src=x onerror=window.owned=1>`,
	`"><svg/onload=alert(1)>`,
	`x" autofocus onfocus="window.owned=1" x="`,
	`x' onmouseover='window.owned=1' style='position:fixed;inset:0'`,
	`</title></style></textarea></noscript><iframe srcdoc="<script>parent.owned=1</script>">`,
	`javascript:window.owned=1//`,
	`{{.}}{{template "foot"}}<b>`,
	"\u202egpj.exe\u2028<img src=http://127.0.0.1:1/x>",
	`<meta http-equiv=refresh content="0;url=http://127.0.0.1:1/">`,
	`<base href=http://127.0.0.1:1/>`,
	"]]><!--<math><mtext></mtext><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=x onerror=window.owned=1&gt;\">",
}

// hostile is a frontier in which hosts, URLs, reasons and errors are attacks, and its page
// is called like one.
func hostile(t *testing.T) *world {
	t.Helper()
	w, watch := &world{}, console.NewWatch()
	var err error
	w.f, err = frontier.Open(t.Context(), frontier.Options{KeepOpen: true, OnEvent: watch.Event, HostKey: func(u string) (string, error) {
		return strings.TrimPrefix(u, "http://"), nil // whatever it is
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, w.f.Check())
		assert.NoError(t, w.f.Close())
	})
	for _, a := range attacks {
		_, err := w.f.Add(t.Context(), frontier.Entry{URL: "http://" + a})
		require.NoError(t, err, a)
		watch.Event(event.Event{Kind: event.URLGivenUp, Host: a, URL: a, Reason: a, Err: fmt.Errorf("it said: %s", a)})
		watch.Outcome(frontier.Lease{Host: a}, frontier.Outcome{Result: frontier.Failed})
	}
	w.serve(t, console.Options{Title: strings.Join(attacks, " "), Token: token, Watch: watch, Normalize: func(u string) (string, error) { return u, nil }, Figures: func() []console.Figure { return []console.Figure{{Name: attacks[1], Value: 1}} }})
	return w
}

// harmless checks that all markup of the page is ours, and that nothing was run.
func (w *world) harmless(t *testing.T, x *tab, where string) {
	t.Helper()
	assert.True(t, eval[bool](t, x, "window.owned === undefined"), where)
	assert.Empty(t, eval[[]string](t, x, `[...document.querySelectorAll("img, iframe, object, embed, base, style, math, textarea, [autofocus], [style], [srcdoc], meta[http-equiv], script:not([src='./live.js'])")].map(e => e.outerHTML)`), where)
	assert.Empty(t, eval[[]string](t, x, `[...document.querySelectorAll("*")].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith("on")).map(a => a.name)`), where)
	assert.Empty(t, eval[[]string](t, x, `[...document.querySelectorAll("a[href], form[action]")].map(e => e.href ?? e.action).filter(u => !u.startsWith(location.origin + "/"))`), where)
	w.clean(t, x)
}

func TestWhatWasCrawledIsHarmless(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), hostile(t)
	for _, path := range []string{"/", "/hosts", "/hosts?sort=waiting", "/urls", "/rules"} {
		x.goTo(t, w.page+path)
		w.harmless(t, x, path)
		eval[any](t, x, "refresh()") // what comes by it is as harmless
		w.harmless(t, x, path+" refreshed")
	}
	x.goTo(t, w.page+"/hosts")
	shown := x.text(t, "table")
	for _, a := range attacks {
		assert.Contains(t, shown, strings.TrimSpace(strings.Split(a, "\u2028")[0]), "it is shown as it is")
		for _, path := range []string{"/host?name=" + url.QueryEscape(a), "/url?url=" + url.QueryEscape("http://"+a)} {
			x.goTo(t, w.page+path)
			w.harmless(t, x, path)
		}
	}
	// Those that are refused say so in an answer of status 4xx, which the browser notes.
	all := strings.Join(attacks, " ")
	for _, path := range []string{"/?said=", "/hosts?scope=", "/hosts?match=", "/hosts?reason=", "/hosts?after=", "/urls?scope=", "/url?url=", "/urls?after="} {
		x.goTo(t, w.page+path+url.QueryEscape(all))
		for _, c := range x.complaints() {
			assert.Contains(t, c, "Failed to load resource: the server responded with a status of 4", path)
		}
		w.harmless(t, x, path)
	}
	x.goTo(t, w.page+"/#token="+url.QueryEscape(all))
	x.says(t, "main", "With its token this page") // it was refused
	for _, c := range x.complaints() {
		assert.Contains(t, c, "401")
	}
	w.harmless(t, x, "a token")
	// What an attack is called is paused like any other host.
	for _, a := range attacks[:4] {
		x.enter(t, w, "/host?name="+url.QueryEscape(a))
		x.submit(t, ".forms form:nth-of-type(1) button", "is paused")
		w.harmless(t, x, a)
		assert.Equal(t, scope.On, w.f.RuleOf(a).Paused, a)
	}
}
