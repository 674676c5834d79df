// This file tests entries that name the host to which politeness is owed.

package control

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// A URL keeps its Host through retries, later visits, reopening, export and import, and it need not
// parse.
func TestAURLKeepsTheHostThatItWasAddedWith(t *testing.T) {
	const odd = "\x00 no URL \xff"
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		ctx := t.Context()
		_, err := w.F.Add(ctx,
			frontier.Entry{URL: odd, Host: "key.example", Meta: []byte("m")},
			frontier.Entry{URL: "http://other.example/", Host: "key.example"},
			frontier.Entry{URL: "http://other.example/plain"},
		)
		require.NoError(t, err)
		status := func() inspect.Status {
			s, err := inspect.New(w.F).Status(ctx, frontier.Entry{URL: odd, Host: "Key.Example."})
			require.NoError(t, err)
			require.Equal(t, "key.example", s.Host)
			return s
		}
		require.Equal(t, inspect.URLWaiting, status().State)
		require.Equal(t, "key.example", status().Entry.Host)
		_, err = inspect.New(w.F).Status(ctx, frontier.Entry{URL: odd})
		require.Error(t, err)

		first, second := w.Next(), w.Next()
		if first.Host != "key.example" {
			first, second = second, first
		}
		require.Equal(t, odd, first.Entry.URL)
		require.Equal(t, "key.example", first.Host)
		require.Equal(t, "key.example", first.Entry.Host)
		require.Equal(t, "other.example", second.Host)
		require.Empty(t, second.Entry.Host)
		_, _, err = w.TryNext()
		require.ErrorIs(t, err, frontier.ErrNotDue, "both URLs of the key are one host's")
		require.NoError(t, w.F.Done(second, frontier.Outcome{}))
		require.NoError(t, w.F.Done(first, frontier.Outcome{Next: w.Clock.Now().Add(time.Hour)}))
		require.Equal(t, inspect.URLScheduled, status().State)

		check := func(w *harness.World) {
			text := w.Export()
			require.Len(t, harness.LinesOf(text, "url"), 1)
			require.Contains(t, text, `","host":"key.example","`)
			require.Contains(t, text, `{"url64":"ACBubyBVUkwg/w==","host":"key.example"`)
			for _, other := range []*harness.World{harness.NewWorld(t, frontier.Options{}), harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})} {
				other.Imported(text)
				require.Equal(t, harness.LinesOf(text, "url"), harness.LinesOf(other.Export(), "url"))
				s, err := inspect.New(other.F).Status(ctx, frontier.Entry{URL: odd, Host: "key.example"})
				require.NoError(t, err)
				require.Equal(t, inspect.URLScheduled, s.State)
				require.Equal(t, "key.example", s.Entry.Host)
			}
		}
		check(w)
		if w.Machine != nil {
			w.Reopen()
			check(w)
			w = w.Killed()
			check(w)
		}

		n, err := w.F.Add(ctx, frontier.Entry{URL: odd, Host: "key.example", Force: true, Meta: []byte("m")})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		w.Until(2 * time.Hour)
		for range 2 { // the other URL of the key, and the one that was forced, once
			l := w.Next()
			require.Equal(t, "key.example", l.Entry.Host)
			require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Gone}))
			w.Until(w.Clock.Now().Add(time.Hour).Sub(harness.Dawn))
		}
		_, _, err = w.TryNext()
		require.ErrorIs(t, err, frontier.ErrExhausted)

		n, err = w.F.Add(ctx, frontier.Entry{URL: odd, Host: "third.example"})
		require.NoError(t, err)
		require.Zero(t, n, "it is one URL, whatever its host")
	})
}

func TestHostsOfEntriesAreChecked(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	for host, want := range map[string]string{
		strings.Repeat("h", 256): "host key has 256 bytes; want 1 to 255",
		"http://a.example/":      `"http://a.example/" is not a host key`,
	} {
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "x", Host: host})
		require.ErrorContains(t, err, want)
		_, err = inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "x", Host: host})
		require.ErrorContains(t, err, want)
		_, err = transfer.Import(t.Context(), w.F, strings.NewReader(`{"url":"x","host":"`+host+`"}`+"\n"), transfer.ImportOptions{})
		require.ErrorContains(t, err, want)
	}
	_, err := w.F.Add(t.Context(), frontier.Entry{Host: "a.example"})
	require.ErrorContains(t, err, "empty URL")
}

// With a HostKey of the program's any key of 1 to 255 bytes is a host.
func TestHostsOfEntriesWithAHostKey(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{HostKey: frontier.HostName})
	_, err := w.F.Add(t.Context(), frontier.Entry{URL: "x", Host: "_DEFAULT_ \xff"})
	require.NoError(t, err)
	l := w.Next()
	require.Equal(t, "_DEFAULT_ \xff", l.Host)
	require.NoError(t, w.F.UpdateRule(scope.Host(l.Host), func(r *frontier.Rule) { r.Paused = scope.On }))
	require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	w.HeldFor(1)
}
