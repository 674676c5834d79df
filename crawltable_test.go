package frontier

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/stretchr/testify/require"
)

// Crawls get their shares however many hand-outs there were. One that was not in
// scheduler.offers when passes began anew has no more than its share either.
func TestSharesOutliveTheirCount(t *testing.T) {
	const none, some, most = 1, 2, 3 // crawls
	for _, pass := range []int64{0, mostPass - 20*turn} {
		c := newScheduler(schedulerConfig{levels: 1, quantum: 32, parkAfter: instant.Never, selector: selector.Strict(), strict: true})
		add := func(crawl uint32, n int) {
			for i := range n {
				name := fmt.Sprintf("host%d.crawl%d.example", i, crawl)
				id := c.ensure(c.hash([]byte(name)), name)
				c.pushTail(c.queueOf(id, crawl, 1), c.records.Store(1, benchURL()), 0)
			}
		}
		c.slotOf(none)
		c.pass = pass
		c.crawls[c.slotOf(none)].pass = pass
		add(some, 400)
		add(most, 400)
		c.crawls[c.slotOf(most)].settings.weight = 3
		got := map[uint32]int{}
		serve := func(n int) {
			for range n {
				ch, ok, err := c.next(0)
				require.NoError(t, err)
				require.True(t, ok)
				got[c.crawlOf(c.queues.At(ch.queue)).id]++
				c.pop(c.queues.At(ch.queue))
			}
		}
		serve(400)
		require.Equal(t, map[uint32]int{some: 100, most: 300}, got)
		clear(got)
		add(none, 100)
		serve(50)
		require.Equal(t, map[uint32]int{none: 10, some: 10, most: 30}, got)
	}
}
