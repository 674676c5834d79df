package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/serve"
)

// handlers answers requests by their hosts, without a network.
type handlers map[string]http.Handler

func (h handlers) RoundTrip(r *http.Request) (*http.Response, error) {
	to := h[r.URL.Host]
	if to == nil {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	return w.Result(), nil
}

// commanded returns a client for the commands of three parts, their frontiers, and their Consoles by address.
func commanded(t *testing.T) (*console.Client, *Router, map[string]*frontier.Frontier, handlers) {
	parts, all, at := map[string][]string{}, map[string]*frontier.Frontier{}, handlers{}
	for _, name := range []string{"a", "b", "c"} {
		f, err := frontier.Open(t.Context(), serve.Frontier(frontier.Options{}))
		require.NoError(t, err)
		c, err := console.New(f, console.Options{Changed: func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error) {
			return changefeed.Add(ctx, f, list, changefeed.Options{At: at})
		}})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, c.Close())
			require.NoError(t, f.Check())
			require.NoError(t, f.Close())
		})
		parts[name], all[name], at[name+".example"] = []string{"http://" + name + ".example"}, f, c.Local()
	}
	r, err := New(Options{Parts: parts, Transport: at, Consoles: at})
	require.NoError(t, err)
	front := httptest.NewServer(r.Commands())
	client := console.Remote(front.URL, "")
	t.Cleanup(func() {
		client.Close()
		require.NoError(t, r.Close())
		front.Close()
		require.Zero(t, r.used.Load())
	})
	return client, r, all, at
}

// What the parts refuse, they refuse as a server does.
func TestNoCheckpoints(t *testing.T) {
	c, _, _, _ := commanded(t)
	_, err := c.Do(t.Context(), console.Action{Do: "checkpoint"})
	require.ErrorContains(t, err, "it makes no checkpoints")
	_, err = c.Do(t.Context(), console.Action{Do: "stop"})
	require.ErrorContains(t, err, "stop each part by itself")
}

// Each URL of a list goes to the part of its host. The answer is that of a single server, with the lines of the list.
func TestChangesGoToTheirParts(t *testing.T) {
	c, r, all, at := commanded(t)
	add := func(from, n int) string {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, "http://h%d.example/\n", from+i)
		}
		return list.String()
	}
	x, err := c.Changed(t.Context(), strings.NewReader(add(0, 30)), time.Time{})
	require.NoError(t, err)
	require.Equal(t, changefeed.Result{URLs: 30, New: 30}, x)
	for i := range 30 {
		u := fmt.Sprintf("http://h%d.example/", i)
		for name, f := range all {
			s, err := inspect.New(f).Status(t.Context(), frontier.Entry{URL: u})
			require.NoError(t, err)
			require.Equal(t, name == r.Home(fmt.Sprintf("h%d.example", i)), s.State != inspect.URLUnknown, "%s at %s", u, name)
		}
	}
	list := "not a url\n" + add(25, 10) + "http://h1.example/" + strings.Repeat("x", 1<<13) + "\nhttp://h2.example/\n"
	x, err = c.Changed(t.Context(), strings.NewReader(list), time.Now().Add(-time.Hour))
	require.NoError(t, err)
	require.EqualValues(t, 13, x.URLs)
	require.EqualValues(t, 5, x.New)
	require.EqualValues(t, 6, x.Known)
	require.EqualValues(t, 2, x.Wrong)
	require.Len(t, x.Faults, 2)
	require.Equal(t, 1, x.Faults[0].Line)
	require.Equal(t, 12, x.Faults[1].Line)

	_, err = c.Changed(t.Context(), strings.NewReader(add(0, 1)), time.Now().Add(time.Hour))
	require.ErrorContains(t, err, "want a time that has passed")
	_, err = c.Changed(t.Context(), strings.NewReader(`{"host":`), time.Time{})
	require.ErrorContains(t, err, "line 1")

	delete(at, "b.example")
	_, err = c.Changed(t.Context(), strings.NewReader(add(0, 30)), time.Time{})
	require.ErrorContains(t, err, "done at a, c, and not at b (")
	require.ErrorContains(t, err, "from line 1 on")
}
