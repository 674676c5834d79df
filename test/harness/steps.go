// This file acts on a world in more than one step.

package harness

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/stretchr/testify/require"
)

// ExactBackoff has no jitter: such a small share is less than a millisecond.
var ExactBackoff = frontier.Backoff{Jitter: 1e-9}

// Failing is the outcome of a contact that failed so.
func Failing(k frontier.Failure) frontier.Outcome {
	return frontier.Outcome{Result: frontier.Failed, Failure: k}
}

// AddMany adds n URLs of a host.
func (w *World) AddMany(host string, n int) {
	w.Helper()
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i].URL = fmt.Sprintf("http://%s/%d", host, i)
	}
	got, err := w.F.Add(w.Context(), entries...)
	require.NoError(w, err)
	require.Equal(w, n, got)
}

// Info returns what is known about a host.
func (w *World) Info(host string) inspect.Host {
	w.Helper()
	x, err := inspect.New(w.F).Host(context.Background(), host)
	if !errors.Is(err, frontier.ErrUnknownHost) {
		require.NoError(w, err)
	}
	return x
}

// Gap ends a lease at once and returns the time until the host's next one, which
// it takes.
func (w *World) Gap(l *frontier.Lease, o frontier.Outcome) time.Duration {
	w.Helper()
	end := w.At()
	require.NoError(w, w.F.Done(*l, o))
	*l = w.Next()
	return w.At() - end
}

// Btoi is 1 for true.
func Btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// WhileReading calls fn during the next read from disk.
func (w *World) WhileReading(fn func()) *bool {
	called := new(bool)
	w.Machine.Faults.Before(spilltest.Read, 1, func() { *called = true; fn() })
	return called
}

// Taken takes the URLs that may be fetched now.
func (w *World) Taken() (urls []string) {
	for {
		l, _, err := w.TryNext()
		if errors.Is(err, frontier.ErrNotDue) || errors.Is(err, frontier.ErrExhausted) {
			slices.Sort(urls)
			return urls
		}
		require.NoError(w, err)
		urls = append(urls, l.Entry.URL)
		require.NoError(w, w.F.Done(l, frontier.Outcome{}))
	}
}

// Opened opens a frontier on the system's clock, or on that of the bubble.
func Opened(t *testing.T, o frontier.Options) *frontier.Frontier {
	t.Helper()
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { Ended(t, f) })
	return f
}

// Seed replays random tests; 0: a new one each time.
var Seed = flag.Uint64("frontier.seed", 0, "replay random tests with this seed; 0: a new one")

// NewRand returns a source whose seed is logged for replay.
func NewRand(t testing.TB) *rand.Rand {
	s := cmp.Or(*Seed, rand.Uint64())
	t.Logf("replay with -frontier.seed=%d", s)
	return rand.New(rand.NewPCG(s, 1))
}

// CrawlNow calls CrawlNow with entries that it must accept.
func (w *World) CrawlNow(entries ...frontier.Entry) {
	w.Helper()
	n, err := w.F.CrawlNow(context.Background(), entries...)
	require.NoError(w, err)
	require.Equal(w, len(entries), n)
	require.NoError(w, w.F.Check())
}

// Many adds n URLs to each of the given number of hosts.
func (w *World) Many(hosts, n int) {
	w.Helper()
	for i := range hosts * n {
		_, err := w.F.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i/hosts)})
		require.NoError(w, err)
	}
}

// InCrawl adds n URLs of a crawl, each on a separate host whose name begins with prefix.
func (w *World) InCrawl(crawl uint32, prefix string, n int) {
	w.Helper()
	for i := 0; i < n; i += 10_000 {
		var es []frontier.Entry
		for j := i; j < min(n, i+10_000); j++ {
			es = append(es, frontier.Entry{URL: fmt.Sprintf("http://%s%d.example/", prefix, j), Crawl: crawl})
		}
		_, err := w.F.Add(context.Background(), es...)
		require.NoError(w, err)
	}
}

// SetCrawl sets the rule of a crawl.
func (w *World) SetCrawl(id uint32, s frontier.Rule) {
	w.Helper()
	require.NoError(w, w.F.UpdateRule(scope.Crawl(id), func(r *frontier.Rule) { *r = s }))
}

// Deleted deletes a scope and requires the number of URLs found.
func (w *World) Deleted(want int, s scope.Scope) {
	w.Helper()
	n, err := w.F.Delete(context.Background(), s)
	require.NoError(w, err)
	require.EqualValues(w, want, n, "deleted of %v", s)
}

// LeaseAll takes and ends leases until the crawl is over and returns their URLs.
func (w *World) LeaseAll() (urls []string) {
	w.Helper()
	for {
		l, at, err := w.TryNext()
		switch {
		case err == nil:
			urls = append(urls, l.Entry.URL)
			require.NoError(w, w.F.Done(l, frontier.Outcome{}))
		case at.After(w.Clock.Now()):
			w.Clock.Set(at)
		default:
			require.ErrorIs(w, err, frontier.ErrExhausted)
			return urls
		}
	}
}

// LeaseOf leases an available URL of a host that may have several leases.
func (w *World) LeaseOf(t *testing.T) frontier.Lease {
	l, _, err := w.F.TryNext()
	require.NoError(t, err)
	return l
}

// OpenFolder opens a frontier on the store in a folder.
func (w *World) OpenFolder(dir string) *spill.Store {
	w.Helper()
	s, err := spill.Open(dir, spill.Options{})
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, s.Close()) })
	w.Options.Spill = s
	return s
}

// Assigned assigns a host to groups, one after the other.
func (w *World) Assigned(host string, groups ...string) {
	w.Helper()
	for _, g := range groups {
		require.NoError(w, w.F.Assign(host, g))
	}
}

// Joined takes the next lease, which must have this URL and time, and joins it to a group that
// grants it.
func (w *World) Joined(at time.Duration, url, group string) frontier.Lease {
	w.Helper()
	l := w.NextIs(at, url)
	require.NoError(w, w.F.Join(&l, group))
	return l
}

// Held requires that the crawl is over, except for n URLs held by rules.
func (w *World) Held(n int64) {
	w.Helper()
	l, _, err := w.TryNext()
	require.ErrorIs(w, err, frontier.ErrExhausted, "got %s", l.Entry.URL)
	var by *frontier.HeldError
	require.ErrorAs(w, err, &by)
	require.Equal(w, n, by.Held)
	require.Equal(w, n, w.F.Stats().Held)
	require.NoError(w, w.F.Check())
}

// Hint adds a hint, and waits until it is answered.
func (w *World) Hint(e frontier.Entry) {
	w.Helper()
	e.Hint = true
	n, err := w.F.Add(context.Background(), e)
	require.NoError(w, err)
	require.Zero(w, n, "it is known")
	hook.Of(w.F).Sweep()
}

// OnDisk moves scheduled URLs to disk, if there is one.
func (w *World) OnDisk() {
	if w.Machine != nil {
		require.NoError(w, hook.Of(w.F).MoveNow(true))
	}
}

// Dies makes all contacts with a host fail until its last probe has.
func (w *World) Dies(host string) {
	w.Helper()
	for range 5 {
		l := w.Next()
		require.Equal(w, host, l.Host)
		require.NoError(w, w.F.Done(l, Failing(frontier.FailureConnect)))
	}
}

// Moves runs a round of moving, which must end.
func (w *World) Moves(evict bool) {
	w.Helper()
	ended := make(chan error, 1)
	go func() { ended <- hook.Of(w.F).MoveNow(evict) }()
	select {
	case err := <-ended:
		require.NoError(w, err)
	case <-time.After(time.Minute):
		require.FailNow(w, "a round of moving does not end")
	}
}

// Mixed adds scheduled URLs and waiting ones, with the given number of bytes of Meta.
func (w *World) Mixed(name string, scheduled, waiting, hosts, meta int) {
	w.Helper()
	entries := make([]frontier.Entry, scheduled+waiting)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%s/%d", i%hosts, name, i), Meta: make([]byte, meta)}
		if i < scheduled {
			entries[i].NotBefore = Dawn.Add(24*time.Hour + time.Duration(i)*time.Second)
		}
	}
	_, err := w.F.Add(context.Background(), entries...)
	require.NoError(w, err)
}

// Requeue is the outcome of a contact that was not made.
var Requeue = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}

// UrlsOf returns n URLs of a host: http://host/1 and so on.
func UrlsOf(host string, n int) []string {
	urls := make([]string, n)
	for i := range urls {
		urls[i] = fmt.Sprintf("http://%s/%d", host, i+1)
	}
	return urls
}

// WithPriority adds a URL with this priority.
func (w *World) WithPriority(url string, p int) {
	w.Helper()
	_, err := w.F.Add(context.Background(), frontier.Entry{URL: url, Weight: float64(p)})
	require.NoError(w, err)
}

// Order takes everything available, hands it back, and returns hosts and priorities.
func (w *World) Order() (got []string) {
	w.Helper()
	var out []frontier.Lease
	for {
		l, _, err := w.TryNext()
		if err != nil {
			break
		}
		got = append(got, fmt.Sprint(l.Host[:1], l.Priority))
		out = append(out, l)
	}
	for _, l := range out {
		require.NoError(w, w.F.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
	}
	require.NoError(w, w.F.Check())
	return got
}

// Later adds n URLs over the given number of hosts, due between from and to after dawn.
func (w *World) Later(n, hosts int, from, to time.Duration) {
	w.Helper()
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i] = frontier.Entry{
			URL:       fmt.Sprintf("http://h%d.example/%d/%d-%d", i%hosts, from, i, n),
			NotBefore: Dawn.Add(from + time.Duration(i)*(to-from)/time.Duration(n)),
		}
	}
	for chunk := range slices.Chunk(entries, 5000) {
		_, err := w.F.Add(context.Background(), chunk...)
		require.NoError(w, err)
		require.NoError(w, hook.Of(w.F).MoveNow(false))
	}
}

// Left is how many URLs wait, now or for their time.
func (w *World) Left() int64 {
	s := w.F.Stats()
	return s.Waiting + s.Scheduled
}

// Comes is nextIs where the time of a superseded URL may be reported on the way.
func (w *World) Comes(at time.Duration, url string) frontier.Lease {
	w.Helper()
	for {
		l, next, err := w.TryNext()
		if errors.Is(err, frontier.ErrNotDue) {
			w.Clock.Set(next)
			continue
		}
		require.NoError(w, err)
		require.Equal(w, url, l.Entry.URL)
		require.Equal(w, at, w.At(), "%s comes at the wrong time", url)
		return l
	}
}
