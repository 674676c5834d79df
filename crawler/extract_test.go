package crawler

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/link"
)

// TestStyleSheetsAreFollowed crawls what pages need to be shown only when asked to.
func TestStyleSheetsAreFollowed(t *testing.T) {
	pages := []string{"http://a.example/"}
	needs := []string{"http://a.example/", "http://a.example/css/b.css", "http://a.example/css/i.png", "http://a.example/css/main.css"}
	for name, tt := range map[string]struct {
		kinds link.Kind
		want  []string
	}{
		"pages only":      {0, pages},
		"with their need": {link.Pages | link.Stylesheet | link.Style, needs},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWeb()
				w.always(seed, answer{status: 200, body: `<link rel=stylesheet href=css/main.css>`})
				w.always("http://a.example/css/main.css", answer{status: 200, kind: "text/css", body: `@import "b.css"; p { background: url(i.png) }`})
				w.always("http://a.example/css/b.css", answer{status: 200, kind: "text/css", body: `b { color: red }`})
				w.always("http://a.example/css/i.png", answer{status: 200, kind: "image/png", body: `url(no)`})
				crawl(t, w, frontier.Options{}, Options{Extractor: HTML{Options: link.Options{Kinds: tt.kinds}}}, seed)
				assert.Equal(t, tt.want, w.urls())
			})
		})
	}
}
