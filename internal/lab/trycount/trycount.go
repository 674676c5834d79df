// Package trycount counts the tries and faults of a test, and logs them in a form that the command
// proof adds up.
package trycount

import (
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
)

// Count holds the numbers of tries and faults. A test that fails without a counted fault has a
// violation.
type Count struct{ Tried, Lost, Duplicated, Violations int64 }

// Add adds x to c.
func (c *Count) Add(x Count) {
	c.Tried += x.Tried
	c.Lost += x.Lost
	c.Duplicated += x.Duplicated
	c.Violations += x.Violations
}

// Faults is everything that went wrong.
func (c Count) Faults() int64 { return c.Lost + c.Duplicated + c.Violations }

// String is the line that Parse reads.
func (c Count) String() string {
	return fmt.Sprintf("tried=%d lost=%d duplicated=%d violations=%d", c.Tried, c.Lost, c.Duplicated, c.Violations)
}

var line = regexp.MustCompile(`proof: tried=(\d+) lost=(\d+) duplicated=(\d+) violations=(\d+)`)

// Parse adds up the counts in the output of tests that ran with -test.v.
func Parse(output []byte) (sum Count) {
	for _, m := range line.FindAllSubmatch(output, -1) {
		var n [4]int64
		for i := range n {
			n[i], _ = strconv.ParseInt(string(m[i+1]), 10, 64) // digits; too many of them are not written
		}
		sum.Add(Count{n[0], n[1], n[2], n[3]})
	}
	return sum
}

// Counter counts for one test. It is safe for concurrent use.
type Counter struct{ tried, lost, duplicated atomic.Int64 }

// Of returns a Counter that is logged when the test ends, passed or failed.
func Of(tb testing.TB) *Counter {
	t := &Counter{}
	tb.Cleanup(func() {
		c := Count{Tried: t.tried.Load(), Lost: t.lost.Load(), Duplicated: t.duplicated.Load()}
		if tb.Failed() && c.Faults() == 0 {
			c.Violations = 1
		}
		tb.Logf("proof: %v", c)
	})
	return t
}

// Tried notes n more tries: sequences, histories, kills, faults.
func (c *Counter) Tried(n int) { c.tried.Add(int64(n)) }

// Lost notes n URLs that were acknowledged and are gone.
func (c *Counter) Lost(n int) { c.lost.Add(int64(n)) }

// Duplicated counts n URLs that were handed out more often than at-least-once delivery explains.
func (c *Counter) Duplicated(n int) { c.duplicated.Add(int64(n)) }
