// This file sets each kind of limit in each place where one may be: reached, reported,
// raised, lowered, cleared, through reopenings and periods.

package limits

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// limitCase is a limit, and the outcome of contacts that count.
type limitCase struct {
	name string
	l    scope.Limits // two contacts are left of them
	o    frontier.Outcome
}

// limitCases are limits with two contacts left, and those contacts.
var limitCases = []limitCase{
	{"served", scope.Limits{Served: 2}, frontier.Outcome{}},
	{"bytes", scope.Limits{Bytes: 20}, frontier.Outcome{Bytes: 10}},
	{"errors", scope.Limits{Errors: 2}, harness.Failing(frontier.FailureServer)},
}

// limitSetters set limits that concern the host a.x.example.
var limitSetters = map[string]func(w *harness.World, l scope.Limits) error{
	"host": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.Host("a.x.example"), func(r *frontier.Rule) { r.Limits = l })
	},
	"domain": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.Domain("x.example"), func(r *frontier.Rule) { r.Limits = l })
	},
	"all": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.Limits = l })
	},
	"each of host": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.Host("a.x.example"), func(r *frontier.Rule) { r.HostLimits = l })
	},
	"each of domain": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.Domain("example"), func(r *frontier.Rule) { r.HostLimits = l })
	},
	"each of all": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.All(), func(r *frontier.Rule) { r.HostLimits = l })
	},
	"crawl": func(w *harness.World, l scope.Limits) error {
		return w.F.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { r.Limits = l })
	},
}

// clearLimits takes back what the setter of that name did.
func clearLimits(w *harness.World, name string) error {
	if name == "crawl" {
		return w.F.UpdateRule(scope.Crawl(0), func(r *frontier.Rule) { r.Limits = scope.Limits{} })
	}
	for s := range w.F.Rules() {
		if err := w.F.Clear(s); err != nil {
			return err
		}
	}
	return nil
}

// Two contacts are left; more, fewer and none are set, a period passes, a call waits.
func TestEachLimitInEachPlace(t *testing.T) {
	o := harness.Quick()
	o.Retry = frontier.Retries(100, time.Minute)
	for where, set := range limitSetters {
		for _, k := range limitCases {
			t.Run(where+"/"+k.name, func(t *testing.T) {
				harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
					w.AddMany("a.x.example", 20)
					require.NoError(t, set(w, k.l))
					require.Equal(t, 2, w.Served(k.o))
					x := w.Info("a.x.example")
					require.Equal(t, inspect.ReasonLimit, x.Reason)
					require.Zero(t, x.Until)
					more := k.l
					more.Served, more.Bytes, more.Errors = 2*more.Served, 2*more.Bytes, 2*more.Errors
					require.NoError(t, set(w, more))
					require.NotEqual(t, inspect.ReasonLimit, w.Info("a.x.example").Reason)
					require.Equal(t, 2, w.Served(k.o))
					less := k.l
					less.Served, less.Bytes, less.Errors = less.Served/2, less.Bytes/2, less.Errors/2
					require.NoError(t, set(w, less))
					require.Zero(t, w.Served(k.o))
					if w.Machine != nil {
						w.Reopen()
						require.Zero(t, w.Served(k.o))
						w = w.Killed()
						require.Zero(t, w.Served(k.o))
						require.Equal(t, inspect.ReasonLimit, w.Info("a.x.example").Reason)
					}
					at5 := more
					at5.Served, at5.Bytes, at5.Errors = 5*k.l.Served/2, 5*k.l.Bytes/2, 5*k.l.Errors/2
					require.NoError(t, set(w, at5))
					require.Equal(t, 1, w.Served(k.o))
					require.NoError(t, clearLimits(w, where))
					require.Positive(t, w.Served(k.o))
				})
			})
			t.Run(where+"/"+k.name+"/period", func(t *testing.T) {
				harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
					w.AddMany("a.x.example", 20)
					l := k.l
					l.Period = time.Hour
					require.NoError(t, set(w, l))
					w.Until(10 * time.Minute)
					require.Equal(t, 2, w.Served(k.o))
					x := w.Info("a.x.example")
					require.Equal(t, inspect.ReasonLimit, x.Reason)
					require.Equal(t, 70*time.Minute, x.Until.Sub(harness.Dawn))
					if w.Machine != nil {
						w.Reopen()
						require.Zero(t, w.Served(k.o))
						w = w.Killed()
						require.Zero(t, w.Served(k.o))
						require.Equal(t, 70*time.Minute, w.Info("a.x.example").Until.Sub(harness.Dawn))
					}
					w.NothingUntil(70 * time.Minute)
					require.Equal(t, 2, w.Served(k.o))
					l.Period = 2 * time.Hour // longer while it is on
					require.NoError(t, set(w, l))
					_, _, err := w.TryNext()
					require.ErrorIs(t, err, frontier.ErrNotDue)
				})
			})
			t.Run(where+"/"+k.name+"/waiting worker", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, err := frontier.Open(t.Context(), o)
					require.NoError(t, err)
					w := &harness.World{TB: t, F: f}
					w.AddMany("a.x.example", 9)
					l := k.l
					l.Period = time.Hour
					require.NoError(t, set(w, l))
					start := time.Now()
					for i := range 5 {
						x, err := f.Next(t.Context())
						require.NoError(t, err)
						require.Equal(t, time.Duration(i/2)*time.Hour, time.Since(start), i)
						require.NoError(t, f.Done(x, k.o))
					}
					// used up one of two; use the other
					x, err := f.Next(t.Context())
					require.NoError(t, err)
					require.NoError(t, f.Done(x, k.o))
					got := make(chan time.Duration)
					go func() {
						x, err := f.Next(t.Context())
						if err == nil {
							err = f.Done(x, frontier.Outcome{})
						}
						require.NoError(t, err)
						got <- time.Since(start)
					}()
					time.Sleep(time.Minute)
					require.NoError(t, clearLimits(w, where))
					require.Equal(t, 2*time.Hour+time.Minute, <-got)
					harness.Ended(t, f)
				})
			})
		}
	}
}

// A refusal is reported exactly; the URL is not known, and may be added later.
func TestLimitOfWaitingInEachPlace(t *testing.T) {
	ctx := context.Background()
	for where, set := range limitSetters {
		t.Run(where, func(t *testing.T) {
			harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
				require.NoError(t, set(w, scope.Limits{Waiting: 3}))
				es := append(harness.URLs("a.x.example", 5), frontier.Entry{URL: "nonsense"}, frontier.Entry{URL: "http://a.x.example/0"})
				n, err := w.F.Add(ctx, es...)
				require.Equal(t, 3, n)
				got := frontier.EntryErrors(err)
				require.Len(t, got, 3)
				for i, e := range got {
					require.Equal(t, 3+i, e.Index)
					require.Equal(t, es[3+i].URL, e.URL)
				}
				require.NotErrorIs(t, got[2], frontier.ErrLimit)
				require.ErrorIs(t, got[0], frontier.ErrLimit)
				s := w.F.Stats()
				require.EqualValues(t, 3, s.Refused)
				require.EqualValues(t, 1, s.Duplicates)
				require.EqualValues(t, 3, s.Known)
				require.EqualValues(t, 3, s.Waiting)
				st, err := inspect.New(w.F).Status(ctx, frontier.Entry{URL: es[3].URL})
				require.NoError(t, err)
				require.Equal(t, inspect.URLUnknown, st.State)
				require.NotEqual(t, inspect.ReasonLimit, w.Info("a.x.example").Reason)
				if where != "crawl" {
					require.True(t, w.Info("a.x.example").Full)
				}
				// lower than what waits
				require.NoError(t, set(w, scope.Limits{Waiting: 1}))
				n, err = w.F.Add(ctx, es[3])
				require.Zero(t, n)
				harness.RefusedEntries(t, err, 0)
				// two go
				for range 2 {
					w.Fetched(w.Next(), 0, frontier.Outcome{})
				}
				n, err = w.F.Add(ctx, es[3])
				require.Zero(t, n)
				harness.RefusedEntries(t, err, 0)
				l := w.Next()
				got, err = w.F.DoneContext(ctx, l, frontier.Outcome{Add: []frontier.Entry{es[4], es[3], {URL: "http://a.x.example/0"}, {URL: "x"}}})
				require.NoError(t, err)
				require.Len(t, got, 2)
				require.Equal(t, 1, got[0].Index)
				require.ErrorIs(t, got[0], frontier.ErrLimit)
				require.Equal(t, 3, got[1].Index)
				require.EqualValues(t, 1, w.F.Stats().Waiting)
				require.NoError(t, clearLimits(w, where))
				n, err = w.F.Add(ctx, es[3])
				require.NoError(t, err)
				require.Equal(t, 1, n)
				require.False(t, w.Info("a.x.example").Full)
				require.Equal(t, 2, w.Served(frontier.Outcome{}))
			})
		})
	}
}

// Depth refuses what is scheduled as well, but not what is forced.
func TestLimitOfDepthInEachPlace(t *testing.T) {
	ctx := context.Background()
	for where, set := range limitSetters {
		t.Run(where, func(t *testing.T) {
			harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
				require.NoError(t, set(w, scope.Limits{Depth: 2}))
				var es []frontier.Entry
				for d := range 5 {
					es = append(es, frontier.Entry{URL: fmt.Sprintf("http://a.x.example/%d", d), Depth: d})
				}
				es = append(es, frontier.Entry{URL: "http://a.x.example/s", Depth: 9, NotBefore: harness.Dawn.Add(time.Hour)}, frontier.Entry{URL: "http://a.x.example/big", Depth: 1 << 30})
				n, err := w.F.Add(ctx, es...)
				require.Equal(t, 3, n)
				harness.RefusedEntries(t, err, 3, 4, 5, 6)
				require.Equal(t, 3, w.Served(frontier.Outcome{}))
				es[3].Force = true
				n, err = w.F.Add(ctx, es[3])
				require.NoError(t, err)
				require.Equal(t, 1, n)
				require.Equal(t, 1, w.Served(frontier.Outcome{}))
				require.NoError(t, set(w, scope.Limits{Depth: math.MaxInt}))
				n, err = w.F.Add(ctx, es[4], es[5], es[6])
				require.NoError(t, err)
				require.Equal(t, 3, n)
			})
		})
	}
}
