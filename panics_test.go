// This file lets code of the user's panic, each in each call that asks it, and
// recovers as a server does: the frontier is as it was.

package frontier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// trap is all of a user's code. What is named panics.
type trap struct{ armed string }

func (x *trap) passes(name string) {
	if x.armed == name {
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
		return time.Time{}, numbered(1)
	}
	return v.Outcome.Ended.Add(time.Minute), numbered(1)
}

func (x *trap) Recheck(frontier.Entry, string, frontier.History, time.Time) (time.Time, frontier.State) {
	x.passes("Recheck")
	return time.Time{}, numbered(1)
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

var trapCalls = map[string]func(*world, frontier.Lease) error{
	"Add": func(w *world, _ frontier.Lease) error {
		_, err := w.f.Add(context.Background(), frontier.Entry{URL: "http://new.example/"})
		return err
	},
	"CrawlNow": func(w *world, _ frontier.Lease) error {
		_, err := w.f.CrawlNow(context.Background(), frontier.Entry{URL: "http://b.example/1"})
		return err
	},
	"Import": func(w *world, _ frontier.Lease) error {
		_, err := w.f.Import(context.Background(), strings.NewReader(`{"url":"http://new.example/"}`+"\n"), frontier.ImportOptions{})
		return err
	},
	"Status": func(w *world, _ frontier.Lease) error {
		_, err := w.f.Status(context.Background(), 0, "http://b.example/1")
		return err
	},
	"Done":        func(w *world, l frontier.Lease) error { return w.f.Done(l, frontier.Outcome{}) },
	"Done failed": func(w *world, l frontier.Lease) error { return w.f.Done(l, failing(frontier.FailureTimeout)) },
	"Done with outlinks": func(w *world, l frontier.Lease) error {
		return w.f.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://new.example/"}}})
	},
	"Done late": func(w *world, l frontier.Lease) error {
		l2 := l
		_ = w.f.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
		return w.f.Done(l2, frontier.Outcome{})
	},
	"TryNext": func(w *world, _ frontier.Lease) error {
		_, _, err := w.f.TryNext()
		return err
	},
	"Next": func(w *world, _ frontier.Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := w.f.Next(ctx)
		return err
	},
	"Next of what was visited": func(w *world, l frontier.Lease) error {
		_ = w.f.Done(l, frontier.Outcome{})
		w.clk.Advance(2 * time.Minute)
		for range 4 {
			l, _, err := w.f.TryNext()
			if err != nil {
				return err
			}
			_ = w.f.Done(l, frontier.Outcome{})
			w.clk.Advance(2 * time.Second)
		}
		return nil
	},
	"Contact": func(w *world, _ frontier.Lease) error {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := w.f.Contact(ctx, "c.example")
		return err
	},
	"Stats when a lease expires": func(w *world, _ frontier.Lease) error {
		w.clk.Advance(time.Hour)
		w.f.Stats()
		return nil
	},
	"Extend when a lease expires": func(w *world, l frontier.Lease) error {
		w.clk.Advance(time.Hour)
		return w.f.Extend(&l, time.Second)
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
					var w *world
					if stored {
						w = newStoredWorld(t, x.options(), spill.Options{})
					} else {
						w = newWorld(t, x.options())
					}
					w.add(urlsOf("a.example", 2)...)
					w.add(urlsOf("b.example", 2)...)
					l, _, err := w.f.TryNext()
					require.NoError(t, err)
					_, _, err = w.f.TryNext() // another lease, which nobody ends
					require.NoError(t, err)
					x.armed = hook
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
					x.armed = ""
					require.NoError(t, w.f.Check())
					urls := map[string]bool{}
					for range 200 {
						l, at, err := w.tryNext()
						if errors.Is(err, frontier.ErrNotDue) {
							require.True(t, at.After(w.clk.Now()))
							w.clk.Set(at)
							continue
						}
						if errors.Is(err, frontier.ErrExhausted) {
							urls["over"] = true
							break
						}
						require.NoError(t, err)
						urls[l.Entry.URL] = true
						require.NoError(t, w.f.Done(l, frontier.Outcome{}))
					}
					require.True(t, urls["over"], "the crawl does not end")
					require.GreaterOrEqual(t, len(urls), 4, "%v", urls)
					s := w.f.Stats()
					require.Zero(t, s.Leased+s.Waiting+s.Scheduled)
				})
			}
		}
	}
	for _, hook := range hooks[:len(hooks)-1] {
		require.True(t, seen[hook], "%s never panicked", hook)
	}
}

// The URLs of a lost host go on being given up after OnGiveUp has panicked.
func TestOnGiveUpPanics(t *testing.T) {
	w := newWorld(t, frontier.Options{
		Delay: frontier.FixedDelay(sec), Retry: frontier.Retries(1, 0),
		OnGiveUp: func(frontier.Entry, frontier.Outcome) { panic("given up") },
	})
	w.add(urlsOf("a.example", 2)...)
	for range 2 {
		l := w.next()
		require.PanicsWithValue(t, "given up", func() { _ = w.f.Done(l, failing(frontier.FailureTimeout)) })
	}
	w.over()
	require.EqualValues(t, 2, w.f.Stats().GivenUp)
}

// A Scheduler is not told of a visit whose lease has ended: it heard of it, or will
// hear of the next.
func TestLateDoneIsNoVisit(t *testing.T) {
	inBothWorldsWith(t, diary{next: hourLater}, frontier.Options{}, func(t *testing.T, w *world, d *diary) {
		w.add("http://a.example/")
		l := w.next()
		require.NoError(t, w.f.Done(l, frontier.Outcome{}))
		require.ErrorIs(t, w.f.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
		require.Len(t, d.visits, 1)
	})
}

// Options that cannot do what they say are refused at once.
func TestOptionsThatCannotWork(t *testing.T) {
	var none *spill.Store
	_, err := frontier.Open(t.Context(), frontier.Options{Spill: none})
	require.ErrorContains(t, err, "Spill is a *spill.Store that is nil")
	for _, p := range []frontier.Prioritizer{frontier.ByDepth(16), frontier.ByWeight(9, 1), frontier.Constant(9), frontier.Constant(0)} {
		_, err = frontier.Open(t.Context(), frontier.Options{Prioritizer: p, Priorities: 8})
		require.ErrorContains(t, err, "Priorities, which is 8")
	}
}
