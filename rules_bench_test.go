// This file asks what rules cost: looking one up, setting one, and keeping hosts
// aside. n is how many rules or held hosts there are.

package frontier

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRules has a rule for each of n domains.
func BenchmarkRules(b *testing.B) {
	filled := func(n int) (*scheduler, []*scopeRule) {
		c, rules := benchScheduler(), make([]*scopeRule, n)
		for i := range rules {
			s := Domain(fmt.Sprintf("d%d.example.com", i))
			rules[i] = &scopeRule{key: s.ruleKey(), scope: s, Rule: Rule{Paused: On}}
			c.ruled(c.controls.put(rules[i]), rules[i], 0)
		}
		return c, rules
	}
	look := func(host string) func(b *testing.B, n int) {
		return func(b *testing.B, n int) {
			c, _ := filled(n)
			name := []byte(host)
			for b.Loop() {
				c.controls.withholds(name, 0)
			}
		}
	}
	forSizes(b, "op=known", look("www.d7.example.com"))
	forSizes(b, "op=unknown", look("www.example.org"))
	forSizes(b, "op=pause", func(b *testing.B, n int) {
		c, rules := filled(n)
		r := benchRand()
		for b.Loop() {
			x := *rules[r.IntN(n)]
			x.Paused ^= On ^ Off
			c.ruled(c.controls.put(&x), &x, 0)
		}
	})
	forSizes(b, "op=block", func(b *testing.B, n int) {
		c, rules := filled(n)
		r := benchRand()
		for b.Loop() {
			i := r.IntN(n)
			x := *rules[i]
			x.until = 1 + r.Int64N(benchSpan)
			x.BlockedUntil = time.Unix(0, x.until)
			c.ruled(c.controls.put(&x), &x, 0)
			rules[i] = &x
		}
	})
}

// BenchmarkHeld has n paused hosts.
func BenchmarkHeld(b *testing.B) {
	filled := func(n int) (*scheduler, []uint32) {
		c, url := benchScheduler(), benchURL()
		pause := &scopeRule{key: All().ruleKey(), Rule: Rule{Paused: On}}
		c.ruled(c.controls.put(pause), pause, 0)
		names, hashes := benchHosts(n)
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = c.ensure(hashes[i], names[i])
			c.pushTail(c.queueOf(ids[i], 0, 1), c.records.Store(uint64(i+1), url), 0)
			c.detach(ids[i])
			c.withhold(ids[i], 0)
		}
		return c, ids
	}
	// One host is let go, and found to be held when its turn comes.
	forSizes(b, "op=aside", func(b *testing.B, n int) {
		c, ids := filled(n)
		r := benchRand()
		for b.Loop() {
			id := ids[r.IntN(n)]
			c.detach(id)
			c.settle(id, 0)
			c.detach(id)
			c.withhold(id, 0)
		}
	})
	// As many as under one lock are looked at again, and stay.
	forSizes(b, "op=recheck", func(b *testing.B, n int) {
		c, _ := filled(n)
		for b.Loop() {
			if len(c.withheld.rechecks) == 0 {
				c.withheld.rechecks = append(c.withheld.rechecks, recheck{})
			}
			c.expireWithheld(0)
		}
	})
	// The same, and all of them go.
	b.Run("op=release", func(b *testing.B) {
		n := 100_000
		c, ids := filled(n)
		pause, run := &scopeRule{Rule: Rule{Paused: On}}, &scopeRule{}
		left := 0
		for b.Loop() {
			if left == 0 {
				b.StopTimer()
				c.ruled(c.controls.put(pause), pause, 0)
				for _, id := range ids {
					c.detach(id)
					c.withhold(id, 0)
				}
				c.withheld.rechecks = nil
				c.ruled(c.controls.put(run), run, 0)
				left = n
				b.StartTimer()
			}
			c.expireWithheld(0)
			left = c.places[withheld]
		}
	})
}
