// This file tests what is stored of rules.

package frontier

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/scope"
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
	r.Paused = rapid.SampledFrom([]scope.Switch{scope.Unset, scope.On, scope.Off}).Draw(t, "paused")
	r.Held = rapid.Bool().Draw(t, "held")
	if rapid.Bool().Draw(t, "blocked") {
		r.BlockedUntil = start.Add(time.Duration(rapid.IntRange(1, 1e6).Draw(t, "s")) * time.Second)
	}
	return r
}

func drawScope(t *rapid.T) scope.Scope {
	name := rapid.SampledFrom([]string{
		"example.org", "www.example.org", "org", "a-b.example.org", "example.com", "127.0.0.1", "2001:db8::1", "host:80", ".org", "org.", "!", "x",
	}).Draw(t, "name")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return scope.All()
	case 1, 2:
		return scope.Domain(name)
	}
	return scope.Host(name)
}

// Each rule comes back from the store as it was.
func TestRuleRows(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		s, r, ended := drawScope(t), drawRule(t, start), int64(0)
		require.NoError(t, r.check(start, 10))
		if r.HostLimits != (scope.Limits{}) {
			ended = rapid.Int64().Draw(t, "ended")
		}
		stored := r.stored()
		stored.Ended = ended
		written := stored.Row(s.Hosts().Key())
		if r == (Rule{}) {
			require.Nil(t, written.Value)
			return
		}
		require.Equal(t, row.RuleKey, written.Key[:len(row.RuleKey)])
		gotS, gotRow, err := row.ParseRule(written.Key[len(row.RuleKey):], written.Value)
		require.NoError(t, err)
		require.Equal(t, s, scope.Of(gotS))
		require.Equal(t, stored, gotRow)
		got := ruleStored(&gotRow)
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

// Rules are returned as they were said, to the nanosecond.
func TestRulesAreReturnedAsSaid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := Open(context.Background(), Options{HostKey: func(u string) (string, error) { return HostName(u) }})
		require.NoError(t, err)
		rules, later := map[scope.Scope]Rule{}, time.Now().Add(time.Hour)
		for range rapid.IntRange(0, 5).Draw(t, "rules") {
			s, r := drawScope(t), drawRule(t, later)
			require.NoError(t, f.UpdateRule(s, func(rule *Rule) { *rule = r }))
			if rules[s] = r; r == (Rule{}) {
				delete(rules, s)
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
		s := scope.Host("www.example.org")
		r := drawRule(t, later)
		require.NoError(t, f.UpdateRule(s, func(rule *Rule) { *rule = r }))
		for wider := range rules {
			require.NoError(t, f.Clear(wider))
		}
		if _, cleared := rules[s]; !cleared {
			require.Equal(t, r, f.RuleOf("www.example.org"))
		}
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
}
