package control

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/clock"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// longest is what the tests make of a stored delay.
type longest time.Duration

func (l longest) Max() time.Duration { return time.Duration(l) }

func newControls() *Controls {
	core := mercator.New(mercator.Config{Levels: 8})
	core.Clock = clock.New(nil)
	return New(core, func(d row.Delay) Policy {
		if d == (row.Delay{}) {
			return nil
		}
		return longest(d.Max)
	})
}

func (c *Controls) check(t require.TestingT) {
	c.Check(func(format string, args ...any) { require.Fail(t, fmt.Sprintf(format, args...)) })
}

// set puts a rule in force at the moment 0.
func (c *Controls) set(s row.Scope, r row.Rule) {
	x := &Rule{Scope: s, Rule: r, Block: instant.FromMillis(r.BlockedUntil)}
	c.Begin(x, 0, 0)
	c.Enforce(x, 0, 0)
}

func host(name string) row.Scope   { return row.Scope{Name: name, Named: true} }
func domain(name string) row.Scope { return row.Scope{Name: name, Named: true, Domain: true} }

var names = []string{"example.org", "www.example.org", "org", "a-b.example.org", "example.com", "127.0.0.1", "2001:db8::1", "host:80", ".org", "org.", "!", "x"}

func drawScope(t *rapid.T) row.Scope {
	name := rapid.SampledFrom(names).Draw(t, "name")
	return rapid.SampledFrom([]row.Scope{{}, domain(name), domain(name), host(name), host(name)}).Draw(t, "scope")
}

// drawRule draws a rule whose block ends up to 1000 s after start.
func drawRule(t *rapid.T, start time.Time) (r row.Rule) {
	if rapid.Bool().Draw(t, "delay") {
		r.Delay = row.Delay{Kind: row.Fixed, Max: rapid.SampledFrom([]time.Duration{0, time.Second}).Draw(t, "max")}
	}
	r.Concurrency = rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "concurrency")
	r.Paused = rapid.SampledFrom([]uint8{0, 0, on, off}).Draw(t, "paused")
	r.Held = rapid.Bool().Draw(t, "held")
	if rapid.Bool().Draw(t, "blocked") {
		r.BlockedUntil = start.Add(time.Duration(rapid.IntRange(10, 1000).Draw(t, "s")) * time.Second).UnixMilli()
	}
	r.Priority = rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "priority")
	if rapid.Bool().Draw(t, "mapped") {
		r.Priorities[rapid.IntRange(1, 8).Draw(t, "from")] = 7
	}
	r.Limits.Served = rapid.SampledFrom([]int64{0, 0, 1000}).Draw(t, "limit")
	r.HostLimits.Waiting = rapid.SampledFrom([]int64{0, 0, 500}).Draw(t, "host limit")
	return r
}

// A host has each setting of the most specific scope that sets it, whatever else is set there.
func TestMostSpecificSettingCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newControls()
		rules := map[row.Scope]row.Rule{}
		for range rapid.IntRange(0, 12).Draw(t, "rules") {
			s, r := drawScope(t), drawRule(t, c.core.Clock.Start())
			c.set(s, r)
			if rules[s] = r; r == (row.Rule{}) {
				delete(rules, s)
			}
		}
		c.check(t)
		now := int64(rapid.IntRange(0, 1000).Draw(t, "now")) * int64(time.Second)
		passed := func(r *row.Rule) {
			if r.BlockedUntil != 0 && c.core.Clock.Date(instant.FromMillis(r.BlockedUntil)) <= now {
				r.BlockedUntil = 0
			}
		}
		for s, r := range rules {
			if passed(&r); r == (row.Rule{}) {
				delete(rules, s)
				continue
			}
			rules[s] = r
			got, ok := c.Exactly(s, now)
			require.True(t, ok)
			require.Equal(t, r, got.Rule)
		}
		n := 0
		for r := range c.All(now) {
			require.Equal(t, rules[r.Scope], r.Rule)
			n++
		}
		require.Len(t, rules, n)
		for _, h := range append(names, "a.www.example.org", "0.0.127", "y.org.") {
			want := naiveEffective(rules, h)
			got := c.Effective(h, now)
			require.Equal(t, want, got.Rule, h)
			require.Equal(t, want.BlockedUntil, instant.Millis(got.Block))
			require.Equal(t, c.policy(want.Delay), c.Delay(h))
			require.Equal(t, want.Concurrency, c.Concurrency([]byte(h)))
			until, why := c.Withholds([]byte(h), now)
			switch {
			case want.Paused == on:
				require.Equal(t, mercator.WithheldPaused, why, h)
			case want.Held:
				require.Equal(t, mercator.WithheldSpent, why, h)
			case want.BlockedUntil != 0:
				require.Equal(t, mercator.WithheldBlocked, why, h)
			default:
				require.Equal(t, instant.None, until)
			}
		}
	})
}

// naiveEffective goes through all scopes of a host, the most specific first.
func naiveEffective(rules map[row.Scope]row.Rule, name string) (out row.Rule) {
	scopes := []row.Scope{host(name), domain(name)}
	for at := name; name != "127.0.0.1" && strings.Contains(at, "."); {
		_, at, _ = strings.Cut(at, ".")
		scopes = append(scopes, domain(at))
	}
	for _, s := range append(scopes, row.Scope{}) {
		r := rules[s]
		if out.Delay == (row.Delay{}) {
			out.Delay = r.Delay
		}
		if out.Concurrency == 0 {
			out.Concurrency = r.Concurrency
		}
		if out.Paused != off {
			out.Held = out.Held || r.Held
			if out.BlockedUntil == 0 {
				out.BlockedUntil = r.BlockedUntil
			}
		}
		if out.Paused == 0 {
			out.Paused = r.Paused
		}
		if out.Priority == 0 {
			for i, p := range r.Priorities {
				if out.Priorities[i] == 0 {
					out.Priorities[i] = p
				}
			}
			out.Priority = r.Priority
		}
		if out.Limits == (quota.Limits{}) {
			out.Limits = r.Limits
		}
		if out.HostLimits == (quota.Limits{}) {
			out.HostLimits = r.HostLimits
		}
	}
	return out
}

// The next change of a rule starts from the one under way; one that failed leaves nothing.
func TestChangesUnderWay(t *testing.T) {
	c, s := newControls(), host("a.example")
	first := &Rule{Scope: s, Rule: row.Rule{Concurrency: 2, Limits: quota.Limits{Served: 5}}}
	require.Len(t, c.Begin(first, 0, 0), 1)
	require.Equal(t, first.Rule, c.Latest(s, 0).Rule)
	_, ok := c.Exactly(s, 0)
	require.False(t, ok, "it is not durable")

	second := &Rule{Scope: s, Rule: row.Rule{Concurrency: 3}}
	require.Len(t, c.Begin(second, 0, 0), 2, "the row of what was used goes with the limits")
	require.Equal(t, Rule{until: instant.None}, c.Enforce(first, 0, 0))
	require.Equal(t, 2, c.Concurrency([]byte("a.example")))
	require.Equal(t, second.Rule, c.Latest(s, 0).Rule)
	c.Drop(second)
	require.Equal(t, first.Rule, c.Latest(s, 0).Rule)
	require.Empty(t, c.changes)
	c.check(t)

	x := &row.Crawl{ID: 5, CrawlSettings: row.CrawlSettings{Weight: 3, Paused: true}}
	c.BeginCrawl(x, 0, 0)
	require.Equal(t, x.CrawlSettings, c.LatestCrawl(5))
	c.DropCrawl(x)
	require.Equal(t, row.DefaultCrawl, c.LatestCrawl(5))
	c.BeginCrawl(x, 0, 0)
	c.EnforceCrawl(x, 0, 0)
	require.Equal(t, x.CrawlSettings, c.LatestCrawl(5))
	require.Empty(t, c.crawls)
}

// Of two changes under way, the row of the later says which periods ended under the earlier.
func TestPeriodsThatEnded(t *testing.T) {
	c, s := newControls(), domain("example")
	hour := quota.Limits{Served: 5, Period: time.Hour}
	c.set(s, row.Rule{HostLimits: hour})
	now := int64(3 * time.Hour)
	first, second := &Rule{Scope: s, Rule: row.Rule{HostLimits: quota.Limits{Served: 7}}}, &Rule{Scope: s, Rule: row.Rule{HostLimits: quota.Limits{Served: 8}}}
	c.Begin(first, 0, now)
	c.Begin(second, 0, now+int64(time.Hour))
	want := instant.Millis(c.core.Clock.Day(now - int64(time.Hour)))
	require.Equal(t, want, first.Ended)
	require.Equal(t, want, second.Ended, "limits without a period end none")
	c.Drop(first)
	c.Drop(second)

	other := newControls()
	require.True(t, other.Restore(s, first.Rule, 0, 0))
	require.False(t, other.Restore(host("b.example"), row.Rule{BlockedUntil: 5}, 0, 0), "its block has passed")
	other.check(t)
}

// A scope that is resumed must be set to run if one around it stops its hosts.
func TestWhatStopsAScope(t *testing.T) {
	c, www := newControls(), host("www.example.org")
	stops := func() bool { return c.WiderStops(www, 0) }
	require.False(t, stops())
	c.set(domain("org"), row.Rule{Paused: on})
	require.True(t, stops())
	c.set(domain("example.org"), row.Rule{Paused: off})
	require.False(t, stops())
	c.set(domain("www.example.org"), row.Rule{Held: true})
	require.True(t, stops())
	c.set(row.Scope{}, row.Rule{Paused: on})
	require.True(t, c.WiderStops(domain("com"), 0))
	require.False(t, c.WiderStops(row.Scope{}, 0), "nothing lies around all hosts")
	require.True(t, c.WiderStops(host("127.0.0.1"), 0))
}

// The end of a block leaves the other settings of its rule, or nothing.
func TestEndOfABlock(t *testing.T) {
	c := newControls()
	at := c.core.Clock.Start().Add(time.Hour).UnixMilli()
	c.set(host("a.example"), row.Rule{BlockedUntil: at})
	c.set(host("b.example"), row.Rule{BlockedUntil: at, Concurrency: 2})
	c.check(t)
	later := int64(2 * time.Hour)
	c.core.Advance(later)
	c.check(t)
	require.Equal(t, 1, c.rules.Load().Len())
	r, _ := c.Exactly(host("b.example"), later)
	require.Equal(t, row.Rule{Concurrency: 2}, r.Rule)
	require.False(t, c.Withholding())
}

// The settings of a group are looked up by name, and its row has its clock.
func TestGroups(t *testing.T) {
	c := newControls()
	require.Equal(t, Group{}, c.Group("g"))
	set := row.Group{Delay: row.Delay{Kind: row.Fixed, Max: time.Second}, Concurrency: 3}
	written := c.BeginGroup("g", set, 0)
	require.Equal(t, Group{}, c.Group("g"), "it is not durable")
	c.SetGroup("g", set)
	require.Equal(t, Group{set, longest(time.Second)}, c.Group("g"))
	require.Equal(t, mercator.GroupWant{Slots: 3, Delay: longest(time.Second)}, c.core.GroupSettings("g"))
	require.Equal(t, written, c.GroupRow("g", 0))
	for name, g := range c.Groups() {
		require.Equal(t, []any{"g", c.Group("g")}, []any{name, *g})
	}
	got, err := row.ParseGroup("g", c.GroupRow("g", 5).Value)
	require.NoError(t, err)
	require.EqualValues(t, 5, got.Due)
	c.SetGroup("g", row.Group{})
	require.Zero(t, c.groups.Load().Len())
}

// A look-up happens for each hand-out: it takes no memory, with rules or without.
func TestLookUpTakesNoMemory(t *testing.T) {
	c := newControls()
	name := "www.a.example.org"
	key := []byte(name)
	look := func() {
		c.Delay(name)
		c.Concurrency(key)
		c.Priority(key, 3)
		c.Withholds(key, 0)
		c.Group("g")
	}
	require.Zero(t, testing.AllocsPerRun(100, look))
	for i := range 1000 {
		c.set(domain(fmt.Sprintf("%d.example", i)), row.Rule{Concurrency: 2, Held: true})
	}
	c.set(domain("example.org"), row.Rule{Concurrency: 3, Priority: 2, Delay: row.Delay{Kind: row.Fixed, Max: time.Second}})
	c.SetGroup("g", row.Group{Concurrency: 2})
	require.Equal(t, 3, c.Concurrency(key))
	require.Equal(t, time.Second, c.Delay(name).Max())
	require.EqualValues(t, 2, c.Priority(key, 3))
	require.Zero(t, testing.AllocsPerRun(100, look))
}

// BenchmarkRules has a rule for each of n domains.
func BenchmarkRules(b *testing.B) {
	filled := func(n int) (*Controls, []*Rule) {
		c, rules := newControls(), make([]*Rule, n)
		for i := range rules {
			rules[i] = &Rule{Scope: domain(fmt.Sprintf("d%d.example.com", i)), Rule: row.Rule{Paused: on}, until: instant.None}
			c.put(rules[i], 0, 0)
		}
		return c, rules
	}
	for _, n := range []int{1000, 1000000} {
		sized := func(op string) string { return fmt.Sprintf("op=%s/n=%d", op, n) }
		for op, host := range map[string]string{"known": "www.d7.example.com", "unknown": "www.example.org"} {
			b.Run(sized(op), func(b *testing.B) {
				c, _ := filled(n)
				name := []byte(host)
				for b.Loop() {
					c.Withholds(name, 0)
				}
			})
		}
		b.Run(sized("pause"), func(b *testing.B) {
			c, rules := filled(n)
			for i := 0; b.Loop(); i++ {
				x := *rules[i*7919%n]
				x.Paused ^= on ^ off
				c.put(&x, 0, 0)
			}
		})
		b.Run(sized("block"), func(b *testing.B) {
			c, rules := filled(n)
			for i := 0; b.Loop(); i++ {
				x := *rules[i*7919%n]
				x.until = 1 + int64(i)*104729%(1<<40)
				x.Block = time.Unix(0, x.until)
				c.put(&x, 0, 0)
				rules[i*7919%n] = &x
			}
		})
	}
}
