// This file measures what URLs that rise cost a frontier with one very large site.

package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deaf is an Estimator that hears of no link for a while.
type deaf struct {
	*importance.Estimator
	hears atomic.Bool
}

func (d *deaf) Found(e frontier.Entry) int {
	if !d.hears.Load() {
		return 0
	}
	return d.Estimator.Found(e)
}

// riseLoad is a frontier on disk with one large site, while other sites are crawled.
type riseLoad struct {
	t    *testing.T
	f    *frontier.Frontier
	lock *holds
	next atomic.Pointer[harness.Waits] // of this phase
	n    atomic.Int64                  // of the URLs of other sites
	done atomic.Int64                  // of all that were handed out
}

// A fifth of the URLs of one site rise while others are handed out: half of them further than by a level, and half of
// these once more. The first row shows what callers of Next see while the Riser ignores the links. With -frontier.long the site
// has a million URLs; with the tag frontierholds it logs how long the lock was held.
//
//	go test -run TestRisingSite -v -timeout 1h ./test/load -frontier.long
func TestRisingSite(t *testing.T) {
	urls := 20_000
	if *harness.Long {
		urls = 1_000_000
	}
	est, err := importance.New(importance.Options{Memory: int64(urls), Key: 1})
	require.NoError(t, err)
	by := &deaf{Estimator: est}
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	holds := watchHolds()
	f, err := frontier.Open(t.Context(), frontier.Options{Prioritizer: by, Delay: frontier.FixedDelay(0), KeepOpen: true, Spill: db})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	require.NoError(t, f.UpdateRule(scope.Host("site.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Hour) }))
	l := &riseLoad{t: t, f: f, lock: holds}
	l.link(urls, func(i int) bool { return true })
	require.NoError(t, hook.Of(f).MoveNow(true))

	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	l.next.Store(&harness.Waits{})
	for range 4 {
		callers.Go(func() { l.visit(ctx) })
	}
	callers.Go(func() { l.feed(ctx) })
	l.during("without", func() { l.linkAgain(urls) })
	by.hears.Store(true)
	l.during("with", func() { l.linkAgain(urls) })
	l.during("what is left of it", l.settle)
	r := f.Stats()
	t.Logf("%d of %d URLs risen; %d notes, %d dropped, %d walks; %d records read, %.2f a URL", r.Risen, urls, r.Noted, r.Unnoted, r.Walks, r.Walked, float64(r.Walked)/float64(urls))
	assert.Zero(t, r.Unnoted)
	assert.Less(t, float64(r.Walked)/float64(urls), 8.)
	assert.Greater(t, float64(r.Risen)/float64(urls), 0.15)
}

// link adds the chosen URLs of the site, in a random order that is always the same.
func (l *riseLoad) link(urls int, chosen func(i int) bool) {
	batch := make([]frontier.Entry, 0, 1000)
	send := func() {
		_, err := l.f.Add(l.t.Context(), batch...)
		require.NoError(l.t, err)
		batch = batch[:0]
		if *harness.Long {
			time.Sleep(50 * time.Millisecond)
		}
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(urls) {
		if !chosen(i) {
			continue
		}
		batch = append(batch, frontier.Entry{URL: fmt.Sprintf("http://site.example/%d", i), Depth: 1})
		if len(batch) == cap(batch) {
			send()
		}
	}
	send()
}

// linkAgain links to a fifth of the URLs twice more, to half of these 4 times more, and to a quarter 8 times.
func (l *riseLoad) linkAgain(urls int) {
	for _, x := range []struct{ times, each int }{{2, 5}, {4, 10}, {8, 20}} {
		for range x.times {
			l.link(urls, func(i int) bool { return i%x.each == 0 })
		}
	}
}

// settle waits until walks have neither begun nor gone on for a while.
func (l *riseLoad) settle() {
	for quiet := 0; quiet < 40; quiet++ {
		before := l.f.Stats()
		hook.Of(l.f).Sweep()
		time.Sleep(50 * time.Millisecond)
		if s := l.f.Stats(); s.Walks != before.Walks || s.Walked != before.Walked || s.Risen != before.Risen {
			quiet = 0
		}
	}
}

// during returns what callers of Next saw while do was done.
func (l *riseLoad) during(what string, do func()) {
	l.next.Store(&harness.Waits{})
	l.lock.take()
	begun, cpu := time.Now(), harness.CPUTime()
	do()
	l.t.Logf("%s: %v, %v of CPU; Next: %v; lock: %s", what, time.Since(begun), harness.CPUTime()-cpu, l.next.Load(), l.lock.take())
}

// visit takes URLs as they come, a thousand a second at most.
func (l *riseLoad) visit(ctx context.Context) {
	for {
		start := time.Now()
		x, err := l.f.Next(ctx)
		if errors.Is(err, context.Canceled) || !assert.NoError(l.t, err) {
			return
		}
		l.next.Load().Since(start)
		if !assert.NoError(l.t, l.f.Done(x, frontier.Outcome{})) {
			return
		}
		l.done.Add(1)
		time.Sleep(time.Millisecond)
	}
}

// feed adds URLs of other sites, so that some wait.
func (l *riseLoad) feed(ctx context.Context) {
	for ctx.Err() == nil {
		batch := make([]frontier.Entry, 100)
		for i := range batch {
			n := l.n.Add(1)
			batch[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", n%10_000, n), Depth: 1}
		}
		if _, err := l.f.Add(ctx, batch...); err != nil {
			if !errors.Is(err, context.Canceled) {
				assert.NoError(l.t, err)
			}
			return
		}
		for ctx.Err() == nil && l.n.Load()-l.done.Load() > 2000 {
			time.Sleep(time.Millisecond)
		}
	}
}
