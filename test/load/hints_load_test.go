// This file measures what hints do to a frontier with many scheduled URLs.

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
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hintLoad is a frontier with many scheduled URLs, and callers who want others.
type hintLoad struct {
	t         *testing.T
	f         *frontier.Frontier
	holds     *holds
	next, add atomic.Pointer[harness.Waits] // of this phase
	n         atomic.Int64                  // of the URLs that wait
}

// A URL that is due in a year is hinted at, while others are added and handed out: it
// comes now. With the tag frontierholds the test has two million scheduled URLs, or
// of ten million, how long that took, the CPU time, how long the lock was held, and what
// callers of Next and Add saw of it:
//
//	go test -tags frontierholds -run TestHintsUnderLoad -v ./test/load
//	go test -tags frontierholds -run TestHintsUnderLoad -v -timeout 1h ./test/load -frontier.long
func TestHintsUnderLoad(t *testing.T) {
	urls, still := 3_000, time.Duration(0)
	if holdsWatched {
		urls, still = 2_000_000, time.Minute
		if *harness.Long {
			urls = 10_000_000
		}
	}
	db, err := spill.Open(t.TempDir(), spill.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	holds := watchHolds()
	f, err := frontier.Open(t.Context(), frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true, Spill: db})
	require.NoError(t, err)
	defer func() {
		if urls < 100_000 {
			assert.NoError(t, f.Check())
		}
		require.NoError(t, f.Close())
	}()
	l := &hintLoad{t: t, f: f, holds: holds}
	l.fill(urls)
	require.NoError(t, hook.Of(f).MoveNow(true))
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer cancel()
	l.phase()
	for range 4 {
		callers.Go(func() { l.visit(ctx) })
	}
	callers.Go(func() { l.feed(ctx) })
	l.during("without hints", func() { time.Sleep(still) })
	for i := range 3 {
		l.during(fmt.Sprintf("hint %d, until its URL is due", i+1), func() { l.hint(urls / 4 * (i + 1)) })
	}
}

func scheduledURL(i int) string { return fmt.Sprintf("http://h%d.later.example/%d", i%100_000, i) }

func (l *hintLoad) fill(urls int) {
	rng := rand.New(rand.NewPCG(1, 2))
	from := time.Now().Add(30 * 24 * time.Hour)
	batch := make([]frontier.Entry, 0, 1000)
	for i := range urls {
		batch = append(batch, frontier.Entry{URL: scheduledURL(i), NotBefore: from.Add(time.Duration(rng.Int64N(int64(365 * 24 * time.Hour))))})
		if len(batch) == cap(batch) || i == urls-1 {
			_, err := l.f.Add(l.t.Context(), batch...)
			require.NoError(l.t, err)
			batch = batch[:0]
		}
	}
}

func (l *hintLoad) phase() {
	l.next.Store(&harness.Waits{})
	l.add.Store(&harness.Waits{})
}

// during returns what callers saw while do was done.
func (l *hintLoad) during(what string, do func()) {
	l.holds.take()
	l.phase()
	begun, cpu := time.Now(), harness.CPUTime()
	do()
	took := time.Since(begun)
	l.t.Logf("%s: %v, %v of CPU\n    Next: %v\n    Add of 100: %v\n    lock: %s", what, took, harness.CPUTime()-cpu, l.next.Load(), l.add.Load(), l.holds.take())
}

// visit takes URLs as they come, a thousand a second at most.
func (l *hintLoad) visit(ctx context.Context) {
	for {
		start := time.Now()
		x, err := l.f.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return
		}
		if !assert.NoError(l.t, err) {
			return
		}
		l.next.Load().Since(start)
		if !assert.NoError(l.t, l.f.Done(x, frontier.Outcome{})) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// feed adds URLs, so that some wait.
func (l *hintLoad) feed(ctx context.Context) {
	for ctx.Err() == nil {
		batch := make([]frontier.Entry, 100)
		for i := range batch {
			n := l.n.Add(1)
			batch[i].URL = fmt.Sprintf("http://h%d.now.example/%d", n%10_000, n)
		}
		start := time.Now()
		if _, err := l.f.Add(ctx, batch...); err != nil {
			if !errors.Is(err, context.Canceled) {
				assert.NoError(l.t, err)
			}
			return
		}
		l.add.Load().Since(start)
		for ctx.Err() == nil && l.f.Stats().Waiting > 1000 {
			time.Sleep(time.Millisecond)
		}
	}
}

// hint hints at a scheduled URL, and waits until it is no more.
func (l *hintLoad) hint(i int) {
	before := l.f.Stats().Scheduled
	_, err := l.f.Add(l.t.Context(), frontier.Entry{URL: scheduledURL(i), NotBefore: time.Now(), Hint: true})
	require.NoError(l.t, err)
	require.Eventually(l.t, func() bool { return l.f.Stats().Scheduled < before }, 30*time.Minute, time.Millisecond)
}
