// This file tests what is made of requests.

package console_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// A Watch sees each request.
func TestAWatchSeesRequests(t *testing.T) {
	w := newWorld(t, console.Options{})
	failed := func(c fetch.Class, why string) error {
		return &fetch.Error{URL: "http://x.example/", Class: c, Err: errors.New(why)}
	}
	answers := map[string]struct {
		status int
		err    error
	}{
		"http://good.example/": {200, nil}, "http://gone.example/": {404, nil}, "http://me:hunter2@ill.example/": {503, nil}, "http://lost.example/": {0, failed(fetch.DNS, "no such host")},
		"http://film.example/": {200, failed(fetch.Unwanted, "a film")},
	}
	for u, want := range answers {
		now := time.Now()
		w.w.Request(u, &fetch.Result{Status: want.status, Bytes: 100, Started: now.Add(-40 * time.Millisecond), Ended: now}, want.err)
	}

	c := console.Direct(w.c)
	s, err := c.Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []int64{5, 2, 500}, []int64{s.Traffic.Requests, s.Traffic.Failed, s.Traffic.Bytes})
	assert.InDelta(t, .04, s.Traffic.Median, .001)
	assert.Equal(t, console.Answer{Status: 200, Count: 2}, s.Traffic.Answers[0])
	said := map[string]string{}
	for _, p := range s.Problems {
		said[p.Host] = p.What + " " + p.Error
	}
	assert.Equal(t, map[string]string{"ill.example": "unavailable ", "lost.example": "name not found no such host"}, said)
	for _, x := range s.Traffic.Last {
		assert.NotContains(t, x.URL, "hunter2")
	}

	// What became of a URL can be asked, also once the frontier only knows it.
	w.add(t, "http://good.example/")
	l, err := w.f.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.f.Done(l, frontier.Outcome{}))
	u, err := c.URL(t.Context(), 0, "http://good.example/")
	require.NoError(t, err)
	require.Len(t, u.Ends, 1)
	assert.Equal(t, []any{"answered", 200}, []any{u.Ends[0].What, u.Ends[0].Status})
	assert.Contains(t, u.Why, "with status 200")
	for _, p := range []string{"/url?url=http://good.example/", "/host?name=ill.example"} {
		assert.Contains(t, ask(w.c.Page(), "GET", p, "", "").Body.String(), "</html>", p)
	}

	on := newWorld(t, console.Options{Ends: func(_ context.Context, url string) ([]console.End, error) {
		return []console.End{{What: "refused", Reason: url}}, nil
	}})
	u, err = console.Direct(on.c).URL(t.Context(), 0, "http://a.example/")
	require.NoError(t, err)
	assert.Equal(t, []console.End{{What: "refused", Reason: "http://a.example/"}}, u.Ends)

	on = newWorld(t, console.Options{Ends: func(_ context.Context, url string) ([]console.End, error) {
		return []console.End{{At: time.Now(), What: "robots", Status: 200, Reason: "unreadable " + url}}, nil
	}})
	_, err = on.f.Add(t.Context(), frontier.Entry{URL: "http://a.example:81/x"})
	require.NoError(t, err)
	assert.Contains(t, ask(on.c.Page(), "GET", "/url?url=http://a.example:81/x", "", "").Body.String(), "status 200, unreadable http://a.example:81/robots.txt")
	on = newWorld(t, console.Options{Ends: func(context.Context, string) ([]console.End, error) {
		return []console.End{{At: time.Now(), What: "robots", Status: 200}}, nil
	}, Newest: func(_ context.Context, q console.EndsQuery) ([]console.End, error) {
		if q.What == "robots" && q.Host != "b.example" {
			return []console.End{{URL: "http://" + q.Host + ":81/robots.txt", At: time.Now(), What: "robots", Status: 503, Reason: "busy"}}, nil
		}
		return nil, nil
	}})
	_, err = on.f.Add(t.Context(), frontier.Entry{URL: "http://a.example:81/x"}, frontier.Entry{URL: "http://b.example/x"},
		frontier.Entry{URL: "http://late.example/x", NotBefore: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	assert.NotContains(t, ask(on.c.Page(), "GET", "/url?url=http://a.example:81/x", "", "").Body.String(), "was not read", "it was")
	assert.Contains(t, ask(on.c.Page(), "GET", "/host?name=a.example", "", "").Body.String(), "http://a.example:81/robots.txt was not read")
	assert.Contains(t, ask(on.c.Page(), "GET", "/host?name=late.example", "", "").Body.String(), "http://late.example:81/robots.txt was not read")
	assert.NotContains(t, ask(on.c.Page(), "GET", "/host?name=b.example", "", "").Body.String(), "was not read")
	on = newWorld(t, console.Options{Normalize: func(u string) (string, error) { return u, nil }})
	_, err = on.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/%", Host: "a.example"})
	require.NoError(t, err)
	page := ask(on.c.Page(), "GET", "/url?url=http://a.example/%25", "", "")
	assert.Contains(t, page.Body.String(), "waits", "what net/url does not read")
}

// The page lists what became of URLs, if there is a record of that, by outcome, host and a part of the URL.
func TestThePageListsEnds(t *testing.T) {
	w := newWorld(t, console.Options{})
	assert.Equal(t, 404, ask(w.c.Page(), "GET", "/ends", "", "").Code)
	assert.NotContains(t, ask(w.c.Page(), "GET", "/", "", "").Body.String(), "ends\"")
	var asked console.EndsQuery
	w = newWorld(t, console.Options{Newest: func(_ context.Context, q console.EndsQuery) ([]console.End, error) {
		asked = q
		return []console.End{{URL: "http://a.example/x", What: "gone", Status: 404, At: time.Now().Add(-time.Minute)}}, nil
	}})
	page := ask(w.c.Page(), "GET", "/ends?what=given+up&host=A.Example&match=x", "", "").Body.String()
	assert.Equal(t, console.EndsQuery{What: "given up", Host: "a.example", Match: "x", N: 200}, asked)
	for _, s := range []string{`<a href="url?url=http%3a%2f%2fa.example%2fx">`, "<option selected>given up</option>", "1 min ago", `aria-current="page">Ends</a>`} {
		assert.Contains(t, page, s)
	}
	assert.Equal(t, 400, ask(w.c.Page(), "GET", "/ends?what=nope", "", "").Code)
	assert.Equal(t, 400, ask(w.c.Page(), "GET", "/ends?host=a.example:80", "", "").Code, "all ports are one host")
}

// The box asks about a host as well as about a URL, and what is neither is explained.
func TestAskAboutAURLOrHost(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://shop.example/1")
	h := w.c.Page()
	rec := ask(h, "GET", "/url?url=Shop.example", "", "")
	assert.Equal(t, 303, rec.Code)
	assert.Equal(t, "./host?name=shop.example", rec.Header().Get("Location"))
	rec = ask(h, "GET", "/url?url=shop+one", "", "")
	assert.Equal(t, 400, rec.Code)
	assert.Contains(t, rec.Body.String(), "want a whole URL, as in https://shop.example/page, or a host")
	assert.NotContains(t, rec.Body.String(), "console:")
	rec = ask(h, "GET", "/nowhere", "", "")
	assert.Equal(t, 404, rec.Code)
	assert.Contains(t, rec.Body.String(), `<a href="./">To the overview</a>`)
	assert.Equal(t, 200, ask(h, "GET", "/favicon.ico", "", "").Code)
	assert.Contains(t, ask(h, "GET", "/hosts?scope=*.%5Bbad", "", "").Body.String(), `role="alert">&#34;[bad&#34; is not a host key`)
	rec = post(h, "/do", "do=delay&scope=shop.example&value=30s&back=/rules&token="+w.c.Token())
	assert.Equal(t, 303, rec.Code)
	assert.Equal(t, 30*time.Second, w.f.RuleOf("shop.example").Delay.Max())
}
