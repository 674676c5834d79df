// This file tests what becomes of known URLs that are found again.

package politeness

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A URL that is found again comes earlier, and with the priority of its new weight,
// wherever it lies, after a crash too. Others of its block come at their times.
func TestHintsBringURLsForward(t *testing.T) {
	o := frontier.Options{Priorities: 8, Prioritizer: frontier.ByWeight(8, 8)}
	for _, moved := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", moved), func(t *testing.T) {
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				for i := range 5 {
					w.Soon(fmt.Sprintf("http://h%d.example/", i), time.Duration(10+i)*time.Hour)
				}
				if moved {
					w.OnDisk()
				}
				w.Hint(frontier.Entry{URL: "http://h2.example/", NotBefore: harness.Dawn.Add(time.Hour), Weight: 5})
				w.Hint(frontier.Entry{URL: "http://h4.example/", NotBefore: harness.Dawn.Add(2 * time.Hour), Weight: 0})
				w.Hint(frontier.Entry{URL: "http://h0.example/", Weight: 3, Meta: []byte("not taken")})
				w.Hint(frontier.Entry{URL: "http://h1.example/", NotBefore: harness.Dawn.Add(20 * time.Hour)})
				require.EqualValues(t, 5, w.F.Stats().Scheduled)
				require.EqualValues(t, 5, w.F.Stats().Added)
				require.NoError(t, w.F.Check())
				if w.Machine != nil {
					w = w.Killed()
				}
				for _, want := range []struct {
					at, prio int
					host     string
				}{{1, 6, "h2"}, {2, 1, "h4"}, {10, 4, "h0"}, {11, 1, "h1"}, {13, 1, "h3"}} {
					l := w.NextIs(time.Duration(want.at)*time.Hour, "http://"+want.host+".example/")
					require.Equal(t, want.prio, l.Priority, want.host)
					require.Empty(t, l.Entry.Meta)
					w.Fetched(l, 0, frontier.Outcome{})
				}
				w.Over()
			})
		})
	}
}

// What is not scheduled stays as it is: URLs that wait, are leased, or finished. A URL
// that is not known is admitted. One that failed comes when the retry policy says.
func TestHintsOfOthers(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Retry: frontier.Retries(3, time.Minute)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://a.example/2")
		l := w.Next()
		early := frontier.Entry{NotBefore: harness.Dawn.Add(-time.Hour), Weight: 9, Hint: true}
		for _, url := range []string{"http://a.example/1", "http://a.example/2"} {
			e := early
			e.URL = url
			w.Hint(e)
		}
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Failed})
		e := early
		e.URL = l.Entry.URL
		w.Hint(e)
		l = w.Next()
		require.Equal(t, []any{"http://a.example/2", 0.}, []any{l.Entry.URL, l.Entry.Weight})
		w.Fetched(l, 0, frontier.Outcome{})
		l = w.NextIs(time.Minute, "http://a.example/1")
		require.Equal(t, []any{2, 9.}, []any{l.Attempt, l.Entry.Weight})
		w.Fetched(l, 0, frontier.Outcome{Result: frontier.Gone, Add: []frontier.Entry{
			{URL: "http://a.example/2", Hint: true}, {URL: "http://a.example/3", Hint: true, NotBefore: harness.Dawn.Add(time.Hour)},
		}})
		hook.Of(w.F).Sweep()
		w.NextIs(time.Hour, "http://a.example/3")
	})
}

// sage is a Scheduler that receives hints.
type sage struct {
	harness.Diary
	hint func(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted
}

func (s *sage) Hint(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted {
	return s.hint(known, found, host, h, now)
}

// hinting runs a test with a Scheduler that receives hints. All pages are due again after ten
// hours.
func hinting(t *testing.T, test func(*testing.T, *harness.World, *sage)) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		harness.Ended(w, w.F)
		s := &sage{Diary: harness.Diary{Again: func(v frontier.Visit) time.Time { return v.Outcome.Ended.Add(10 * time.Hour) }}}
		w.Options.Scheduler = s
		w.Open()
		test(t, w, s)
	})
}

func TestAHinterIsToldAndDecides(t *testing.T) {
	hinting(t, func(t *testing.T, w *harness.World, s *sage) {
		w.Add("http://a.example/")
		w.Fetched(w.Next(), 0, frontier.Outcome{Meta: []byte("kept")})
		w.OnDisk()
		claim := harness.Dawn.Add(-time.Hour)
		asked := 0
		s.hint = func(known, found frontier.Entry, host string, h frontier.History, now time.Time) frontier.Hinted {
			asked++
			require.Equal(t, "a.example", host)
			require.Equal(t, frontier.Entry{URL: "http://a.example/", Weight: 2, NotBefore: harness.Dawn.Add(10 * time.Hour), Meta: []byte("kept")}, utc(known))
			require.Equal(t, frontier.Entry{URL: "http://a.example/", Weight: 2, NotBefore: claim, Meta: []byte("said")}, utc(found))
			require.EqualValues(t, 1, harness.Number(h.State))
			require.Equal(t, 1, h.Visits)
			require.True(t, now.Equal(harness.Dawn))
			return frontier.Hinted{Due: harness.Dawn.Add(3 * time.Hour), Keep: harness.Numbered(77), Meta: []byte("new")}
		}
		w.Hint(frontier.Entry{URL: "http://a.example/", Weight: 2, NotBefore: claim, Meta: []byte("said")})
		require.Equal(t, 1, asked)
		s.Due = harness.Dawn.Add(3 * time.Hour)
		l := w.NextIs(3*time.Hour, "http://a.example/")
		require.EqualValues(t, 177, harness.Number(l.History.State), "the Rechecker was asked as always")
		require.Equal(t, []any{"new", 2.}, []any{string(l.Entry.Meta), l.Entry.Weight})
		w.Fetched(l, 0, frontier.Outcome{})
		s.hint = func(known, found frontier.Entry, _ string, h frontier.History, _ time.Time) frontier.Hinted {
			require.True(t, found.NotBefore.IsZero())
			return frontier.Hinted{Keep: h.State}
		}
		w.Hint(frontier.Entry{URL: "http://a.example/"})
		s.Due = harness.Dawn.Add(13 * time.Hour)
		w.NextIs(13*time.Hour, "http://a.example/")
	})
}

func utc(e frontier.Entry) frontier.Entry {
	e.NotBefore = e.NotBefore.UTC()
	return e
}

// While a hint is being answered the URL may be deleted, forced, or the process die.
func TestHintsMeetOthers(t *testing.T) {
	for _, moved := range []bool{false, true} {
		hinting(t, func(t *testing.T, w *harness.World, s *sage) {
			for _, what := range []string{"deleted", "forced", "killed"} {
				if what == "killed" && w.Machine == nil {
					continue
				}
				url := "http://" + what + ".example/"
				w.Soon(url, 100*time.Hour)
				if moved {
					w.OnDisk()
				}
				during := func() {
					switch what {
					case "deleted":
						_, err := w.F.Delete(context.Background(), scope.Host("deleted.example"))
						require.NoError(t, err)
					case "forced":
						n, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Force: true, NotBefore: harness.Dawn.Add(200 * time.Hour)})
						require.NoError(t, err)
						require.Equal(t, 1, n)
					}
				}
				asked, goOn := make(chan struct{}), make(chan struct{})
				s.hint = func(known, _ frontier.Entry, _ string, _ frontier.History, _ time.Time) frontier.Hinted {
					if s.hint = s.comeNow; known.URL != url {
						return frontier.Hinted{}
					}
					close(asked)
					<-goOn
					return s.comeNow(known, known, "", frontier.History{}, harness.Dawn)
				}
				_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Hint: true})
				require.NoError(t, err)
				<-asked
				if what == "killed" {
					x := w.Killed()
					x.F.Stats()
					_, err := x.F.Add(context.Background()) // dispatches
					require.NoError(t, err)
					hook.Of(x.F).Sweep()
					require.Equal(t, url, x.Next().Entry.URL, "the hint has outlived the process")
					require.Equal(t, 30*time.Second, x.At(), "when hosts may be contacted after a crash")
				}
				during()
				close(goOn)
				hook.Of(w.F).Sweep()
				_, err = w.F.Add(context.Background())
				require.NoError(t, err)
				hook.Of(w.F).ReadTimed()
				require.NoError(t, w.F.Check())
			}
			if w.Machine != nil {
				l := w.Next()
				require.Equal(t, "http://killed.example/", l.Entry.URL)
				w.Fetched(l, 0, frontier.Outcome{Next: harness.Dawn.Add(1000 * time.Hour)})
			}
			w.NextIs(200*time.Hour, "http://forced.example/")
		})
	}
}

func (s *sage) comeNow(_, _ frontier.Entry, _ string, _ frontier.History, now time.Time) frontier.Hinted {
	return frontier.Hinted{Due: now}
}

// Of two hints for a URL that no Hinter judges the earlier time counts; one without a time does not
// remove it.
func TestTwoHintsOfAURL(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		var hints []frontier.Entry
		for _, at := range []int{3, 1, 2} {
			hints = append(hints, frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(time.Duration(at) * time.Hour), Hint: true})
		}
		w.Soon("http://a.example/", 100*time.Hour)
		_, err := w.F.Add(context.Background(), append(hints, frontier.Entry{URL: "http://a.example/", Hint: true})...)
		require.NoError(t, err)
		hook.Of(w.F).Sweep()
		w.NextIs(time.Hour, "http://a.example/")
	})
}

// A store opened for inspection keeps hints for a later frontier that can judge them.
func TestHintsAreHeldForTheirScheduler(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Soon("http://a.example/", 100*time.Hour)
	w.Soon("http://b.example/", 100*time.Hour)
	w.OnDisk()
	w.Options.DeferHints = true
	w.Reopen()
	w.Hint(frontier.Entry{URL: "http://a.example/", NotBefore: harness.Dawn.Add(-time.Hour)})
	hook.Of(w.F).ReadTimed()
	w.NothingUntil(20 * time.Hour)
	w.OnDisk()
	asked := 0
	w.Options.DeferHints = false
	w.Options.Scheduler = &sage{hint: func(known, found frontier.Entry, _ string, h frontier.History, _ time.Time) frontier.Hinted {
		asked++
		require.Equal(t, "http://a.example/", known.URL)
		require.Equal(t, harness.Dawn.Add(-time.Hour), found.NotBefore.UTC())
		return frontier.Hinted{Due: harness.Dawn.Add(50 * time.Hour), Keep: h.State}
	}}
	w.Reopen()
	_, err := w.F.Add(context.Background()) // dispatches
	require.NoError(t, err)
	hook.Of(w.F).Sweep()
	require.Equal(t, 1, asked)
	w.NextIs(50*time.Hour, "http://a.example/")
}

// A walk through much waits for other hints as long as it is going to take, and ten
// times that after the last one.
func TestWalksForHintsAreApart(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{KeepOpen: true})
	var entries []frontier.Entry
	for i := range 90_000 { // at 250 us for 512 of them: 43.9 ms
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%100, i), NotBefore: harness.Dawn.Add(100 * time.Hour)})
	}
	_, err := w.F.Add(context.Background(), entries...)
	require.NoError(t, err)
	answered := func(i int) time.Duration {
		from := w.At()
		for range 10_000 { // said again and again, it comes no later
			_, err := w.F.Add(context.Background(), frontier.Entry{URL: entries[i].URL, NotBefore: harness.Dawn, Hint: true})
			require.NoError(t, err)
			hook.Of(w.F).Sweep()

			if w.Status(entries[i].URL).State == inspect.URLWaiting {
				return w.At() - from
			}
			w.Until(w.At() + time.Millisecond)
		}
		return 0
	}
	require.Equal(t, 45*time.Millisecond, answered(1), "and a step of this test")
	require.Equal(t, 439*time.Millisecond, answered(2))
	w.Until(time.Hour)
	require.Equal(t, 45*time.Millisecond, answered(3))
}

// Hints take a bounded part of the memory budget. While it is used up further URLs are refused, but
// a repeated hint for a URL replaces the earlier one.
func TestARepeatedHintIsHeardWhenOthersAreNot(t *testing.T) {
	const budget = 128 << 20
	harness.InBothWorlds(t, frontier.Options{MemoryBudget: budget}, func(t *testing.T, w *harness.World) {
		harness.Ended(w, w.F)
		asked, goOn := make(chan struct{}), make(chan struct{})
		var mu sync.Mutex
		said := map[string]time.Time{}
		s := &sage{hint: func(known, found frontier.Entry, _ string, h frontier.History, _ time.Time) frontier.Hinted {
			if known.URL == "http://first.example/" {
				close(asked)
				<-goOn
			}
			mu.Lock()
			defer mu.Unlock()
			said[known.URL] = found.NotBefore.UTC()
			return frontier.Hinted{Keep: h.State}
		}}
		w.Options.Scheduler = s
		w.Open()
		hint := func(host string, at time.Duration, meta int) frontier.Entry {
			return frontier.Entry{URL: "http://" + host + ".example/", Hint: true, NotBefore: harness.Dawn.Add(at), Meta: make([]byte, meta)}
		}
		add := func(host string, at time.Duration, meta int) {
			_, err := w.F.Add(context.Background(), hint(host, at, meta))
			require.NoError(t, err)
		}
		w.Soon("http://first.example/", 100*time.Hour)
		w.Soon("http://again.example/", 100*time.Hour)
		w.Soon("http://late.example/", 100*time.Hour)
		add("first", -time.Hour, 0)
		<-asked // the walk waits while others come
		add("again", -3*time.Hour, 0)
		for i := range budget / 64 / frontier.MaxMeta {
			host := fmt.Sprintf("h%d", i)
			w.Soon("http://"+host+".example/", 100*time.Hour)
			add(host, -time.Hour, frontier.MaxMeta)
		}
		_, err := w.F.Add(context.Background(), hint("again", -2*time.Hour, 0), hint("late", -time.Hour, 0))
		bad := frontier.EntryErrors(err)
		add("again", -5*time.Hour, 0) // which is no news
		require.Len(t, bad, 1)
		require.Equal(t, frontier.EntryError{Index: 1, URL: "http://late.example/", Err: frontier.ErrHints}, *bad[0])
		close(goOn)
		hook.Of(w.F).Sweep()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, harness.Dawn.Add(-2*time.Hour), said["http://again.example/"])
		require.NotContains(t, said, "http://late.example/")
		require.Len(t, said, 2+budget/64/frontier.MaxMeta)
	})
}
