package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
)

// lineBound is what a Client takes for the server's bound of a line, without its end.
const lineBound = 1 << 20

// ofLine is the URL of an entry whose line has n bytes.
func ofLine(n int) string {
	const before, after = `{"url":"http://a.example/`, `"}`
	return "http://a.example/" + strings.Repeat("x", n-len(before+after))
}

// links are more outlinks than a line has room for.
func links() (all []frontier.Entry) {
	for i := range 12000 {
		all = append(all, frontier.Entry{URL: fmt.Sprintf("http://b.example/%080d", i)})
	}
	return all
}

// problem writes one as the server does.
func problem(to io.Writer, kind string, status int) {
	fmt.Fprintf(to, `{"type":"https://frontier.invalid/problems/%s","title":"it is","status":%d,"detail":"it is so"}`+"\n", kind, status)
}

// A Client's bound of a line is the server's.
func TestBoundOfLines(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		server := serverOf(t, w.f)
		for n, status := range map[int]int{lineBound: http.StatusBadRequest, lineBound + 1: http.StatusRequestEntityTooLarge} {
			a := httptest.NewRecorder()
			server.ServeHTTP(a, httptest.NewRequest(http.MethodPost, "http://frontier.invalid/v1/urls", strings.NewReader(`{"url":"`+ofLine(n)+"\"}\n")))
			assert.Equal(t, status, a.Code, a.Body)
		}
		for n, whose := range map[int]string{lineBound: "URL has", lineBound + 1: "in JSON"} {
			_, err := c.Add(t.Context(), frontier.Entry{URL: ofLine(n)})
			bad := frontier.EntryErrors(err)
			require.Len(t, bad, 1)
			assert.ErrorContains(t, bad[0], whose)
			assert.Less(t, len(bad[0].URL), 300)
		}
	})
}

// An entry whose line is too long is refused alone, wherever it is.
func TestLongEntries(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		long := frontier.Entry{URL: ofLine(2 * lineBound)}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		n, err := c.Add(ctx, long, frontier.Entry{URL: "http://a.example/1"}, long, frontier.Entry{URL: "http://a.example/2"}, long)
		assert.Equal(t, 2, n)
		var indexes []int
		for _, e := range frontier.EntryErrors(err) {
			indexes = append(indexes, e.Index)
		}
		assert.Equal(t, []int{0, 2, 4}, indexes)
		assert.EqualValues(t, 2, w.f.Stats().Waiting)
	})
}

// The outlinks of an end whose line is too long are stored before its lease ends.
func TestManyOutlinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), LeaseTime: time.Minute})
		c := w.client(t, client.Options{Crawl: "news"})
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		add := links()
		add[7].URL = "no URL"
		add[8].URL = ofLine(2 * lineBound)
		w.instead = func(_ http.ResponseWriter, r *http.Request) bool {
			if s := w.f.Stats(); strings.HasPrefix(r.URL.Path, "/v1/done") {
				assert.EqualValues(t, []int64{int64(len(add) - 2), 1}, []int64{s.Waiting, s.Leased})
			}
			return false
		}
		refused, err := c.DoneContext(t.Context(), l, frontier.Outcome{Result: frontier.Gone, Add: add})
		require.NoError(t, err)
		if assert.Len(t, refused, 2) {
			assert.Equal(t, []int{7, 8}, []int{refused[0].Index, refused[1].Index})
		}
		s := w.f.Stats()
		assert.EqualValues(t, []int64{int64(len(add) - 2), 0, 1}, []int64{s.Waiting, s.Leased, s.Done[frontier.Gone]})
		b, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, add[0].URL, b.Entry.URL, "in the same crawl")
	})
}

// The lease of such an end ends if the server is full, and stays out if it is away.
func TestManyOutlinksNotTaken(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/", "http://c.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		m, err := c.Next(t.Context())
		require.NoError(t, err)
		w.instead = func(to http.ResponseWriter, r *http.Request) bool {
			full := r.URL.Path == "/v1/urls"
			if full {
				to.WriteHeader(http.StatusInsufficientStorage)
				problem(to, "full", http.StatusInsufficientStorage)
			}
			return full
		}
		refused, err := c.DoneContext(t.Context(), l, frontier.Outcome{Add: links()})
		require.NoError(t, err)
		require.Len(t, refused, len(links()))
		assert.ErrorIs(t, refused[0], frontier.ErrFull)
		assert.EqualValues(t, 1, w.f.Stats().Leased)
		w.down.Store(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = c.DoneContext(ctx, m, frontier.Outcome{Add: links()})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, c.Done(m, frontier.Outcome{Add: links()}), frontier.ErrNotLeased)
		assert.False(t, time.Now().Before(m.Deadline))
	})
}

// An end whose line is too long does no harm to those that are sent together.
func TestLongEndAmongOthers(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		var ends sync.WaitGroup
		done := func(host string, o frontier.Outcome, wants string) {
			added(t, c, "http://"+host+".example/")
			l, err := c.Next(t.Context())
			require.NoError(t, err)
			ends.Go(func() {
				if err := c.Done(l, o); wants != "" {
					assert.ErrorContains(t, err, wants)
				} else {
					assert.NoError(t, err, host)
				}
			})
		}
		answer := make(chan bool)
		w.instead = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/v1/done" {
				<-answer
			}
			return false
		}
		done("c", frontier.Outcome{}, "") // the requests under way
		synctest.Wait()
		done("d", frontier.Outcome{}, "")
		synctest.Wait()
		done("e", frontier.Outcome{}, "")
		done("f", frontier.Outcome{Add: links()}, "")
		done("g", frontier.Outcome{Meta: make([]byte, lineBound)}, "in JSON")
		done("h", frontier.Outcome{}, "")
		synctest.Wait()
		close(answer)
		ends.Wait()
		assert.EqualValues(t, 5, w.f.Stats().Done[frontier.Visited])
	})
}

// A problem in the last line of a response answers all calls without an answer.
func TestLastLine(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var says func(to io.Writer)
		w.instead = func(to http.ResponseWriter, r *http.Request) bool {
			if says == nil || r.URL.Path != "/v1/urls" && r.URL.Path != "/v1/done" {
				return false
			}
			says(to)
			says = nil
			return true
		}
		says = func(to io.Writer) {
			fmt.Fprintln(to, `{"status":"new"}`)
			problem(to, "full", http.StatusInsufficientStorage)
		}
		n, err := c.Add(ctx, frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"})
		assert.ErrorIs(t, err, frontier.ErrFull)
		assert.Equal(t, 1, n)
		says = func(to io.Writer) { problem(to, "busy", http.StatusServiceUnavailable) }
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		says = func(to io.Writer) { problem(to, "no-space", http.StatusInsufficientStorage) }
		var p *client.ProblemError
		require.ErrorAs(t, c.Done(l, frontier.Outcome{}), &p)
		assert.Equal(t, "no-space", p.Type)
		says = func(to io.Writer) {
			fmt.Fprintf(to, `{"lease":%q,"error":`, l.ID())
			problem(to, "busy", http.StatusServiceUnavailable)
			fmt.Fprintln(to, "}")
			says = nil
		}
		require.NoError(t, c.Done(l, frontier.Outcome{}), "the answer to one lease")
		added(t, c, "http://c.example/")
		l, err = c.Next(t.Context())
		require.NoError(t, err)
		says = func(to io.Writer) { problem(to, "busy", http.StatusServiceUnavailable) }
		require.NoError(t, c.Done(l, frontier.Outcome{}))
		assert.EqualValues(t, 2, w.f.Stats().Done[frontier.Visited])
	})
}
