// These tests fetch what pages need to be shown.

package crawler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

func TestRequisites(t *testing.T) {
	css := func(body string) answer { return answer{status: 200, kind: "text/css", body: body} }
	for _, on := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			w.always("http://a.example/", answer{status: 200, body: `<link rel=stylesheet href=http://cdn.example/a.css><img src=/i.png srcset="http://img.example/2x.png 2x">` +
				`<script src=http://cdn.example/s.js></script><a href=/deep>x</a><a href=http://b.example/>x</a><link rel=icon href=/icon.png><link rel=manifest href=/app.json>` +
				`<video src=http://cdn.example/moved.mp4></video><img src=http://no.example/secret.png><img src=/page><iframe src=http://ads.example/frame></iframe><iframe src=/own-frame></iframe><object data=http://b.example/o.pdf></object>`})
			w.always("http://ads.example/frame", answer{status: 200, body: `<img src=/ad.png><a href=/buy>x</a>`})
			w.always("http://a.example/own-frame", page())
			w.always("http://a.example/deep", answer{status: 200, body: `<img src=/deep.png><a href=/deeper>x</a>`})
			w.always("http://a.example/page", answer{status: 200, body: `<a href=/in-page>not an image</a>`})
			w.always("http://a.example/in-page", page())
			w.always("http://cdn.example/a.css", css(`@import "b.css"; body { background: url(http://img.example/bg.png) }`))
			w.always("http://cdn.example/b.css", css(`@import "c.css"; @font-face { src: url(f.woff2) }`))
			w.always("http://cdn.example/c.css", css(`@import "too-far.css"`))
			w.always("http://cdn.example/moved.mp4", answer{status: 302, location: "http://films.example/1.mp4"})
			w.always("http://no.example/robots.txt", text("User-agent: *\nDisallow: /"))
			for _, u := range []string{"http://a.example/i.png", "http://a.example/deep.png", "http://img.example/2x.png", "http://img.example/bg.png", "http://cdn.example/s.js", "http://cdn.example/f.woff2", "http://films.example/1.mp4", "http://a.example/icon.png", "http://a.example/app.json", "http://a.example/favicon.ico", "http://ads.example/ad.png", "http://b.example/o.pdf"} {
				w.always(u, answer{status: 200, kind: "application/octet-stream", body: "x"})
			}
			ways := map[string]string{}
			p := crawl(t, w, frontier.Options{}, Options{
				Workers: 1, Requisites: on, Via: true, MaxPagesPerHost: 5, Scope: Scope{Hosts: []string{"a.example"}, MaxDepth: 2},
				OnPage: func(_ context.Context, p *Page) error {
					via, hops := p.Via()
					ways[strings.TrimPrefix(p.URL, "http://")] = hops + " " + strings.TrimPrefix(via, "http://")
					return nil
				},
			}, "http://a.example/")
			if !on {
				assert.Equal(t, []string{"http://a.example/", "http://a.example/deep", "http://a.example/deeper", "http://a.example/own-frame"}, w.urls())
				assert.Zero(t, p.Requisites)
				return
			}
			assert.Equal(t, map[string]string{
				"a.example/": " ", "a.example/deep": "L a.example/", "a.example/deeper": "LL a.example/deep", "a.example/i.png": "E a.example/", "a.example/deep.png": "LE a.example/deep",
				"a.example/own-frame": "L a.example/", "a.example/icon.png": "E a.example/", "a.example/app.json": "E a.example/", "a.example/favicon.ico": "LE a.example/deep", "b.example/o.pdf": "E a.example/",
				"ads.example/frame": "E a.example/", "ads.example/ad.png": "EE ads.example/frame",
				"a.example/page": "E a.example/", "a.example/in-page": "LL a.example/page", "img.example/2x.png": "E a.example/", "img.example/bg.png": "EE cdn.example/a.css",
				"cdn.example/a.css": "E a.example/", "cdn.example/b.css": "EE cdn.example/a.css", "cdn.example/c.css": "EEE cdn.example/b.css", "cdn.example/f.woff2": "EEE cdn.example/b.css",
				"cdn.example/s.js": "E a.example/", "cdn.example/moved.mp4": "E a.example/", "films.example/1.mp4": "ER cdn.example/moved.mp4",
			}, ways)
			assert.False(t, slices.Contains(w.urls(), "http://no.example/secret.png"), "robots.txt holds for all")
			assert.EqualValues(t, 4, p.Pages)
			assert.EqualValues(t, 17, p.Requisites)
			w.checkPolite(t, fixedOwed)
		})
	}
}
