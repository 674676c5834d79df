// This file tests rules: which scope's setting a host has, what is stored of
// them, and that changes which meet all count.

package frontier

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawRule draws a rule that may be set at start.
func drawRule(t *rapid.T, start time.Time) (r Rule) {
	switch rapid.IntRange(0, 2).Draw(t, "delay") {
	case 1:
		r.Delay = FixedDelay(time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(maxDelay)).Draw(t, "fixed")))
	case 2:
		lo := time.Duration(rapid.Int64Range(0, int64(maxDelay/time.Millisecond)).Draw(t, "min")) * time.Millisecond
		r.Delay = FactorDelay(rapid.Float64Range(0, 1e6).Draw(t, "k"), lo, lo+(maxDelay-lo)/2)
	}
	r.Concurrency = rapid.SampledFrom([]int{0, 1, 2, maxConcurrency}).Draw(t, "concurrency")
	r.Paused = rapid.SampledFrom([]Switch{Unset, On, Off}).Draw(t, "paused")
	r.Held = rapid.Bool().Draw(t, "held")
	if rapid.Bool().Draw(t, "blocked") {
		r.BlockedUntil = start.Add(time.Duration(rapid.IntRange(1, 1e6).Draw(t, "s")) * time.Second)
	}
	return r
}

func drawScope(t *rapid.T) Scope {
	name := rapid.SampledFrom([]string{
		"example.org", "www.example.org", "org", "a-b.example.org", "example.com", "127.0.0.1", "2001:db8::1", "host:80", ".org", "org.", "!", "x",
	}).Draw(t, "name")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return All()
	case 1, 2:
		return Domain(name)
	}
	return Host(name)
}

// Each rule comes back from the store as it was.
func TestRuleRows(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		s, r, ended := drawScope(t), drawRule(t, start), int64(0)
		require.NoError(t, r.check(start))
		if r.HostLimits != (Limits{}) {
			ended = rapid.Int64().Draw(t, "ended")
		}
		stored := storedRule(&r, ended)
		written := stored.Row(s.ruleKey())
		if r.empty() {
			require.Nil(t, written.Value)
			return
		}
		require.Equal(t, row.RuleKey, written.Key[:len(row.RuleKey)])
		gotS, gotRow, err := row.ParseRule(written.Key[len(row.RuleKey):], written.Value)
		require.NoError(t, err)
		require.Equal(t, s, scopeStored(gotS))
		require.Equal(t, stored, gotRow)
		got := ruleOf(&gotRow)
		require.True(t, r.BlockedUntil.Equal(got.BlockedUntil))
		got.BlockedUntil = r.BlockedUntil
		require.Equal(t, r, got)
		if n := rapid.IntRange(0, len(written.Value)-1).Draw(t, "cut"); n > 0 {
			if _, cut, err := row.ParseRule(written.Key[2:], written.Value[:n]); err == nil {
				require.NotEqual(t, stored, cut, "a piece of a row is not the whole")
			}
		}
	})
}

// A host has each setting of the most specific scope that sets it, whatever else
// is set there.
func TestMostSpecificSettingCounts(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Now()
		f, err := Open(ctx, Options{HostKey: func(u string) (string, error) { return HostName(u) }})
		require.NoError(t, err)
		rules := map[Scope]Rule{}
		for range rapid.IntRange(0, 12).Draw(t, "rules") {
			s, r := drawScope(t), drawRule(t, start.Add(time.Hour))
			require.NoError(t, f.UpdateRule(s, func(rule *Rule) { *rule = r }))
			if r.empty() {
				delete(rules, s)
			} else {
				rules[s] = r
			}
		}
		n := 0
		for s, r := range f.Rules() {
			require.Equal(t, rules[s], r, "%v", s)
			got, ok := f.Rule(s)
			require.True(t, ok)
			require.Equal(t, r, got)
			n++
		}
		require.Len(t, rules, n)
		for _, host := range []string{"example.org", "www.example.org", "a.www.example.org", "x", "127.0.0.1", "0.0.127", "host:80", ".org", "y.org."} {
			require.Equal(t, naiveEffective(rules, host), f.RuleOf(host), host)
		}
		require.NoError(t, f.Close())
	})
}

// naiveEffective goes through all scopes of a host, the most specific first.
func naiveEffective(rules map[Scope]Rule, host string) (out Rule) {
	scopes := []Scope{Host(host), Domain(host)}
	for at := host; host != "127.0.0.1" && strings.Contains(at, "."); {
		_, at, _ = strings.Cut(at, ".")
		scopes = append(scopes, Domain(at))
	}
	for _, s := range append(scopes, All()) {
		r := rules[s]
		if out.Delay == nil {
			out.Delay = r.Delay
		}
		if out.Concurrency == 0 {
			out.Concurrency = r.Concurrency
		}
		runs := out.Paused == Off
		if out.Paused == Unset {
			out.Paused = r.Paused
		}
		out.Held = out.Held || r.Held && !runs
		if out.BlockedUntil.IsZero() && !runs {
			out.BlockedUntil = r.BlockedUntil
		}
	}
	return out
}

// A look-up happens for each hand-out: it takes no memory, with rules or without.
func TestRuleLookUpTakesNoMemory(t *testing.T) {
	var c controls
	host := []byte("www.a.example.org")
	look := func() { c.Concurrency(host) }
	require.Zero(t, testing.AllocsPerRun(100, look))
	for i := range 1000 {
		s := Domain(fmt.Sprintf("%d.example", i))
		c.put(&scopeRule{key: s.ruleKey(), scope: s, Rule: Rule{Concurrency: 2}})
	}
	c.put(&scopeRule{key: Domain("example.org").ruleKey(), Rule: Rule{Concurrency: 3}})
	require.Equal(t, 3, c.Concurrency(host))
	require.Zero(t, testing.AllocsPerRun(100, look))
}

// BenchmarkRules has a rule for each of n domains.
func BenchmarkRules(b *testing.B) {
	put := func(c *mercator.Core, rules *controls, r *scopeRule) {
		old := rules.put(r)
		c.Ruled(r.scope.stored(), old.block(), r.until, r.stops(), 0)
	}
	filled := func(n int) (*mercator.Core, *controls, []*scopeRule) {
		c, all, rules := mercator.New(mercator.Config{Levels: 8}), &controls{}, make([]*scopeRule, n)
		for i := range rules {
			s := Domain(fmt.Sprintf("d%d.example.com", i))
			rules[i] = &scopeRule{key: s.ruleKey(), scope: s, Rule: Rule{Paused: On}, until: instant.None}
			put(c, all, rules[i])
		}
		return c, all, rules
	}
	for _, n := range []int{1000, 1000000} {
		sized := func(op string) string { return fmt.Sprintf("op=%s/n=%d", op, n) }
		for op, host := range map[string]string{"known": "www.d7.example.com", "unknown": "www.example.org"} {
			b.Run(sized(op), func(b *testing.B) {
				_, all, _ := filled(n)
				name := []byte(host)
				for b.Loop() {
					all.Withholds(name, 0)
				}
			})
		}
		b.Run(sized("pause"), func(b *testing.B) {
			c, all, rules := filled(n)
			for i := 0; b.Loop(); i++ {
				x := *rules[i*7919%n]
				x.Paused ^= On ^ Off
				put(c, all, &x)
			}
		})
		b.Run(sized("block"), func(b *testing.B) {
			c, all, rules := filled(n)
			for i := 0; b.Loop(); i++ {
				x := *rules[i*7919%n]
				x.until = 1 + int64(i)*104729%(1<<40)
				x.BlockedUntil = time.Unix(0, x.until)
				put(c, all, &x)
				rules[i*7919%n] = &x
			}
		})
	}
}
