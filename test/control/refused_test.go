// This file uses the controls wrongly: what is refused changes nothing.

package control

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever a control is given that is wrong, it says so, and all is as it was.
func TestRefusedControlsChangeNothing(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	long := strings.Repeat("x", 256)
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(time.Second)}, func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 3)
		f, host, dom := w.F, scope.Host("a.example"), scope.Domain("example")
		require.NoError(t, f.UpdateRule(host, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(2 * time.Second) }))
		require.NoError(t, f.UpdateRule(dom, func(r *frontier.Rule) { r.Concurrency = 2 }))
		require.NoError(t, f.BlockUntil(scope.Host("b.example"), harness.Dawn.Add(time.Hour)))
		require.NoError(t, f.UpdateRule(dom, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 100} }))
		require.NoError(t, f.SetGroup("g", frontier.GroupSettings{Concurrency: 2}))
		require.NoError(t, f.Assign("a.example", "g"))
		require.NoError(t, f.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 2} }))
		l := w.Next()
		before := w.Known("a.example", "b.example")
		ctx := context.Background()
		var delays []frontier.DelayPolicy
		for _, d := range []time.Duration{-1, math.MinInt64, math.MaxInt64, 721 * time.Hour} {
			delays = append(delays, frontier.FixedDelay(d))
		}
		delays = append(delays, frontier.FactorDelay(nan, time.Second, time.Second), frontier.FactorDelay(inf, time.Second, time.Second), frontier.FactorDelay(-inf, time.Second, time.Second), frontier.FactorDelay(-1, time.Second, time.Second),
			frontier.FactorDelay(1, 2*time.Second, time.Second), frontier.FactorDelay(1, -time.Second, time.Second), frontier.FactorDelay(1, 0, math.MaxInt64))
		type row struct {
			name string
			err  error
		}
		var rows []row
		add := func(err error, format string, a ...any) { rows = append(rows, row{fmt.Sprintf(format, a...), err}) }
		for i, d := range delays {
			add(f.UpdateRule(host, func(r *frontier.Rule) { r.Delay = d }), "delay %d", i)
			add(f.SetGroup("g", frontier.GroupSettings{Delay: d}), "group delay %d", i)
			add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Delay: d, Concurrency: 5} }), "rule delay %d", i)
		}
		for _, n := range []int{-1, math.MinInt, 1025, 1e9, math.MaxInt} {
			add(f.UpdateRule(host, func(r *frontier.Rule) { r.Concurrency = n }), "concurrency %d", n)
			add(f.SetGroup("g", frontier.GroupSettings{Concurrency: n}), "group concurrency %d", n)
			add(f.UpdateRule(dom, func(rule *frontier.Rule) { *rule = frontier.Rule{Concurrency: n, Paused: scope.On} }), "rule concurrency %d", n)
			add(f.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { *r = frontier.Rule{Weight: n} }), "weight %d", n)
			add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priority = n }), "priority %d", n)
		}
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priority = 9 }), "priority 9")
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priority = frontier.Immediate }), "priority immediate")
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priorities[9] = 1 }), "from 9")
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priorities[0] = 1 }), "from 0")
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priorities[1] = 255 }), "to 255")
		add(f.UpdateRule(host, func(r *frontier.Rule) { r.Priorities[1] = 9 }), "to 9")
		add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Priority: 9} }), "rule priority")
		add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Priority: -1} }), "rule priority")
		add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Priorities: frontier.PriorityMap{1: 9}} }), "rule priorities")
		add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Priorities: frontier.PriorityMap{11: 1}} }), "rule priorities of what is not")
		for _, at := range []time.Time{{}, harness.Dawn, harness.Dawn.Add(-1), harness.Dawn.AddDate(-1000, 0, 0), harness.Dawn.AddDate(9000, 0, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0), harness.Dawn.AddDate(200, 0, 0)} {
			add(f.BlockUntil(host, at), "block until %v", at)
			if !at.IsZero() {
				add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{BlockedUntil: at} }), "rule until %v", at)
			}
		}
		for _, s := range []scope.Scope{scope.Host(""), scope.Domain(""), scope.Host(long), scope.Domain(long)} {
			add(f.Pause(s), "pause %.20q", s)
			add(f.Resume(s), "resume %.20q", s)
			add(f.Clear(s), "clear %.20q", s)
			add(f.BlockUntil(s, harness.Dawn.Add(time.Hour)), "block %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(0) }), "delay %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 2 }), "conc %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.Priority = 2 }), "prio %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.Priorities[2] = 3 }), "reprio %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} }), "limits %.20q", s)
			add(f.UpdateRule(s, func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} }), "host limits %.20q", s)
			_, err := f.Delete(ctx, s)
			add(err, "delete %.20q", s)
			err = nil
			for _, e := range inspect.New(f).URLs(ctx, s, "") {
				err = e
			}
			add(err, "urls %.20q", s)
			for x := range inspect.New(f).Hosts(s, "") {
				assert.Fail(t, "hosts", "%v", x)
			}
		}
		for _, name := range []string{"", long} {
			add(f.SetGroup(name, frontier.GroupSettings{Concurrency: 1}), "set group %.20q", name)
			add(f.Assign(name, "g"), "assign %.20q", name)
			add(f.Forget(name), "forget %.20q", name)
			_, err := inspect.New(f).Host(ctx, name)
			add(err, "host %.20q", name)
			x := l
			add(f.Join(&x, name), "join %.20q", name)
			assert.Equal(t, l, x)
			_, ok := inspect.New(f).Group(name)
			assert.False(t, ok)
		}
		add(f.Assign("a.example", long), "assign to long")
		for i, lim := range []scope.Limits{{Waiting: -1}, {Served: -1}, {Bytes: math.MinInt64}, {Errors: -1}, {Depth: -1}, {Period: -1}, {Period: time.Hour}, {Waiting: 1, Depth: 1, Period: time.Hour}, {Served: 1, Period: 1}, {Served: 1, Period: math.MaxInt64}} {
			add(f.UpdateRule(host, func(r *frontier.Rule) { r.Limits = lim }), "limits %d", i)
			add(f.UpdateRule(host, func(r *frontier.Rule) { r.HostLimits = lim }), "host limits %d", i)
			add(f.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { r.Limits = lim }), "crawl limits %d", i)
			add(f.UpdateRule(host, func(rule *frontier.Rule) { *rule = frontier.Rule{Limits: lim} }), "rule limits %d", i)
			add(f.UpdateRule(scope.Crawl(3), func(r *frontier.Rule) { *r = frontier.Rule{Limits: lim} }), "crawl settings %d", i)
		}
		for _, r := range rows {
			if assert.Error(t, r.err, r.name) {
				assert.True(t, strings.HasPrefix(r.err.Error(), "frontier: "), "%s: %v", r.name, r.err)
				assert.Less(t, len(r.err.Error()), 600, r.name)
			}
		}
		require.Equal(t, before, w.Known("a.example", "b.example"))
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	})
}
