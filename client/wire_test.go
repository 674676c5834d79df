package client_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/inspect"
)

// All that an Entry says comes to the server, and back with the lease.
func TestEntryTravels(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		e := frontier.Entry{URL: "no URL: \x01", Host: "proxy.example", Depth: 3, Weight: 0.5, Meta: []byte("text")}
		done := frontier.Entry{URL: "http://a.example/done", Finished: true}
		later := frontier.Entry{URL: "http://a.example/later", NotBefore: time.Now().Add(time.Hour)}
		n, err := c.Add(t.Context(), e, done, later)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		for _, x := range []struct {
			e     frontier.Entry
			state inspect.URLState
		}{{done, inspect.URLFinished}, {later, inspect.URLScheduled}} {
			s, err := inspect.New(w.f).Status(t.Context(), x.e)
			require.NoError(t, err)
			assert.Equal(t, x.state, s.State)
		}
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, e, l.Entry)
		assert.Equal(t, e.Host, l.Host)
		e.Force = true // of a URL that is leased
		n, err = c.Add(t.Context(), e)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		later.Hint, later.NotBefore = true, time.Now().Add(time.Second)
		_, err = c.Add(t.Context(), later)
		require.NoError(t, err)
		require.NoError(t, c.Done(l, frontier.Outcome{}))
		began := time.Now()
		for range 2 { // the forced URL, and that of the hint
			l, err := c.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.Done(l, frontier.Outcome{}))
		}
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// What has no form on the wire is refused alone, and not changed on its way.
func TestEntryWithoutForm(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		all := []frontier.Entry{
			{URL: "http://a.example/1"}, {URL: "http://a.example/\xff"}, {URL: "u", Host: "\xff.example"}, {URL: "http://a.example/w", Weight: math.NaN()},
			{URL: "http://a.example/t", NotBefore: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)}, {URL: "http://a.example/c", Crawl: 1}, {URL: "http://a.example/2"},
		}
		n, err := c.Add(t.Context(), all...)
		assert.Equal(t, 2, n)
		assert.Len(t, frontier.EntryErrors(err), len(all)-2)
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		all[0].URL, all[6].URL = "http://b.example/1", "http://b.example/2"
		refused, err := c.DoneContext(t.Context(), l, frontier.Outcome{Add: all})
		require.NoError(t, err)
		var indexes []int
		for _, e := range refused {
			indexes = append(indexes, e.Index)
		}
		assert.Equal(t, []int{1, 2, 3, 4, 5}, indexes)
		s := w.f.Stats()
		assert.EqualValues(t, []int64{3, 0}, []int64{s.Waiting, s.Leased})
	})
}

// Any Meta comes back as it was, be it like what the wire has for others.
func TestMetaTravels(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		for i, meta := range []string{`{}`, `{"a":null}`, `{"a":[]}`, `{"bytes":["12 kB"]}`, `{"bytes":["aGk="]}`, `{"bytes":null}`} {
			_, err := c.Add(t.Context(), frontier.Entry{URL: "http://a.example/" + string(rune('a'+i)), Meta: []byte(meta)})
			require.NoError(t, err, meta)
			l, err := c.Next(t.Context())
			require.NoError(t, err, meta)
			assert.Equal(t, meta, string(l.Entry.Meta))
			require.NoError(t, c.Done(l, frontier.Outcome{}))
		}
	})
}

// Another program may use the key of a Client's bytes.
func TestForeignMeta(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		const meta = `{"bytes":["12 kB"]}`
		r := httptest.NewRequest(http.MethodPost, "http://frontier.invalid/v1/urls", strings.NewReader(`{"url":"http://a.example/","meta":`+meta+`}`))
		serverOf(t, w.f).ServeHTTP(httptest.NewRecorder(), r)
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, meta, string(l.Entry.Meta))
		require.NoError(t, c.Done(l, frontier.Outcome{}))
	})
}
