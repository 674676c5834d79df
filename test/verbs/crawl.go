// This file has the promises of Add, Next and Done.

package verbs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

const a1, a2, a3, b1 = "http://a.example/1", "http://a.example/2", "http://a.example/3", "http://b.example/1"

func urls(list ...string) (entries []frontier.Entry) {
	for _, u := range list {
		entries = append(entries, frontier.Entry{URL: u})
	}
	return entries
}

// fill adds URLs that are new.
func fill(t *testing.T, f Frontier, list ...string) {
	t.Helper()
	n, err := f.Add(t.Context(), urls(list...)...)
	require.NoError(t, err)
	require.Equal(t, len(list), n)
}

// left counts the URLs that are to come, and those that are out.
func left(f Frontier) []int64 {
	s := f.Stats()
	return []int64{s.Waiting + s.Scheduled, s.Leased}
}

func next(t *testing.T, f Frontier) frontier.Lease {
	t.Helper()
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	return l
}

// within asserts that a time is as expected; on its way it was rounded to milliseconds.
func within(t *testing.T, want, got time.Time) {
	t.Helper()
	assert.WithinDuration(t, want, got, 2*time.Millisecond)
}

// A URL is new once. A bad one does not keep the others out.
func add(t *testing.T, f Frontier) {
	n, _ := f.Add(t.Context(), urls(a1, "http:///no-host", b1, a1)...) // refused looks at the error
	assert.Equal(t, 2, n)
	n, err := f.Add(t.Context(), urls(a1, a2)...)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	n, err = f.Add(t.Context())
	assert.NoError(t, err)
	assert.Zero(t, n)
	assert.Equal(t, []int64{3, 0}, left(f))
}

// Bad URLs and outlinks are reported by their indexes.
func refused(t *testing.T, f Leases) {
	_, err := f.Add(t.Context(), urls(a1, "http:///no-host", b1, a1)...)
	bad := frontier.EntryErrors(err)
	require.Len(t, bad, 1)
	assert.Equal(t, []any{1, "http:///no-host"}, []any{bad[0].Index, bad[0].URL})
	s := f.Stats()
	assert.Equal(t, []int64{2, 0, 0}, []int64{s.Waiting, s.Scheduled, s.Leased})
	bad, err = f.DoneContext(t.Context(), next(t, f), frontier.Outcome{Add: urls(a2, "http:///no-host", a1)})
	require.NoError(t, err)
	require.Len(t, bad, 1)
	assert.Equal(t, 1, bad[0].Index)
}

// A host's URLs come in the order of their admission.
func order(t *testing.T, f Frontier) {
	fill(t, f, a1, a2, a3)
	var got []string
	for range 3 {
		l := next(t, f)
		got = append(got, l.Entry.URL)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	assert.Equal(t, []string{a1, a2, a3}, got)
}

// A lease has its URL's host and Meta.
func meta(t *testing.T, f Frontier) {
	_, err := f.Add(t.Context(), frontier.Entry{URL: a1, Meta: []byte("text")})
	require.NoError(t, err)
	l := next(t, f)
	assert.Equal(t, []any{a1, "a.example", "text"}, []any{l.Entry.URL, l.Host, string(l.Entry.Meta)})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A lease has everything that was said of its URL, and a deadline.
func lease(t *testing.T, f Leases) {
	for _, meta := range [][]byte{nil, []byte("text"), {0, 0xff, '{'}, []byte(`{"via":["http://b.example/"]}`)} {
		e := frontier.Entry{URL: fmt.Sprintf("http://a.example/%x", meta), Depth: 3, Weight: 0.5, Meta: meta}
		_, err := f.Add(t.Context(), e)
		require.NoError(t, err)
		l := next(t, f)
		assert.Equal(t, e, l.Entry)
		assert.Equal(t, []any{"a.example", 1, false, 0}, []any{l.Host, l.Attempt, l.ContactOnly(), l.History.Visits})
		within(t, time.Now(), l.LeasedAt)
		within(t, time.Now().Add(leaseTime), l.Deadline)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
}

// TryNext returns nothing while a host is contacted, and until its delay has passed since. Without
// URLs nothing is left.
func nothing(t *testing.T, f Frontier) {
	fill(t, f, a1, a2)
	l, _, err := f.TryNext()
	require.NoError(t, err)
	_, _, err = f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	_, _, err = f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	time.Sleep(delay - 10*time.Millisecond)
	_, _, err = f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	time.Sleep(10 * time.Millisecond)
	l, _, err = f.TryNext()
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	_, _, err = f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrExhausted)
	_, err = f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
}

// TryNext and Host say when a host may be contacted again.
func due(t *testing.T, f Leases) {
	fill(t, f, a1, a2)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{}))
	h, err := f.Host(t.Context(), "a.example")
	require.NoError(t, err)
	within(t, time.Now().Add(delay), h.Due)
	_, at, err := f.TryNext()
	assert.ErrorIs(t, err, frontier.ErrNotDue)
	within(t, time.Now().Add(delay), at)
	time.Sleep(time.Until(at))
	l, _, err := f.TryNext()
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// Next waits until a host has been left alone for its delay.
func delayKept(t *testing.T, f Frontier) {
	fill(t, f, a1, a2)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{}))
	ended := time.Now()
	l := next(t, f)
	assert.GreaterOrEqual(t, time.Since(ended), delay)
	assert.Less(t, time.Since(ended), delay+2*time.Second)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A call of Next ends with its context, and takes no URL with it.
func cancel(t *testing.T, f Frontier) {
	fill(t, f, a1, a2)
	cancelled := func() {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), delay/2)
		defer stop()
		_, err := f.Next(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
	l := next(t, f)
	cancelled() // while the host is contacted
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	cancelled()               // during its delay
	time.Sleep(leaseTime / 2) // a request that is still under way gets the URL, and gives it back
	assert.Equal(t, []int64{1, 0}, left(f))
	l = next(t, f)
	assert.Equal(t, a2, l.Entry.URL)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A URL that is done is finished, and known.
func done(t *testing.T, f Frontier) {
	fill(t, f, a1)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{Result: frontier.Changed, Bytes: 10}))
	assert.Equal(t, []int64{0, 0}, left(f))
	n, err := f.Add(t.Context(), urls(a1)...)
	require.NoError(t, err)
	assert.Zero(t, n)
	_, err = f.Next(t.Context())
	assert.ErrorIs(t, err, frontier.ErrExhausted)
}

// A lease ends once.
func ended(t *testing.T, f Leases) {
	fill(t, f, a1)
	l := next(t, f)
	require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Changed}))
	assert.ErrorIs(t, f.Done(l, frontier.Outcome{Result: frontier.Gone}), frontier.ErrNotLeased)
	assert.ErrorIs(t, f.Done(frontier.Lease{}, frontier.Outcome{}), frontier.ErrNotLeased)
	assert.ErrorIs(t, f.Extend(&l, time.Second), frontier.ErrNotLeased)
	assert.ErrorIs(t, f.Join(&l, "g"), frontier.ErrNotLeased)
	_, err := f.HandBack(l)
	assert.ErrorIs(t, err, frontier.ErrNotLeased)
	assert.EqualValues(t, 1, f.Stats().Done[frontier.Changed])
}

// Outlinks are added with the Done; a bad one keeps nothing out.
func links(t *testing.T, f Frontier) {
	fill(t, f, a1)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{Add: urls(b1, "http:///no-host", a1, a2)}))
	assert.Equal(t, []int64{2, 0}, left(f))
	var got []string
	for range 2 {
		l := next(t, f)
		got = append(got, l.Entry.URL)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	assert.ElementsMatch(t, []string{b1, a2}, got)
}

// A URL that is put off comes at its time, with its new Meta. So does one that is visited again.
func putOff(t *testing.T, f Frontier) {
	fill(t, f, a1)
	at := time.Now().Add(10 * time.Minute)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{Result: frontier.PutOff, Next: at, Meta: []byte("later")}))
	l := next(t, f)
	assert.False(t, time.Now().Before(at))
	assert.Equal(t, []any{a1, "later"}, []any{l.Entry.URL, string(l.Entry.Meta)})
	at = time.Now().Add(10 * time.Minute)
	require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Visited, Next: at}))
	l = next(t, f)
	assert.False(t, time.Now().Before(at))
	assert.Equal(t, []any{a1, "later"}, []any{l.Entry.URL, string(l.Entry.Meta)})
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// A URL that failed comes again. Its host is left alone for as long as it asks, and slows down when it
// fails again.
func failed(t *testing.T, f Frontier) {
	for _, failure := range []frontier.Failure{frontier.FailureTooMany, frontier.FailureUnavailable} {
		url := fmt.Sprintf("http://h%d.example/", failure)
		fill(t, f, url)
		l := next(t, f)
		for _, o := range []struct{ asks, least time.Duration }{{3 * time.Minute, 3 * time.Minute}, {0, 2 * delay}} {
			require.NoError(t, f.Done(l, frontier.Outcome{Result: frontier.Failed, Failure: failure, RetryAfter: o.asks}))
			ended := time.Now()
			l = next(t, f)
			assert.GreaterOrEqual(t, time.Since(ended), o.least)
			assert.Equal(t, url, l.Entry.URL)
		}
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
}

// Force brings a finished URL again.
func force(t *testing.T, f Frontier) {
	fill(t, f, a1)
	require.NoError(t, f.Done(next(t, f), frontier.Outcome{}))
	n, err := f.Add(t.Context(), frontier.Entry{URL: a1, Force: true})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	l := next(t, f)
	assert.Equal(t, a1, l.Entry.URL)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
}

// Many workers visit each URL once, and no host twice at once.
func crowd(t *testing.T, f Frontier) {
	ctx, stop := context.WithTimeout(t.Context(), time.Hour)
	defer stop()
	var entries []frontier.Entry
	for i := range 300 {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%50, i)})
	}
	n, err := f.Add(t.Context(), entries...)
	require.NoError(t, err)
	require.Equal(t, len(entries), n)
	var mu sync.Mutex
	seen, busy := map[string]int{}, map[string]bool{}
	var workers sync.WaitGroup
	for range 20 {
		workers.Go(func() {
			for {
				l, err := f.Next(ctx)
				if err != nil {
					assert.ErrorIs(t, err, frontier.ErrExhausted)
					return
				}
				mu.Lock()
				assert.False(t, busy[l.Host], l.Host)
				seen[l.Entry.URL]++
				busy[l.Host] = true
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				busy[l.Host] = false
				mu.Unlock()
				assert.NoError(t, f.Done(l, frontier.Outcome{}))
			}
		})
	}
	workers.Wait()
	assert.Len(t, seen, len(entries))
	for u, n := range seen {
		assert.Equal(t, 1, n, u)
	}
}
