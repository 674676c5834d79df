// This file tests what requests mean by the names of crawls: of those that come while a request waits, and
// of those that a page's links do not name.

package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/inspect"
)

func deleteCrawl(t *testing.T, s *Service, name string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodDelete, "http://localhost/v1/crawls/"+name+"?forget=true", nil))
	assert.Equal(t, http.StatusOK, w.Code, w.Body.String())
}

func TestAPollSeesACrawlThatComes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Service, post func(path, body string) map[string]any) {
		leases := func(body string) (n int, took time.Duration, m map[string]any) {
			began := time.Now()
			m = post("/v1/leases", body)
			return len(m["leases"].([]any)), time.Since(began), m
		}
		in := func(d time.Duration, do func()) {
			time.AfterFunc(d, do)
		}
		in(time.Second, func() { post("/v1/urls", `[{"url":"http://a.example/","crawl":"new"}]`) })
		n, took, _ := leases(`{"crawls":["new"],"wait_s":20}`)
		assert.Equal(t, []any{1, time.Second}, []any{n, took}, "the crawl did not exist")

		post("/v1/urls", `[{"url":"http://done.example/","crawl":"old","finished":true}]`)
		in(time.Second, func() { post("/v1/urls", `[{"url":"http://b.example/","crawl":" new2 "}]`) })
		n, took, _ = leases(`{"crawls":["old","new2"],"wait_s":20}`)
		assert.Equal(t, []any{1, time.Second}, []any{n, took}, "another one existed")

		in(time.Second, func() { deleteCrawl(t, s, "old") })
		in(2*time.Second, func() { post("/v1/urls", `[{"url":"http://other.example/","crawl":"other"}]`) })
		in(3*time.Second, func() { post("/v1/urls", `[{"url":"http://c.example/","crawl":"old"}]`) })
		n, took, _ = leases(`{"crawls":["old"],"wait_s":20}`)
		assert.Equal(t, []any{1, 3 * time.Second}, []any{n, took}, "it was forgotten, and came anew")

		n, took, m := leases(`{"crawls":["none"],"wait_s":5}`)
		assert.Equal(t, []any{0, 5 * time.Second, true}, []any{n, took, m["exhausted"]})
		n, took, m = leases(`{"crawls":["none"]}`)
		assert.Equal(t, []any{0, time.Duration(0), true}, []any{n, took, m["exhausted"]})
		assert.Empty(t, s.names.waits)
	})
}

// What a link does not say is as it is with its page.
func TestLinksInheritFromTheirPage(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"news","depth":2}`)
	id := x.lease()["lease"].(string)
	x.ok("POST", "/v1/leases/"+id+"/done", `{"add":[{"url":"http://b.example/1"},{"url":"http://b.example/2","crawl":" ","depth":null},
		{"url":"http://b.example/3","crawl":"DEFAULT","depth":0},{"url":"http://b.example/4","crawl":"sport"},{"url":"http://b.example/5","depth":1}]}`)
	type at struct{ crawl, depth any }
	got := map[any]at{}
	for range 5 {
		l := x.lease()
		got[l["url"]] = at{l["crawl"], l["depth"]}
		x.ok("POST", "/v1/leases/"+l["lease"].(string)+"/done", "")
	}
	const u = "http://b.example/"
	assert.Equal(t, map[any]at{u + "1": {"news", 3.0}, u + "2": {"news", 3.0}, u + "3": {"DEFAULT", nil}, u + "4": {"sport", 3.0}, u + "5": {"news", 1.0}}, got)
}

// A page that is under way when its crawl is forgotten makes it not anew, and leaves nothing in another.
func TestLinksOfAForgottenCrawl(t *testing.T) {
	for _, name := range []string{"customer", "DEFAULT"} {
		for _, anew := range []bool{false, true} {
			x := serve(t, Options{})
			x.ok("POST", "/v1/urls", `{"url":"http://a.example/","crawl":"`+name+`"}`)
			id := x.lease()["lease"].(string)
			x.ok("DELETE", "/v1/crawls/"+name+"?forget=true", "")
			if anew {
				x.ok("POST", "/v1/urls", `{"url":"http://c.example/","crawl":"`+name+`"}`)
			}
			m := x.ok("POST", "/v1/leases/"+id+"/done", `{"add":[{"url":"http://b.example/1"},{"url":"http://b.example/2","crawl":"`+name+`"},{"url":"http://b.example/3","crawl":"other"}]}`)
			var status []any
			for _, v := range m["add"].([]any) {
				status = append(status, v.(map[string]any)["status"])
			}
			require.Equal(t, []any{"refused", "refused", "new"}, status, name)
			want := int64(1)
			if anew {
				want = 2
			}
			assert.Equal(t, want, x.s.f.Stats().Waiting)
			number, known := x.s.Crawl(name)
			assert.Equal(t, anew || name == DefaultCrawl, known)
			if !anew {
				c, _ := x.s.views.Crawl(number)
				assert.Equal(t, inspect.Crawl{}.Waiting, c.Waiting)
			}
		}
	}
}
