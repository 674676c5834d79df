// This file tests what an action says of the hosts that it concerns.

package console_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
)

// Rules of narrower scopes count before what is set for a wider one, and the answer names them.
func TestNarrowerRulesAreNamed(t *testing.T) {
	w := newWorld(t, console.Options{})
	w.add(t, "http://a.example/1", "http://b.example/1", "http://c.other/1")
	c := console.Direct(w.c)
	do := func(a console.Action) string {
		t.Helper()
		r, err := c.Do(t.Context(), a)
		require.NoError(t, err)
		return r.Said
	}
	second := console.Duration(time.Second)
	do(console.Action{Do: "pause", Scope: "a.example"})
	do(console.Action{Do: "pause", Scope: "*"})
	assert.Equal(t, "* goes on: 3 hosts, 3 URLs now; by rules of their own these stay paused or blocked: a.example", do(console.Action{Do: "resume", Scope: "*"}))
	assert.Equal(t, "*.other goes on: 1 host, 1 URL now", do(console.Action{Do: "resume", Scope: "*.other"}), "a.example is not in it")
	do(console.Action{Do: "delay", Scope: "*.example", Delay: &console.Delay{Fixed: &second}})
	assert.Contains(t, do(console.Action{Do: "delay", Scope: "*", Delay: &console.Delay{Fixed: &second}}), "; by rules of their own these keep another delay: *.example")
	assert.NotContains(t, do(console.Action{Do: "delay", Scope: "*", None: true}), "rules of their own", "it takes one back")
	do(console.Action{Do: "pause", Scope: "*"})
	do(console.Action{Do: "resume", Scope: "b.example"})
	assert.Contains(t, do(console.Action{Do: "pause", Scope: "*"}), "; by rules of their own these go on: b.example")
}

// A host whose URLs are all done is not one that the crawl has never met.
func TestHostsThatAreDone(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	con, err := console.New(f, console.Options{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, con.Close())
		assert.NoError(t, f.Check())
		require.NoError(t, f.Close())
	}()
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/"})
	require.NoError(t, err)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	c := console.Direct(con)
	r, err := c.Do(t.Context(), console.Action{Do: "pause", Scope: l.Host})
	require.NoError(t, err)
	assert.Equal(t, l.Host+" is paused: all its URLs are done; the rule is kept for when one comes", r.Said)
	h, err := c.Host(t.Context(), l.Host)
	require.NoError(t, err)
	assert.Equal(t, "all its URLs are done", h.Why)
	h, err = c.Host(t.Context(), "nosuch.other")
	require.NoError(t, err)
	assert.Equal(t, "the crawl has no URL of it", h.Why)
}

// A host's key does not name its ports: what is known of a host is not asked of a URL that is made of its key.
func TestHostsThatAreDoneAtOtherPorts(t *testing.T) {
	met := func(_ context.Context, q console.EndsQuery) ([]console.End, error) {
		if q.Host == "a.example" || q.Host == "2001:db8::1" {
			return []console.End{{URL: "one"}}[:q.N], nil
		}
		return nil, nil
	}
	for name, c := range map[string]struct {
		at string
		o  console.Options
	}{
		"recorded":            {at: ":8080/x", o: console.Options{Newest: met}},
		"the first page only": {at: "/"}, // an IPv6 address has brackets there
	} {
		t.Run(name, func(t *testing.T) {
			f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0)})
			require.NoError(t, err)
			con, err := console.New(f, c.o)
			require.NoError(t, err)
			defer func() {
				require.NoError(t, con.Close())
				assert.NoError(t, f.Check())
				require.NoError(t, f.Close())
			}()
			_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example" + c.at}, frontier.Entry{URL: "http://[2001:db8::1]" + c.at, Crawl: 7})
			require.NoError(t, err)
			for range 2 {
				l, err := f.Next(t.Context())
				require.NoError(t, err)
				require.NoError(t, f.Done(l, frontier.Outcome{}))
			}
			cl := console.Direct(con)
			for _, host := range []string{"a.example", "A.example.", "2001:db8::1", "[2001:DB8::1]"} {
				for _, do := range []string{"pause", "block", "forget", "clear"} {
					r, err := cl.Do(t.Context(), console.Action{Do: do, Scope: host, For: map[string]console.Duration{"block": 1e9}[do]})
					require.NoError(t, err)
					assert.Contains(t, r.Said, ": all its URLs are done", do)
				}
				r, err := cl.Do(t.Context(), console.Action{Do: "delete", Scope: host})
				require.NoError(t, err)
				assert.Contains(t, r.Said, "deleted: all its URLs are done")
				h, err := cl.Host(t.Context(), host)
				require.NoError(t, err)
				assert.Equal(t, "all its URLs are done", h.Why)
				assert.Equal(t, 303, ask(con.Page(), "GET", "/url?url="+url.QueryEscape(host), "", "").Code, "the box finds it")
			}
			h, err := cl.Host(t.Context(), "b.example")
			require.NoError(t, err)
			assert.Equal(t, "the crawl has no URL of it", h.Why)
		})
	}
}

func TestABlockEndsByTheZeroTimeOnly(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, console.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w.add(t, "http://a.example/1", "http://a.example/2")
	c, past := console.Direct(w.c), time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err := c.Do(t.Context(), console.Action{Do: "block", Scope: "a.example", Until: &past})
	assert.ErrorContains(t, err, "until 2020-01-01T00:00:00Z has passed")
	r, err := c.Do(t.Context(), console.Action{Do: "block", Scope: "nosuch.example", Until: &time.Time{}})
	require.NoError(t, err)
	assert.NotContains(t, r.Said, "the rule is kept")
	_, err = c.Do(t.Context(), console.Action{Do: "limit", Scope: "a.example", Limits: console.Limits{Waiting: 5, Period: console.Duration(time.Hour)}})
	assert.ErrorContains(t, err, "want Served, Bytes or Errors beside it")
	_, err = c.Do(t.Context(), console.Action{Do: "pause", Scope: "a.example"})
	require.NoError(t, err)
	assert.Contains(t, log.String(), "hosts=1 urls=2 who=", "the log counts what is concerned")
}

// The pages that a recrawl has found and never fetched are counted from the frontier.
func TestPagesNeverFetched(t *testing.T) {
	w := newWorld(t, console.Options{Recrawl: func() *console.Recrawl { return &console.Recrawl{Pages: 1} }})
	w.add(t, "http://a.example/1", "http://a.example/2", "http://b.example/1")
	s, err := console.Direct(w.c).Status(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2, s.Recrawl.NewPages)
	assert.Zero(t, console.Unseen(5, s))
}
