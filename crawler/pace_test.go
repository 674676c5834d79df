// This file tests the bound on all requests together.

package crawler

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

// However many hosts there are, no more requests are sent than Options.MaxRate; what is
// handed back without one costs nothing.
func TestMaxRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := newWeb()
		var seeds []string
		for i := range 40 {
			u := fmt.Sprintf("http://h%d.example/", i)
			seeds = append(seeds, u, u+"secret")
			web.always(u, page())
			web.always(u+"robots.txt", text("User-agent: *\nDisallow: /secret\n"))
		}
		start := time.Now()
		p := crawl(t, web, frontier.Options{}, Options{MaxRate: 2, Workers: 8}, seeds...)
		assert.EqualValues(t, 40, p.Denied)
		log := web.requests("")
		assert.Len(t, log, 80)
		for i := range log {
			if j := i + 20; j < len(log) {
				assert.GreaterOrEqual(t, log[j].start.Sub(log[i].start), (20-8)*500*time.Millisecond)
			}
		}
		assert.GreaterOrEqual(t, time.Since(start), (80-8)*500*time.Millisecond)
		assert.Less(t, time.Since(start), 45*time.Second)
		web.checkPolite(t, fixedOwed)
	})
}

func TestBadMaxRate(t *testing.T) {
	for _, rate := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := New(nil, Options{MaxRate: rate})
		assert.ErrorContains(t, err, "want a finite number >= 0")
	}
	assert.Equal(t, 365*24*time.Hour, newPace(1e-300).gap)
	assert.EqualValues(t, 1, newPace(1e300).gap)
}
