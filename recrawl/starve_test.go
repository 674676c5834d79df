package recrawl_test

import (
	"container/heap"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Half of all pages are one host's, a tenth change at every fetch, weights go from
// 1e-4 to 100: no page waits for longer than MaxInterval, the host keeps to its rate,
// and the others get what it leaves.
func TestNothingStarvesBesideAHostOfHalfOfAllPages(t *testing.T) {
	const n, perDay, hostPerDay, most, length = 600, 200., 40., 30, 150
	s := scheduler(t, recrawl.Options{Budget: perDay / 86400, MaxInterval: most * day})
	require.NoError(t, s.SetHostRate(1, hostPerDay/86400))
	weights := []float64{1e-4, 0.1, 1, 1, 10, 100}
	pages := make(byDue, n)
	number := map[recrawl.Page]int{}
	for i := range pages {
		pages[i], _ = s.Admit(weights[i/2%len(weights)], uint32(1+i%2*(1+i/2)), monday.Add(time.Duration(i)))
		number[pages[i]] = i // told apart by their due times
	}
	heap.Init(&pages)
	var last [n]time.Time
	var fetches [2]int
	for step := range int(length * perDay) {
		now := monday.Add(time.Duration(float64(step) / perDay * float64(day)))
		for !pages[0].Due.After(now) {
			p := pages[0]
			i := number[p]
			delete(number, p)
			q, when := s.Recheck(p, now)
			fetch := !when.After(now)
			if fetch {
				outcome := recrawl.Unchanged
				if i%10 == 0 || step%(1+i%7) == 0 {
					outcome = recrawl.Changed
				}
				q, _ = s.Done(q, recrawl.Visit{At: now, Outcome: outcome})
				if step > length/2*perDay {
					fetches[i%2]++
				}
				if !last[i].IsZero() {
					require.LessOrEqual(t, now.Sub(last[i]), (most+1)*day, "page %d", i)
				}
				last[i] = now
			} else {
				q.Due = when
			}
			for _, taken := number[q]; taken; _, taken = number[q] {
				q.Due = q.Due.Add(time.Microsecond)
			}
			number[q] = i
			pages[0] = q
			heap.Fix(&pages, 0)
			if fetch {
				break
			}
		}
	}
	end := monday.Add(length * day)
	for i, at := range last {
		assert.LessOrEqual(t, end.Sub(at), (most+1)*day, "page %d", i)
	}
	assert.InDelta(t, hostPerDay, float64(fetches[0])/(length/2), 0.3*hostPerDay, "of the great host")
	assert.Greater(t, float64(fetches[1])/(length/2), 0.6*(perDay-hostPerDay), "of all others")
}
