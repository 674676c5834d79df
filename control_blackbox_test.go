// This file uses the controls as an outsider does who gets them wrong: what is
// refused changes nothing.

package frontier_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// known is all that a frontier tells of itself, to be compared.
func (w *world) known(hosts ...string) string {
	w.Helper()
	var b strings.Builder
	b.WriteString(timeless(w.export()))
	for s, r := range w.f.Rules() {
		fmt.Fprintf(&b, "%v %+v\n", s, r)
	}
	for _, h := range hosts {
		x, err := w.f.Host(context.Background(), h)
		fmt.Fprintf(&b, "%+v %v\n", x, err)
	}
	for _, c := range w.f.Crawls() {
		s, _ := w.f.CrawlStats(c)
		fmt.Fprintf(&b, "%d %+v\n", c, s)
	}
	g, ok := w.f.Group("g")
	fmt.Fprintf(&b, "%+v %v", g, ok)
	return b.String()
}

// Whatever a control is given that is wrong, it says so, and all is as it was.
func TestRefusedControlsChangeNothing(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	long := strings.Repeat("x", 256)
	inBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(sec)}, func(t *testing.T, w *world) {
		w.addMany("a.example", 3)
		f, host, dom := w.f, frontier.Host("a.example"), frontier.Domain("example")
		require.NoError(t, f.SetDelay(host, frontier.FixedDelay(2*sec)))
		require.NoError(t, f.SetConcurrency(dom, 2))
		require.NoError(t, f.BlockUntil(frontier.Host("b.example"), dawn.Add(time.Hour)))
		require.NoError(t, f.SetLimits(dom, frontier.Limits{Served: 100}))
		require.NoError(t, f.SetGroup("g", frontier.GroupSettings{Concurrency: 2}))
		require.NoError(t, f.Assign("a.example", "g"))
		require.NoError(t, f.SetCrawl(3, frontier.CrawlSettings{Weight: 2}))
		l := w.next()
		before := w.known("a.example", "b.example")
		ctx := context.Background()
		var delays []frontier.DelayPolicy
		for _, d := range []time.Duration{-1, math.MinInt64, math.MaxInt64, 721 * time.Hour} {
			delays = append(delays, frontier.FixedDelay(d))
		}
		delays = append(delays, frontier.FactorDelay(nan, sec, sec), frontier.FactorDelay(inf, sec, sec), frontier.FactorDelay(-inf, sec, sec), frontier.FactorDelay(-1, sec, sec),
			frontier.FactorDelay(1, 2*sec, sec), frontier.FactorDelay(1, -sec, sec), frontier.FactorDelay(1, 0, math.MaxInt64))
		type row struct {
			name string
			err  error
		}
		var rows []row
		add := func(err error, format string, a ...any) { rows = append(rows, row{fmt.Sprintf(format, a...), err}) }
		for i, d := range delays {
			add(f.SetDelay(host, d), "delay %d", i)
			add(f.SetGroup("g", frontier.GroupSettings{Delay: d}), "group delay %d", i)
			add(f.SetRule(host, frontier.Rule{Delay: d, Concurrency: 5}), "rule delay %d", i)
		}
		for _, n := range []int{-1, math.MinInt, 1025, 1e9, math.MaxInt} {
			add(f.SetConcurrency(host, n), "concurrency %d", n)
			add(f.SetGroup("g", frontier.GroupSettings{Concurrency: n}), "group concurrency %d", n)
			add(f.SetRule(dom, frontier.Rule{Concurrency: n, Paused: frontier.On}), "rule concurrency %d", n)
			add(f.SetCrawl(3, frontier.CrawlSettings{Weight: n}), "weight %d", n)
			add(f.SetPriority(host, n), "priority %d", n)
			add(f.Reprioritize(host, n, 1), "reprioritize from %d", n)
			add(f.Reprioritize(host, 1, n), "reprioritize to %d", n)
		}
		add(f.SetPriority(host, 9), "priority 9")
		add(f.SetPriority(host, frontier.Immediate), "priority immediate")
		add(f.Reprioritize(host, 9, 1), "from 9")
		add(f.Reprioritize(host, 0, 1), "from 0")
		add(f.Reprioritize(host, 1, 9), "to 9")
		add(f.SetRule(host, frontier.Rule{Priority: 9}), "rule priority")
		add(f.SetRule(host, frontier.Rule{Priority: -1}), "rule priority")
		add(f.SetRule(host, frontier.Rule{Priorities: frontier.Priorities{9}}), "rule priorities")
		add(f.SetRule(host, frontier.Rule{Priorities: frontier.Priorities{10: 1}}), "rule priorities of what is not")
		for _, at := range []time.Time{{}, dawn, dawn.Add(-1), dawn.AddDate(-1000, 0, 0), dawn.AddDate(9000, 0, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0), dawn.AddDate(200, 0, 0)} {
			add(f.BlockUntil(host, at), "block until %v", at)
			if !at.IsZero() {
				add(f.SetRule(host, frontier.Rule{BlockedUntil: at}), "rule until %v", at)
			}
		}
		for _, s := range []frontier.Scope{frontier.Host(""), frontier.Domain(""), frontier.Host(long), frontier.Domain(long)} {
			add(f.Pause(s), "pause %.20q", s)
			add(f.Resume(s), "resume %.20q", s)
			add(f.Clear(s), "clear %.20q", s)
			add(f.BlockUntil(s, dawn.Add(time.Hour)), "block %.20q", s)
			add(f.SetDelay(s, frontier.FixedDelay(0)), "delay %.20q", s)
			add(f.SetConcurrency(s, 2), "conc %.20q", s)
			add(f.SetPriority(s, 2), "prio %.20q", s)
			add(f.Reprioritize(s, 2, 3), "reprio %.20q", s)
			add(f.SetLimits(s, frontier.Limits{Served: 1}), "limits %.20q", s)
			add(f.SetHostLimits(s, frontier.Limits{Served: 1}), "host limits %.20q", s)
			_, err := f.Delete(ctx, s)
			add(err, "delete %.20q", s)
			err = nil
			for _, e := range f.URLs(ctx, s, "") {
				err = e
			}
			add(err, "urls %.20q", s)
			for x := range f.Hosts(s, "") {
				assert.Fail(t, "hosts", "%v", x)
			}
		}
		for _, name := range []string{"", long} {
			add(f.SetGroup(name, frontier.GroupSettings{Concurrency: 1}), "set group %.20q", name)
			add(f.Assign(name, "g"), "assign %.20q", name)
			add(f.Forget(name), "forget %.20q", name)
			_, err := f.Host(ctx, name)
			add(err, "host %.20q", name)
			x := l
			add(f.Join(&x, name), "join %.20q", name)
			assert.Equal(t, l, x)
			_, ok := f.Group(name)
			assert.False(t, ok)
		}
		add(f.Assign("a.example", long), "assign to long")
		for i, lim := range []frontier.Limits{{Waiting: -1}, {Served: -1}, {Bytes: math.MinInt64}, {Errors: -1}, {Depth: -1}, {Period: -1}, {Served: 1, Period: 1}, {Served: 1, Period: math.MaxInt64}} {
			add(f.SetLimits(host, lim), "limits %d", i)
			add(f.SetHostLimits(host, lim), "host limits %d", i)
			add(f.SetCrawlLimits(3, lim), "crawl limits %d", i)
			add(f.SetRule(host, frontier.Rule{Limits: lim}), "rule limits %d", i)
			add(f.SetCrawl(3, frontier.CrawlSettings{Limits: lim}), "crawl settings %d", i)
		}
		for _, r := range rows {
			if assert.Error(t, r.err, r.name) {
				assert.True(t, strings.HasPrefix(r.err.Error(), "frontier: "), "%s: %v", r.name, r.err)
				assert.Less(t, len(r.err.Error()), 600, r.name)
			}
		}
		require.Equal(t, before, w.known("a.example", "b.example"))
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	})
}

// After Close every call fails with ErrClosed, and those that cannot fail answer.
func TestEveryCallAfterClose(t *testing.T) {
	inBothWorlds(t, frontier.Options{}, func(t *testing.T, w *world) {
		w.addMany("a.example", 3)
		l := w.next()
		f := w.f
		require.NoError(t, f.Close())
		ctx := context.Background()
		s := frontier.Host("a.example")
		errs := map[string]error{}
		two := func(name string) func(any, error) { return func(_ any, err error) { errs[name] = err } }
		two("Add")(f.Add(ctx, frontier.Entry{URL: "http://b.example/"}))
		two("Add none")(f.Add(ctx))
		two("CrawlNow")(f.CrawlNow(ctx, frontier.Entry{URL: "http://b.example/"}))
		two("Next")(f.Next(ctx))
		_, _, errs["TryNext"] = f.TryNext()
		two("Contact")(f.Contact(ctx, "a.example"))
		errs["Done"] = f.Done(l, frontier.Outcome{})
		two("HandBack")(f.HandBack(l))
		errs["Extend"] = f.Extend(&l, time.Minute)
		errs["Join"] = f.Join(&l, "g")
		errs["Assign"] = f.Assign("a.example", "g")
		errs["SetGroup"] = f.SetGroup("g", frontier.GroupSettings{Concurrency: 2})
		errs["Pause"] = f.Pause(s)
		errs["Resume"] = f.Resume(s)
		errs["BlockUntil"] = f.BlockUntil(s, dawn.Add(time.Hour))
		errs["SetDelay"] = f.SetDelay(s, frontier.FixedDelay(1))
		errs["SetConcurrency"] = f.SetConcurrency(s, 2)
		errs["SetPriority"] = f.SetPriority(s, 2)
		errs["Reprioritize"] = f.Reprioritize(s, 2, 3)
		errs["SetLimits"] = f.SetLimits(s, frontier.Limits{Served: 1})
		errs["SetHostLimits"] = f.SetHostLimits(s, frontier.Limits{Served: 1})
		errs["SetCrawl"] = f.SetCrawl(1, frontier.CrawlSettings{Weight: 2})
		errs["SetCrawlLimits"] = f.SetCrawlLimits(1, frontier.Limits{Served: 1})
		errs["SetRule"] = f.SetRule(s, frontier.Rule{Concurrency: 1})
		errs["Clear"] = f.Clear(s)
		errs["Forget"] = f.Forget("a.example")
		two("Delete")(f.Delete(ctx, s))
		two("DeleteCrawl")(f.DeleteCrawl(ctx, 1))
		two("Host")(f.Host(ctx, "a.example"))
		two("Status")(f.Status(ctx, 0, "http://a.example/1"))
		two("PeekDue")(f.PeekDue(ctx, 3))
		errs["Export"] = f.Export(ctx, &strings.Builder{}, frontier.ExportOptions{})
		two("Import")(f.Import(ctx, strings.NewReader("http://a.example/"), frontier.ImportOptions{}))
		errs["Drain"] = f.Drain(ctx)
		for _, err := range f.URLs(ctx, s, "") {
			errs["URLs"] = err
		}
		for name, err := range errs {
			assert.ErrorIs(t, err, frontier.ErrClosed, name)
		}
		f.Stats()
		f.Group("g")
		f.CrawlStats(0)
		f.Crawls()
		f.Used(s)
		f.Rule(s)
		f.RuleOf("a.example")
		f.DelayOf("a.example")
		for range f.Rules() {
		}
		for range f.Hosts(s, "") {
		}
		for range f.HostNames(s, "") {
		}
		f.Largest(3)
		f.NextDue(3)
		_ = f.Var().String()
		require.NoError(t, f.Close())
		w.f = nil
		w.open()
	})
}
