package urlfrontier

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// filled returns a server of a frontier that has n URLs that were created long ago.
func filled(t *testing.T, n int) (*Server, *serve.Service, *frontier.Frontier) {
	t.Helper()
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	s, err := New(t.Context(), svc, Options{TempDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, svc.Close())
		require.NoError(t, f.Close())
	})
	entries := make([]frontier.Entry, n)
	for i := range entries {
		entries[i] = frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%100, i), Meta: (&serve.Envelope{Created: time.Unix(1, 0)}).Append(nil)}
	}
	_, err = f.Add(t.Context(), entries...)
	require.NoError(t, err)
	return s, svc, f
}

func TestPurgeKeepsURLsWithoutADate(t *testing.T) {
	s, _, f := filled(t, 1)
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/", Meta: []byte("of another program")})
	require.NoError(t, err)
	n, err := s.PurgeURLs(t.Context(), &pb.PurgeUrlParams{})
	require.NoError(t, err)
	require.EqualValues(t, 1, n.GetValue())
}

// Others are served while a PurgeURLs goes on, and it ends with the server, and with its caller.
func TestAPurgeLetsOthersIn(t *testing.T) {
	const urls = 200_000
	s, _, _ := filled(t, urls)
	ended := make(chan error, 1)
	begin := func(ctx context.Context) {
		go func() { _, err := s.PurgeURLs(ctx, &pb.PurgeUrlParams{}); ended <- err }()
	}
	left := func() int64 {
		n, err := s.sum(0, "")
		require.NoError(t, err)
		return total(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begin(ctx)
	require.Eventually(t, func() bool { return left() < urls }, time.Minute, time.Millisecond)
	puts := []put{{info: &pb.URLInfo{Url: "http://a.example/"}}}
	s.submit(puts)
	require.Equal(t, pb.AckMessage_OK, puts[0].status)
	leases, _, err := s.takeSome(t.Context(), wanted{any: true, hold: time.Minute, perHost: 1}, 1)
	require.NoError(t, err)
	require.Len(t, leases, 1)
	require.Empty(t, ended)
	cancel()
	require.Equal(t, codes.Canceled, status.Code(<-ended))
	was := left()
	require.Positive(t, was)
	begin(t.Context())
	require.Eventually(t, func() bool { return left() < was }, time.Minute, time.Millisecond)
	require.NoError(t, s.Close())
	require.Equal(t, codes.Unavailable, status.Code(<-ended))
	require.Positive(t, left())
	require.ErrorIs(t, (&purge{s: s}).run(t.Context()), frontier.ErrClosed, "nor does it read on")
}

// A URL that was deleted after a purge has read it, and came anew, stays.
func TestAPurgeSeesDeletions(t *testing.T) {
	s, _, _ := filled(t, 1)
	x := &purge{s: s, deletions: s.purged.deleted(), before: time.Now().Unix()}
	const url = "http://h0.example/0"
	x.adds = []frontier.Entry{{URL: url, Host: "h0.example", Force: true, Finished: true, Meta: purgedMeta}}
	_, err := s.DeleteQueue(t.Context(), &pb.QueueWithinCrawlParams{Key: "h0.example"})
	require.NoError(t, err)
	puts := []put{{info: &pb.URLInfo{Url: url}}}
	s.submit(puts)
	require.Equal(t, pb.AckMessage_OK, puts[0].status)
	require.ErrorIs(t, x.flush(), errDeleted)
	require.NoError(t, x.run(t.Context()))
	_, err = s.GetURLStatus(t.Context(), &pb.URLStatusRequest{Url: url})
	require.NoError(t, err)
}

func TestDeleteCrawlTakesWhatComesMeanwhile(t *testing.T) {
	s, svc, f := filled(t, 10)
	done := svc.Adding() // by another API
	deleted := make(chan uint64, 1)
	go func() {
		n, err := s.DeleteCrawl(context.WithoutCancel(t.Context()), &pb.DeleteCrawlMessage{})
		deleted <- n.GetValue() + uint64(status.Code(err))
	}()
	require.Eventually(t, func() bool { return s.purged.deleted() == 1 }, time.Minute, time.Millisecond)
	_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/late"})
	require.NoError(t, err)
	done()
	require.EqualValues(t, 11, <-deleted)
	require.Zero(t, f.Stats().Waiting)
}

// Clients that never report leave little behind, and in the end nothing.
func TestWhatNobodyReportsIsForgotten(t *testing.T) {
	var x holds
	lease := func(url string) frontier.Lease {
		return frontier.Lease{Entry: frontier.Entry{URL: url, Meta: (&serve.Envelope{Created: time.Unix(1, 0), Meta: map[string][]string{"x": {"x"}}}).Append(nil)}}
	}
	now := time.Now()
	for i := range 1000 {
		x.hold(lease(fmt.Sprint(i)), now.Add(-time.Second))
	}
	l, ok := x.take(urlName{url: "1"}, now)
	require.True(t, ok)
	require.Equal(t, serve.Envelope{Created: time.Unix(1, 0).UTC()}, envelopeOf(l.Entry.Meta))
	require.Empty(t, x.takeOf(0, "", now), "their leases are over")
	for range 100 {
		x.take(urlName{}, now.Add(lateFor))
	}
	require.Empty(t, x.by)
	require.Zero(t, x.bytes)
	for i := range 5000 {
		x.hold(lease(fmt.Sprint(strings.Repeat("x", 32<<10), i)), now.Add(-time.Second))
	}
	require.Less(t, len(x.by), 2100)
	require.LessOrEqual(t, x.bytes, lateRoom)
}
