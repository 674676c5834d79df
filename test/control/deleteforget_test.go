// This file tests deletions that make URLs unknown.

package control

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// everywhere are the same URLs on some hosts, in some crawls: one that waits, and one
// that is done.
func everywhere() (es []frontier.Entry) {
	for crawl := range uint32(3) {
		for _, host := range []string{"a.example", "b.example", "b.test"} {
			for i := range 2 {
				es = append(es, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", host, i), Crawl: crawl})
			}
		}
	}
	return es
}

func added(t *testing.T, f *frontier.Frontier, es ...frontier.Entry) int {
	n, err := f.Add(t.Context(), es...)
	require.NoError(t, err)
	return n
}

func forgot(t *testing.T, f *frontier.Frontier, s scope.Scope, crawls ...uint32) {
	_, err := f.DeleteWith(t.Context(), frontier.DeleteOptions{Scope: s, Crawls: crawls, Forget: true})
	require.NoError(t, err)
	require.NoError(t, f.Check())
}

// What is forgotten is new, once; the rest stays known.
func TestDeleteWithForget(t *testing.T) {
	for _, x := range []struct {
		scope  scope.Scope
		crawls []uint32
		want   int
	}{
		{scope.All(), nil, 18},
		{scope.All(), []uint32{0, 2}, 12},
		{scope.Crawl(1), nil, 6},
		{scope.Domain("example"), nil, 12},
		{scope.Domain("example"), []uint32{0}, 4},
		{scope.Host("b.test"), nil, 6},
		{scope.Host("b.test"), []uint32{2}, 2},
		{scope.Host("none.test"), nil, 0},
	} {
		t.Run(fmt.Sprint(x.scope, x.crawls), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
				require.Equal(t, 18, added(t, w.F, everywhere()...))
				for range 9 {
					w.Fetched(w.Next(), 0, frontier.Outcome{}) // done for good: these are forgotten, too
				}
				if w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(true)) // their marks are on disk
				}
				again := x.want
				for range 2 { // the second time, the target has a number
					forgot(t, w.F, x.scope, x.crawls...)
					require.Equal(t, again, added(t, w.F, everywhere()...))
					require.Zero(t, added(t, w.F, everywhere()...))
				}
				if w.Machine != nil {
					require.NoError(t, hook.Of(w.F).MoveNow(true))
					w = w.Killed()
					require.Zero(t, added(t, w.F, everywhere()...), "known after a crash")
					w.Reopen()
					require.Zero(t, added(t, w.F, everywhere()...))
				}
				forgot(t, w.F, scope.All())
				s, err := inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "http://a.example/0", Crawl: 1})
				require.NoError(t, err)
				require.Equal(t, inspect.URLUnknown, s.State)
				require.Equal(t, 18, added(t, w.F, everywhere()...))
				require.EqualValues(t, 18, w.F.Stats().Waiting)
			})
		})
	}
}

// Whatever is left of a URL that was forgotten, what was added since is forced, and comes
// once.
func TestForceOfAURLThatWasForgotten(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *harness.World){
		"waiting": func(*testing.T, *harness.World) {},
		"leased":  func(_ *testing.T, w *harness.World) { w.Next() },
		"on disk": func(t *testing.T, w *harness.World) {
			if w.Machine != nil {
				require.NoError(t, hook.Of(w.F).MoveNow(true))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
				require.NoError(t, w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Concurrency = 3 }))
				const url = "http://a.example/1"
				w.Add(url)
				prepare(t, w)
				forgot(t, w.F, scope.Host("a.example"))
				w.Add(url)
				s, err := inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: url})
				require.NoError(t, err)
				require.Equal(t, inspect.URLWaiting, s.State, "and not what is left of the old lease")
				v, err := w.F.AddVerdicts(t.Context(), frontier.Entry{URL: url, Force: true})
				require.NoError(t, err)
				require.Equal(t, frontier.EntryForced, v[0])
				w.Fetched(w.Next(), 0, frontier.Outcome{})
				_, _, err = w.TryNext()
				require.Error(t, err)
				require.NoError(t, w.F.Check())
			})
		})
	}
}

// A lease of what was forgotten ends without what was forced before.
func TestForcedBeforeItWasForgotten(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1")
		l := w.Next()
		added(t, w.F, frontier.Entry{URL: l.Entry.URL, Force: true})
		forgot(t, w.F, scope.All())
		w.Fetched(l, 0, frontier.Outcome{Next: w.Clock.Now().Add(time.Second)})
		w.Over()
		w.Add(l.Entry.URL)
		w.Fetched(w.Next(), 0, frontier.Outcome{})
		w.Over()
	})
}

// What is added while a deletion with Forget is on its way to disk is new, and stays; if
// the deletion fails all is as it was.
func TestForgetWhoseCommitIsUnderWay(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
				w.Add("http://a.example/1")
				forgot(t, w.F, scope.Host("a.example"))
				w.Add("http://a.example/1")
				gate := make(chan struct{})
				w.Machine.Faults.Before(spilltest.Write, 1, func() { <-gate })
				if fails {
					w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
				}
				n := 0
				calls := []*harness.Call{
					harness.Start(func() (l frontier.Lease, err error) {
						_, err = w.F.DeleteWith(t.Context(), frontier.DeleteOptions{Scope: scope.Host("a.example"), Forget: true})
						return l, err
					}),
					harness.Start(func() (l frontier.Lease, err error) {
						n, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"})
						return l, err
					}),
				}
				for _, c := range calls {
					require.True(t, c.Waits())
				}
				close(gate)
				for _, c := range calls {
					require.False(t, c.Waits())
					if fails {
						require.ErrorIs(t, c.Err, harness.ErrDisk)
					} else {
						require.NoError(t, c.Err)
						require.Equal(t, 1, n, "new")
					}
				}
				hook.Of(w.F).Sweep()
				require.NoError(t, w.F.Check())
				require.Zero(t, added(t, w.F, frontier.Entry{URL: "http://a.example/1"}))
				require.EqualValues(t, 1, w.F.Stats().Waiting)
				x := w.Killed()
				require.Zero(t, added(t, x.F, frontier.Entry{URL: "http://a.example/1"}))
				require.Equal(t, []string{"http://a.example/1"}, x.LeaseAll())
				require.Equal(t, []string{"http://a.example/1"}, w.LeaseAll())
			})
		})
	}
}

// A frontier that takes the key over knows what the exported one knows. Another one
// keeps what it has.
func TestExportOfWhatWasForgotten(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		added(t, w.F, everywhere()...)
		forgot(t, w.F, scope.Domain("example"), 0)
		forgot(t, w.F, scope.Host("b.test"))
		forgot(t, w.F, scope.Crawl(2))
		added(t, w.F, everywhere()...)
		forgot(t, w.F, scope.Host("b.test"), 1)
		text := w.Export()
		require.Equal(t, []string{
			`{"forgotten":"host","name":"b.test","number":2}`,
			`{"forgotten":"domain","name":"example","within":0,"number":1}`,
			`{"forgotten":"host","name":"b.test","within":1,"number":4}`,
			`{"forgotten":"all","within":2,"number":3}`,
		}, harness.LinesOf(text, "forgotten"))
		harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, x *harness.World) {
			x.Imported(text)
			require.Equal(t, harness.Timeless(text), harness.Timeless(x.Export()))
			if x.Machine != nil {
				x = x.Killed()
			}
			require.Equal(t, 2, added(t, x.F, everywhere()...), "of b.test in crawl 1")
		})
		y := harness.NewWorld(t, frontier.Options{})
		y.Add("http://y.example/")
		assert.EqualValues(t, 16, y.Imported(text).URLs)
		require.Empty(t, harness.LinesOf(y.Export(), "forgotten"))
		require.Equal(t, 2, added(t, y.F, everywhere()...))
	})
}

func TestMalformedForgottenLines(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	text := w.Export()
	header, _, _ := strings.Cut(text, "\n")
	for line, want := range map[string]string{
		`{"forgotten":"all"}`:                               "number is 0",
		`{"forgotten":"crawl","number":1}`:                  "has no name",
		`{"forgotten":"some","name":"a","number":1}`:        "want all, domain or host",
		`{"forgotten":"all","number":1,"group":"g"}`:        "several kinds",
		`{"forgotten":"all","within":-1,"number":1}`:        "within",
		`{"forgotten":"all","number":281474976710656}`:      "want 1 to",
		`{"forgotten":"host","name":"a","number":1,"x":""}`: "there is no such member",
	} {
		_, err := transfer.Import(t.Context(), w.F, strings.NewReader(header+"\n"+line+"\n{\"end\":2}\n"), transfer.ImportOptions{})
		require.ErrorContains(t, err, want, line)
	}
	_, err := transfer.Import(t.Context(), w.F, strings.NewReader(`{"forgotten":"all","number":1}`), transfer.ImportOptions{})
	require.ErrorContains(t, err, "without a header")
}
