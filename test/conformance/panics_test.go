// This file lets code of the user's panic, each in each call that asks it, and
// recovers as a server does: the frontier is as it was.

package conformance

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// trap is all of a user's code. What is named panics, or exits its goroutine.
type trap struct {
	armed atomic.Value
	exits bool
}

func (x *trap) passes(name string) {
	switch {
	case x.armed.Load() != name:
	case x.exits:
		runtime.Goexit()
	default:
		panic("trap " + name)
	}
}

func (x *trap) Priority(frontier.Entry, frontier.History) int {
	x.passes("Priority")
	return 1
}

func (x *trap) Select(available []int) int {
	x.passes("Select")
	return available[0]
}

func (x *trap) Delay(string, frontier.Outcome) time.Duration {
	x.passes("Delay")
	return time.Second
}

func (x *trap) Max() time.Duration { return time.Second }

func (x *trap) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	x.passes("Retry")
	return time.Second, true
}

func (x *trap) Next(v frontier.Visit) (time.Time, frontier.State) {
	x.passes("Next")
	if v.Before.Visits > 0 {
		return time.Time{}, harness.Numbered(1)
	}
	return v.Outcome.Ended.Add(time.Minute), harness.Numbered(1)
}

func (x *trap) Recheck(frontier.Entry, string, frontier.History, time.Time) (time.Time, frontier.State) {
	x.passes("Recheck")
	return time.Time{}, harness.Numbered(1)
}

func (x *trap) options() frontier.Options {
	return frontier.Options{
		Prioritizer: x, Selector: x, Delay: x, GroupDelay: x, Retry: x, Scheduler: x,
		HostKey: func(url string) (string, error) {
			x.passes("HostKey")
			return frontier.HostName(url)
		},
		OnGiveUp: func(frontier.Entry, frontier.Outcome) { x.passes("OnGiveUp") },
	}
}

var trapCalls = map[string]func(*harness.World, frontier.Lease) error{
	"Add": func(w *harness.World, _ frontier.Lease) error {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: "http://new.example/"})
		return err
	},
	"CrawlNow": func(w *harness.World, _ frontier.Lease) error {
		_, err := w.F.CrawlNow(context.Background(), frontier.Entry{URL: "http://b.example/1"})
		return err
	},
	"Import": func(w *harness.World, _ frontier.Lease) error {
		_, err := transfer.Import(context.Background(), w.F, strings.NewReader(`{"url":"http://new.example/"}`+"\n"), transfer.ImportOptions{})
		return err
	},
	"Status": func(w *harness.World, _ frontier.Lease) error {
		_, err := inspect.New(w.F).Status(context.Background(), frontier.Entry{URL: "http://b.example/1"})
		return err
	},
	"Done": func(w *harness.World, l frontier.Lease) error { return w.F.Done(l, frontier.Outcome{}) },
	"DoneAll": func(w *harness.World, l frontier.Lease) error {
		return w.F.DoneAll(context.Background(), []frontier.End{{Lease: l, Outcome: frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/"}}}}})[0].Err
	},
	"Done failed": func(w *harness.World, l frontier.Lease) error {
		return w.F.Done(l, harness.Failing(frontier.FailureTimeout))
	},
	"Done with outlinks": func(w *harness.World, l frontier.Lease) error {
		return w.F.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/"}}})
	},
	"Done late": func(w *harness.World, l frontier.Lease) error {
		l2 := l
		_ = w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		return w.F.Done(l2, frontier.Outcome{})
	},
	"TryNext": func(w *harness.World, _ frontier.Lease) error {
		_, _, err := w.F.TryNext()
		return err
	},
	"Next": func(w *harness.World, _ frontier.Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := w.F.Next(ctx)
		return err
	},
	"Next of what was visited": func(w *harness.World, l frontier.Lease) error {
		_ = w.F.Done(l, frontier.Outcome{})
		w.Clock.Advance(2 * time.Minute)
		for range 4 {
			l, _, err := w.F.TryNext()
			if err != nil {
				return err
			}
			_ = w.F.Done(l, frontier.Outcome{})
			w.Clock.Advance(2 * time.Second)
		}
		return nil
	},
	"Contact": func(w *harness.World, _ frontier.Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := w.F.Contact(ctx, "c.example")
		return err
	},
	"Stats when a lease expires": func(w *harness.World, _ frontier.Lease) error {
		w.Clock.Advance(time.Hour)
		w.F.Stats()
		return nil
	},
	"Extend when a lease expires": func(w *harness.World, l frontier.Lease) error {
		w.Clock.Advance(time.Hour)
		return w.F.Extend(&l, time.Second)
	},
}

// Whatever panics in whatever call: no lock is held, no lease and no URL is lost, and
// the crawl comes to its end.
func TestPanicsOfTheUsersCode(t *testing.T) {
	hooks := []string{"Priority", "HostKey", "Delay", "Retry", "Next", "Recheck", "Select", "OnGiveUp"}
	seen := map[string]bool{}
	for _, hook := range hooks {
		for name, call := range trapCalls {
			for _, stored := range []bool{false, true} {
				t.Run(hook+"/"+name, func(t *testing.T) {
					x := &trap{}
					var w *harness.World
					if stored {
						w = harness.NewStoredWorld(t, x.options(), spill.Options{})
					} else {
						w = harness.NewWorld(t, x.options())
					}
					w.Add(harness.UrlsOf("a.example", 2)...)
					w.Add(harness.UrlsOf("b.example", 2)...)
					l, _, err := w.F.TryNext()
					require.NoError(t, err)
					_, _, err = w.F.TryNext() // another lease, which is never ended
					require.NoError(t, err)
					x.armed.Store(hook)
					func() {
						defer func() {
							if r := recover(); r != nil {
								require.Equal(t, "trap "+hook, r)
								seen[hook] = true
							}
						}()
						err = call(w, l)
						if se, ok := errors.AsType[*frontier.SelectorError](err); ok {
							require.Equal(t, "trap "+hook, se.Panicked)
							seen[hook] = true
						}
					}()
					x.armed.Store("")
					require.NoError(t, w.F.Check())
					urls, told := map[string]bool{}, false
					for range 200 {
						l, at, err := w.TryNext()
						if errors.Is(err, frontier.ErrNotDue) {
							require.True(t, at.After(w.Clock.Now()))
							w.Clock.Set(at)
							continue
						}
						if errors.Is(err, frontier.ErrExhausted) {
							urls["over"] = true
							break
						}
						if err != nil && !told { // it panicked in no call of its own
							require.ErrorContains(t, err, "trap "+hook)
							seen[hook], told = true, true
							continue
						}
						require.NoError(t, err)
						urls[l.Entry.URL] = true
						require.NoError(t, w.F.Done(l, frontier.Outcome{}))
					}
					require.True(t, urls["over"], "the crawl does not end")
					require.GreaterOrEqual(t, len(urls), 4, "%v", urls)
					s := w.F.Stats()
					require.Zero(t, s.Leased+s.Waiting+s.Scheduled)
				})
			}
		}
	}
	for _, hook := range hooks[:len(hooks)-1] {
		require.True(t, seen[hook], "%s never panicked", hook)
	}
}

// A Selector is asked under the lock, maybe in a call that is not Next: it ends no goroutine but its own.
func TestSelectorThatExits(t *testing.T) {
	x := &trap{exits: true}
	harness.InBothWorlds(t, frontier.Options{Selector: x}, func(t *testing.T, w *harness.World) {
		x.armed.Store("Select")
		got := make(chan error)
		go func() {
			_, err := w.F.Next(t.Context())
			got <- err
		}()
		w.Add("http://a.example/")
		require.ErrorContains(t, <-got, "selector panicked: it called runtime.Goexit; available are [8]")
		x.armed.Store("")
		require.NoError(t, w.F.Check())
		require.Equal(t, []string{"http://a.example/"}, w.LeaseAll())
	})
}

// The URLs of a lost host are still given up after OnGiveUp has panicked.
func TestOnGiveUpPanics(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(time.Second), Retry: frontier.Retries(1, 0),
		OnGiveUp: func(frontier.Entry, frontier.Outcome) { panic("given up") },
	})
	w.Add(harness.UrlsOf("a.example", 2)...)
	for range 2 {
		l := w.Next()
		require.PanicsWithValue(t, "given up", func() { _ = w.F.Done(l, harness.Failing(frontier.FailureTimeout)) })
	}
	w.Over()
	require.EqualValues(t, 2, w.F.Stats().GivenUp)
}

// What is called in no call of its own ends neither the process nor another call, nor its goroutine: a call
// of Next has the error, and nothing is lost.
func TestPanicsOutsideTheirCalls(t *testing.T) {
	for _, hook := range []string{"Delay", "Retry", "Priority", "Next", "OnGiveUp", "OnEvent"} {
		for _, exits := range []bool{false, true} {
			said := "trap " + hook
			if exits {
				said = `called runtime.Goexit (host "a.example")`
			}
			t.Run(hook+"/"+said, func(t *testing.T) {
				x := &trap{exits: exits}
				o := x.options()
				o.OnEvent = func(event.Event) { x.passes("OnEvent") }
				switch hook {
				case "OnGiveUp":
					o.Scheduler, o.Retry = nil, frontier.Retries(1, 0)
				case "Next":
					o.Retry = frontier.Retries(1, 0)
				default:
					o.Scheduler = nil
				}
				harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
					w.Add("http://a.example/1", "http://a.example/2")
					w.Next()
					w.Clock.Advance(time.Hour)
					x.armed.Store(hook)
					w.F.Stats() // comes upon the lease that has expired
					require.Eventually(t, func() bool {
						l, _, err := w.F.TryNext()
						if err == nil { // the event is on its way
							require.NoError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
							return false
						}
						return strings.Contains(err.Error(), said)
					}, 10*time.Second, time.Millisecond)
					x.armed.Store("")
					require.NoError(t, w.F.Check())
					left := []string{"http://a.example/1", "http://a.example/2"}
					switch hook {
					case "OnGiveUp":
						left = left[1:]
					case "Next":
						left = append(left, left...) // each is visited twice
					}
					require.ElementsMatch(t, left, w.LeaseAll())
				})
			})
		}
	}
}

// A Scheduler does not hear of a visit whose lease has ended: it heard of it, or will
// hear of the next.
func TestLateDoneIsNoVisit(t *testing.T) {
	harness.InBothWorldsWith(t, harness.Diary{Again: harness.HourLater}, frontier.Options{}, func(t *testing.T, w *harness.World, d *harness.Diary) {
		w.Add("http://a.example/")
		l := w.Next()
		require.NoError(t, w.F.Done(l, frontier.Outcome{}))
		require.ErrorIs(t, w.F.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
		require.Len(t, d.Visits, 1)
	})
}

// Options that cannot do what they say are refused at once.
func TestOptionsThatCannotWork(t *testing.T) {
	var none *spill.Store
	_, err := frontier.Open(t.Context(), frontier.Options{Spill: none})
	require.ErrorContains(t, err, "Spill is a *spill.Store that is nil")
	_, err = frontier.Open(t.Context(), frontier.Options{Prioritizer: frontier.PrioritizerFunc(nil)})
	require.ErrorContains(t, err, "Prioritizer is a frontier.PrioritizerFunc that is nil")
	for _, p := range []frontier.Prioritizer{frontier.ByDepth(16), frontier.ByWeight(9, 1), frontier.Constant(9), frontier.Constant(0)} {
		_, err = frontier.Open(t.Context(), frontier.Options{Prioritizer: p, Priorities: 8})
		require.ErrorContains(t, err, "Priorities, which is 8")
	}
}

// startled is a Hinter that panics at one host.
type startled struct {
	trap
	host string
}

func (x *startled) Hint(_, found frontier.Entry, host string, _ frontier.History, _ time.Time) frontier.Hinted {
	if host == x.host {
		panic("trap Hint")
	}
	return frontier.Hinted{Due: found.NotBefore}
}

func (x *startled) Next(frontier.Visit) (due time.Time, keep frontier.State) { return due, keep }

// No call waits for a Hinter: if it panics the URL stays as it was, the next call of Next has
// the error, and other hints apply.
func TestHinterPanics(t *testing.T) {
	for _, moved := range []bool{false, true} {
		x := &startled{host: "a.example"}
		harness.InBothWorlds(t, frontier.Options{Scheduler: x, Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
			for _, host := range []string{"a.example", "b.example"} {
				w.Soon("http://"+host+"/", 2*time.Hour)
			}
			if moved {
				w.OnDisk()
			}
			for _, host := range []string{"a.example", "b.example"} {
				w.Hint(frontier.Entry{URL: "http://" + host + "/", NotBefore: harness.Dawn.Add(time.Hour)})
			}
			w.Until(time.Hour)
			_, _, err := w.TryNext()
			require.ErrorContains(t, err, "trap Hint")
			require.ErrorContains(t, err, "a.example")
			require.NoError(t, w.F.Check())
			w.Fetched(w.NextIs(time.Hour, "http://b.example/"), 0, frontier.Outcome{})
			w.NextIs(2*time.Hour, "http://a.example/")
		})
	}
}
