//go:build unix

// This file judges the page as those meet it who do not see it well, or not at all.

package browser

import (
	_ "embed"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

//go:embed testdata/axe/axe.min.js
var axe string

// finding is what axe complains of.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// cutText lists what is not shown whole: text beyond the right edge of the screen, or of a box
// that shows no more.
const cutText = `[...document.querySelectorAll("main *, .hero *")].filter(e => {
	const s = getComputedStyle(e), r = e.getBoundingClientRect();
	if (!e.checkVisibility() || s.clipPath !== "none" || e.closest(".hidden, thead, svg, select") || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) return false;
	return r.right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && s.display !== "inline";
}).map(e => e.outerHTML)`

// Every page works with a screen reader, has distinguishable colours, and needs no sideways scrolling on
// a phone.
func TestAccessibility(t *testing.T) {
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	x.until(t, "something failed", func() bool { return w.f.Stats().Waiting > 100 && w.f.Stats().Done[frontier.Failed] > 0 })
	require.NoError(t, w.f.UpdateRule(scope.Domain("elsewhere.example"), func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1000, Period: time.Hour} }))
	looks := []struct {
		name, scheme  string
		width, height int
		rules         string
	}{
		{"light", "light", 1280, 900, "{}"}, {"phone", "light", 360, 740, "{}"},
		{"dark", "dark", 1280, 900, "{runOnly: ['color-contrast']}"}, // what colours have to do with
	}
	for _, look := range looks {
		t.Run(look.name, func(t *testing.T) {
			x.scheme(t, look.scheme)
			x.size(t, look.width, look.height)
			for _, path := range []string{"/", "/hosts", "/host?name=site-1.example", "/urls", "/url?url=http%3A%2F%2Fsite-0.example%2F0", "/rules", "/enter", "/hosts?reason=nonsense"} {
				x.goTo(t, w.page+path)
				eval[any](t, x, "Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
				eval[any](t, x, axe+";0")
				for _, f := range eval[[]finding](t, x, "axe.run("+look.rules+").then(r => r.violations)") {
					assert.NotContains(t, []string{"serious", "critical"}, f.Impact, "%s: %+v", path, f)
				}
				assert.LessOrEqual(t, eval[int](t, x, "document.documentElement.scrollWidth"), look.width, "%s is wider than the screen", path)
				assert.Empty(t, eval[[]string](t, x, cutText), "%s: text that is cut, or out of sight", path)
			}
		})
	}
}
