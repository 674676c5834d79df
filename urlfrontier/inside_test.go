// This file tests what clients do not see.

package urlfrontier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/tempfile"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// startInside starts a server on a socket, and returns what connects to it.
func startInside(t *testing.T) (*Server, *grpc.Server, func() pb.URLFrontierClient) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	s, err := New(t.Context(), svc, Options{TempDir: t.TempDir()})
	require.NoError(t, err)
	g := s.GRPC(GRPCOptions{})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Stop(g, time.Second))
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // a test may end before it has begun
			require.NoError(t, err)
		}
		require.NoError(t, svc.Close())
		require.NoError(t, f.Close())
	})
	return s, g, func() pb.URLFrontierClient {
		conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return pb.NewURLFrontierClient(conn)
	}
}

func itemOfURL(url string) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: url}}}}
}

// What connections send beside messages is not held against them.
func TestHealthyConnectionsHaveNothingUnfinished(t *testing.T) {
	s, _, connect := startInside(t)
	for c := range 2 {
		client := connect()
		stream, err := client.PutURLs(t.Context())
		require.NoError(t, err)
		for i := range 300 {
			require.NoError(t, stream.Send(itemOfURL(fmt.Sprintf("http://a.example/%d/%d/%s", c, i, strings.Repeat("x", i*100)))))
			_, err := stream.Recv()
			require.NoError(t, err)
			_, err = client.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
			require.NoError(t, err)
		}
	}
	s.unfinished.mu.Lock()
	defer s.unfinished.mu.Unlock()
	require.Len(t, s.unfinished.conns, 2, "over a socket, too")
	for c := range s.unfinished.conns {
		require.Less(t, c.open.Load(), int64(600), "less than a byte for each message")
		require.EqualValues(t, 1, c.calls.Load())
	}
}

func TestClosedConnectionsAreNotCounted(t *testing.T) {
	u := &unfinished{most: 1000, conns: map[*sender]struct{}{}}
	client, server := net.Pipe()
	defer client.Close()
	conn, _, err := counted{insecure.NewCredentials(), u}.ServerHandshake(server)
	require.NoError(t, err)
	go func() {
		_, _ = client.Write(make([]byte, preface))
		_, _ = client.Write([]byte{0, 8, 0, 0, 0, 0, 0, 0, 1})
		_, _ = client.Write(make([]byte, 2048))
	}()
	b := make([]byte, 512)
	for _, want := range []int64{0, 0, 512, 0} { // more than may be: the connection is closed
		_, err = conn.Read(b)
		require.NoError(t, err)
		require.Equal(t, want, u.open.Load())
	}
	_, err = conn.Read(b)
	require.Error(t, err)
	require.NoError(t, conn.Close())
	require.Zero(t, u.open.Load())
	require.Empty(t, u.conns)
}

func TestMessagesWaitForRoom(t *testing.T) {
	s, _, connect := startInside(t)
	s.acks.Add(mostAcks) // other clients read nothing
	client := connect()
	stream, err := client.PutURLs(t.Context())
	require.NoError(t, err)
	got := make(chan error, 1)
	put := func() {
		require.NoError(t, stream.Send(itemOfURL("http://a.example/")))
		go func() { _, err := stream.Recv(); got <- err }()
	}
	for range 10 {
		put()
		require.NoError(t, <-got, "one that reads goes on")
	}
	s.stored.take(mostStored)
	put()
	select {
	case <-got:
		require.Fail(t, "there is no room")
	case <-time.After(100 * time.Millisecond):
	}
	s.stored.give(mostStored)
	require.NoError(t, <-got)
	require.NoError(t, stream.CloseSend())
}

func TestStopCutsWhatCloseWaitsFor(t *testing.T) {
	s, g, connect := startInside(t)
	stream, err := connect().PutURLs(t.Context())
	require.NoError(t, err)
	s.write.Lock() // as a long purge does, until it is cut
	require.NoError(t, stream.Send(itemOfURL("http://a.example/")))
	go func() {
		_, _ = stream.Recv()
		s.write.Unlock()
	}()
	require.Eventually(t, func() bool {
		s.stored.mu.Lock()
		defer s.stored.mu.Unlock()
		return s.stored.used > 0
	}, 10*time.Second, time.Millisecond)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(g, 50*time.Millisecond) }()
	select {
	case err := <-stopped:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it waits for ever")
	}
}

// A client may send everything it has before it reads an acknowledgement.
func TestAClientThatReadsAtTheEnd(t *testing.T) {
	_, _, connect := startInside(t)
	stream, err := connect().PutURLs(t.Context())
	require.NoError(t, err)
	const n = 20_000
	for i := range n {
		require.NoError(t, stream.Send(itemOfURL(fmt.Sprintf("http://h%d.example/%0*d", i%100, 60, i))))
	}
	require.NoError(t, stream.CloseSend())
	for range n {
		ack, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, pb.AckMessage_OK, ack.GetStatus())
	}
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
}

// Unread acknowledgements have a bound. Beyond it nothing is stored. A client that reads at last learns
// that: it never hangs.
func TestUnreadAcknowledgementsHaveABound(t *testing.T) {
	s, _, connect := startInside(t)
	s.mostUnread, s.unreadWait = 1<<20, time.Millisecond
	client := connect()
	stream, err := client.PutURLs(t.Context())
	require.NoError(t, err)
	const n = 40_000
	for i := range n {
		require.NoError(t, stream.Send(itemOfURL(fmt.Sprintf("http://h%d.example/%0*d", i%100, 60, i))))
	}
	require.NoError(t, stream.CloseSend())
	acks := 0
	for {
		if _, err = stream.Recv(); err != nil {
			break
		}
		acks++
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	require.Contains(t, err.Error(), fmt.Sprintf("the last %d messages", n-acks))
	count, err := client.CountURLs(t.Context(), &pb.CountUrlParams{})
	require.NoError(t, err)
	require.EqualValues(t, acks, count.GetValue(), "what has an acknowledgement is stored, and nothing else")
	require.Zero(t, s.acks.Load())
}

// A call waits for its turn to list, as long as its client does.
func TestListsWaitForTheirTurn(t *testing.T) {
	s, _, connect := startInside(t)
	client := connect()
	for range mostReads {
		s.reads <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := client.ListQueues(ctx, &pb.Pagination{})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	time.AfterFunc(time.Millisecond, func() {
		for range mostReads {
			<-s.reads
		}
	})
	_, err = client.ListQueues(t.Context(), &pb.Pagination{})
	require.NoError(t, err)
}

// Lists are read by few calls at once. A call whose client does not read ends, and gives its slot back.
func TestListsHaveABound(t *testing.T) {
	s, _, connect := startInside(t)
	s.unreadFor, s.readWait = time.Millisecond, time.Millisecond
	client := connect()
	stream, err := client.PutURLs(t.Context())
	require.NoError(t, err)
	for i := range 200 {
		item := itemOfURL(fmt.Sprintf("http://a.example/%d", i))
		item.GetDiscovered().Info.Metadata = map[string]*pb.StringList{"x": {Values: []string{strings.Repeat("x", 60<<10)}}}
		require.NoError(t, stream.Send(item))
		_, err := stream.Recv()
		require.NoError(t, err)
	}
	unread, err := client.ListURLs(t.Context(), &pb.ListUrlParams{Size: 1000})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.reads) == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return len(s.reads) == 0 }, time.Minute, time.Millisecond)
	for err == nil {
		_, err = unread.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), "%v", err)
	for range mostReads {
		s.reads <- struct{}{}
	}
	list, err := client.ListURLs(t.Context(), &pb.ListUrlParams{})
	require.NoError(t, err)
	_, err = list.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = client.CountURLs(t.Context(), &pb.CountUrlParams{Filter: new("x")})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = client.ListQueues(t.Context(), &pb.Pagination{})
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	for range mostReads {
		<-s.reads
	}
	_, err = client.CountURLs(t.Context(), &pb.CountUrlParams{Filter: new("x")})
	require.NoError(t, err)
}

// Connections keep few listings, whatever changes between their pages.
func TestFewListingsAreKept(t *testing.T) {
	s, _, connect := startInside(t)
	for i := range 3 * mostListings {
		client := connect()
		stream, err := client.PutURLs(t.Context())
		require.NoError(t, err)
		require.NoError(t, stream.Send(itemOfURL(fmt.Sprintf("http://a.example/%d", i))))
		_, err = stream.Recv()
		require.NoError(t, err)
		_, err = client.CountURLs(t.Context(), &pb.CountUrlParams{Filter: new("x")})
		require.NoError(t, err)
	}
	s.listings.mu.Lock()
	defer s.listings.mu.Unlock()
	require.Len(t, s.listings.kept, mostListings)
	files, err := os.ReadDir(s.o.TempDir)
	require.NoError(t, err)
	require.Empty(t, files, "a server that is killed leaves nothing")
}

// The URLs of a queue are listed without the others, of one moment; with some of them out, all are read once.
func TestAQueueIsListedAlone(t *testing.T) {
	s, _, connect := startInside(t)
	id, err := s.svc.NewCrawl("")
	require.NoError(t, err)
	var entries []frontier.Entry
	for i := range 3000 {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%100, i), Crawl: id})
	}
	for i := range 5 {
		entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: id + uint32(i/4)})
	}
	_, err = s.svc.Frontier().Add(t.Context(), entries...)
	require.NoError(t, err)
	list := func(client pb.URLFrontierClient, p *pb.ListUrlParams) (urls []string) {
		stream, err := client.ListURLs(t.Context(), p)
		require.NoError(t, err)
		for {
			item, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return urls
			}
			require.NoError(t, err)
			urls = append(urls, item.GetKnown().GetInfo().GetUrl())
		}
	}
	read := func() (n int) {
		s.listings.mu.Lock()
		defer s.listings.mu.Unlock()
		for _, k := range s.listings.kept {
			n += len(k.at)
		}
		return n
	}
	of, all := &pb.ListUrlParams{Key: "a.example"}, []string{"http://a.example/0", "http://a.example/1", "http://a.example/2", "http://a.example/3"}
	a, b := connect(), connect()
	require.Equal(t, all, list(a, of))
	require.Equal(t, 4, read())
	var pages []string
	for i := range 4 {
		pages = append(pages, list(a, &pb.ListUrlParams{Key: "a.example", Start: uint32(i), Size: 1})...)
		_, err := s.svc.Frontier().Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://a.example/new%d", i), Crawl: id})
		require.NoError(t, err)
	}
	require.Equal(t, all, pages, "of one moment")
	require.Empty(t, list(b, &pb.ListUrlParams{Key: "b.example"}))
	lease, err := s.svc.Frontier().Take(t.Context(), frontier.TakeOptions{Host: "a.example", Crawls: []uint32{id}})
	require.NoError(t, err)
	require.Len(t, lease, 1)
	require.Len(t, list(b, of), 8, "one is out")
	require.Equal(t, 12, read())
	require.Len(t, list(connect(), &pb.ListUrlParams{Size: 1}), 1, "of all")
	require.Len(t, s.listings.current.within(queueName{id, "a.example"}), 8)
	require.Len(t, s.listings.current.within(queueName{id, ""}), 3008)
	require.Len(t, s.listings.current.within(queueName{id + 1, ""}), 1)
	require.Empty(t, s.listings.current.within(queueName{id + 2, ""}))

	s.listings.mu.Lock()
	for i := range 2 * mostQueues {
		file, err := tempfile.Create(s.o.TempDir, "frontier-listing-*")
		require.NoError(t, err)
		s.listings.keepLocked(&net.UnixAddr{}, &listing{only: queueName{0, fmt.Sprint(i)}, file: file})
	}
	require.Len(t, s.listings.kept, mostQueues+1, "and that of all")
	s.listings.mu.Unlock()
}

// While a snapshot of all URLs is made for one call, those that need none read on.
func TestAListingIsWaitedForOnlyToShareIt(t *testing.T) {
	s, _, connect := startInside(t)
	id, err := s.svc.NewCrawl("")
	require.NoError(t, err)
	for i := range 3 {
		_, err = s.svc.Frontier().Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://a.example/%d", i), Crawl: id})
		require.NoError(t, err)
	}
	list := func(client pb.URLFrontierClient, p *pb.ListUrlParams) (n int, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stream, err := client.ListURLs(ctx, p)
		for err == nil {
			if _, err = stream.Recv(); err == nil {
				n++
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	kept := connect()
	n, err := list(kept, &pb.ListUrlParams{Size: 1})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = s.svc.Frontier().Add(t.Context(), frontier.Entry{URL: "http://b.example/", Crawl: id})
	require.NoError(t, err)

	s.listings.making <- struct{}{} // another call makes one
	n, err = list(kept, &pb.ListUrlParams{Start: 1})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = list(connect(), &pb.ListUrlParams{Key: "a.example"})
	require.NoError(t, err)
	require.Equal(t, 3, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.listing(ctx, queueName{}, true)
	require.ErrorIs(t, err, context.Canceled, "not two at once")
	<-s.listings.making
	n, err = list(connect(), &pb.ListUrlParams{})
	require.NoError(t, err)
	require.Equal(t, 4, n)
}

// Health says what /readyz says.
func TestHealthOfAFrontierThatHandsNothingOut(t *testing.T) {
	s, _, client := startInside(t)
	_ = client()
	h := healthOf{s.health, s.ready}
	check := func() grpc_health_v1.HealthCheckResponse_ServingStatus {
		x, err := h.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		return x.GetStatus()
	}
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, check())
	require.NoError(t, s.svc.Frontier().Drain(t.Context()))
	require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, check())
}

// watching takes what a health check streams.
type watching struct {
	grpc.ServerStream
	ctx  context.Context
	said grpc_health_v1.HealthCheckResponse_ServingStatus
}

func (w *watching) Context() context.Context { return w.ctx }
func (w *watching) Send(x *grpc_health_v1.HealthCheckResponse) error {
	w.said = x.GetStatus()
	return nil
}

// A server that hands nothing out for some time is healthy again after that, until it is closed.
func TestHealthComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
		require.NoError(t, err)
		var refuses atomic.Bool
		svc, err := serve.New(f, serve.Options{Permit: func(context.Context, time.Time) error {
			if refuses.Load() {
				return errors.New("no majority")
			}
			return nil
		}})
		require.NoError(t, err)
		s, err := New(t.Context(), svc, Options{TempDir: t.TempDir()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		w, ended := &watching{ctx: ctx}, make(chan error)
		go func() { ended <- healthOf{s.health, s.ready}.Watch(&grpc_health_v1.HealthCheckRequest{}, w) }()
		check := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
			t.Helper()
			time.Sleep(watchEvery + time.Second)
			synctest.Wait()
			require.Equal(t, want, w.said)
		}
		check(grpc_health_v1.HealthCheckResponse_SERVING)
		refuses.Store(true)
		check(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		refuses.Store(false)
		check(grpc_health_v1.HealthCheckResponse_SERVING)
		require.NoError(t, s.Close())
		check(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		cancel()
		require.Error(t, <-ended)
		require.NoError(t, svc.Close())
		require.NoError(t, f.Close())
	})
}

// A page of queues begins where the one before it ended, if that was not long ago, and not at the first queue.
func TestPagesBeginWhereOthersEnded(t *testing.T) {
	var x pages
	now := time.Now()
	for i := 1; i <= 2*mostPages; i++ {
		x.keep(page{crawl: 7, start: 100 * i, after: fmt.Sprint(i), ended: now.Add(time.Duration(i))})
	}
	require.Len(t, x.kept, mostPages)
	last := page{crawl: 7, start: 200 * mostPages, after: fmt.Sprint(2 * mostPages), ended: now.Add(2 * mostPages)}
	require.Equal(t, last, x.before(page{crawl: 7, start: last.start}, now))
	require.Equal(t, last, x.before(page{crawl: 7, start: last.start + 50}, now), "50 queues are looked at")
	require.Equal(t, last.start-100, x.before(page{crawl: 7, start: last.start - 1}, now).start)
	for _, other := range []page{{crawl: 8, start: last.start}, {crawl: 7, inactive: true, start: last.start}, {crawl: 7, start: 50}} {
		require.Zero(t, x.before(other, now).start)
	}
	require.Zero(t, x.before(page{crawl: 7, start: last.start}, last.ended).start, "it is long ago")
	x.keep(page{crawl: 7, start: last.start, after: "other", ended: last.ended})
	require.Equal(t, "other", x.before(page{crawl: 7, start: last.start}, now).after)
	require.Len(t, x.kept, mostPages)
}

// A key that no host can have names no URLs, and a client that goes away while its listing is made harms no other.
func TestListingsThatFail(t *testing.T) {
	s, _, dial := startInside(t)
	client, key := dial(), strings.Repeat("k", 256)
	list, err := client.ListURLs(t.Context(), &pb.ListUrlParams{Key: key})
	require.NoError(t, err)
	_, err = list.Recv()
	require.ErrorIs(t, err, io.EOF)
	n, err := client.CountURLs(t.Context(), &pb.CountUrlParams{Key: key})
	require.NoError(t, err)
	require.Zero(t, n.GetValue())
	purge := purge{s: s, key: key, before: math.MaxInt64}
	require.NoError(t, purge.run(t.Context()))

	_, err = s.newListing(version{}, queueName{}, func(yield func(inspect.StoredURL, error) bool) { yield(inspect.StoredURL{}, context.Canceled) })
	require.ErrorIs(t, err, context.Canceled)
	files, err := os.ReadDir(s.o.TempDir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// What another process may answer is unavailable, and no failure.
func TestAFrontierThatMovedIsUnavailable(t *testing.T) {
	for err, code := range map[error]codes.Code{
		fmt.Errorf("fenced: %w: %w", storage.ErrReopen, storage.ErrMoved): codes.Unavailable,
		fmt.Errorf("broken: %w", storage.ErrReopen):                       codes.Internal,
	} {
		require.Equal(t, code, status.Code(statusOf(err)), err)
	}
}
