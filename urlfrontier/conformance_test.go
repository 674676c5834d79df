package urlfrontier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/test/verbs"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

var _ verbs.Frontier = remote{}

// TestConformance is the suite over gRPC. The API names no leases: a remote is no verbs.Leases, and
// the cases that need one are skipped. No call extends a lease, hands one back, lets it join a group, or
// gets one for a contact only. A report is about a URL, not about the lease of who sends it. No answer
// tells how often a URL was tried, which URLs that were SKIPPED are bad, or when to ask again. Metadata is
// text, and an item has neither depth nor weight.
func TestConformance(t *testing.T) {
	verbs.Run(t, func(t *testing.T, o frontier.Options) verbs.Frontier {
		return remoteTo(t, within(t, o), o)
	})
}

// TestConformanceOfARouter is the suite through a router.
func TestConformanceOfARouter(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n, " parts"), func(t *testing.T) {
			verbs.Run(t, func(t *testing.T, o frontier.Options) verbs.Frontier {
				to, urls := map[string]urlfrontier.Dial{}, map[string][]string{}
				for i := range n {
					to[fmt.Sprint(i)] = within(t, o).DialContext
					urls[fmt.Sprint(i)] = []string{fmt.Sprint("http://localhost:", i+1)}
				}
				division, err := route.New(route.Options{Parts: urls})
				require.NoError(t, err)
				r, err := urlfrontier.NewRouter(urlfrontier.RouterOptions{Division: division, Parts: to})
				require.NoError(t, err)
				l, server := bufconn.Listen(1<<20), r.GRPC(urlfrontier.GRPCOptions{})
				end := serving(t, server, l)
				t.Cleanup(func() {
					assert.NoError(t, r.Stop(server, time.Second))
					end()
					assert.NoError(t, division.Close())
				})
				return remoteTo(t, l, o)
			})
		})
	}
}

// within serves a frontier in memory, so that a bubble holds both ends.
func within(t *testing.T, o frontier.Options) *bufconn.Listener {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(o))
	require.NoError(t, err)
	l := bufconn.Listen(1 << 20)
	_, stop := serveOn(t, l, f, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	t.Cleanup(stop)
	return l
}

func remoteTo(t *testing.T, l *bufconn.Listener, o frontier.Options) remote {
	conn, err := grpc.NewClient("passthrough:///frontier", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return remote{pb.NewURLFrontierClient(conn), o.LeaseTime}
}

// remote has the verbs of a frontier, by calls of the API in the crawl DEFAULT. The Meta of a URL is one
// value of its metadata.
type remote struct {
	pb.URLFrontierClient
	hold time.Duration // of GetURLs
}

const (
	metaName = "meta"
	pause    = 5 * time.Second // between calls: a Next that is in time was served by a call that waited
)

// errNoWord is returned for what the API cannot say.
var errNoWord = errors.New("the API has no word for this")

func infoOf(e frontier.Entry) *pb.URLInfo {
	i := info("", e.Host, e.URL)
	if len(e.Meta) > 0 {
		i.Metadata = map[string]*pb.StringList{metaName: {Values: []string{string(e.Meta)}}}
	}
	return i
}

func knownAt(i *pb.URLInfo, date time.Time) *pb.URLItem {
	k := &pb.KnownURLItem{Info: i}
	if !date.IsZero() {
		k.RefetchableFromDate = uint64(date.Add(time.Second - 1).Unix()) // no sooner
	}
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: k}}
}

// Add sends the entries as a batch, and those with Force as known items.
func (r remote) Add(ctx context.Context, entries ...frontier.Entry) (n int, err error) {
	batch := &pb.DiscoveredBatch{}
	var forced []*pb.URLItem
	for _, e := range entries {
		if e.Force {
			forced = append(forced, knownAt(infoOf(e), time.Now()))
		} else {
			batch.Items = append(batch.Items, infoOf(e))
		}
	}
	stream, err := r.PutDiscovered(ctx)
	if err != nil {
		return 0, err
	}
	acks, err := exchange(stream, batch)
	if err != nil {
		return 0, err
	}
	statuses := acks[0].GetStatuses()
	if len(statuses) != len(batch.Items) {
		return 0, fmt.Errorf("%d statuses of %d URLs", len(statuses), len(batch.Items))
	}
	more, err := r.put(ctx, forced...)
	if err != nil {
		return 0, err
	}
	for _, s := range append(statuses, more...) {
		switch s {
		case pb.AckMessage_OK:
			n++
		case pb.AckMessage_FAIL:
			err = errors.New("a URL was not stored")
		}
	}
	return n, err
}

// put sends items, and returns their statuses.
func (r remote) put(ctx context.Context, items ...*pb.URLItem) (statuses []pb.AckMessage_Status, err error) {
	stream, err := r.PutURLs(ctx)
	if err != nil {
		return nil, err
	}
	acks, err := exchange(stream, items...)
	for _, ack := range acks {
		statuses = append(statuses, ack.GetStatus())
	}
	return statuses, err
}

// exchange sends messages, and returns the acknowledgement of each.
func exchange[Req, Ack any](stream grpc.BidiStreamingClient[Req, Ack], messages ...*Req) (acks []*Ack, err error) {
	for _, m := range messages {
		if err := stream.Send(m); err != nil {
			return nil, err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	for {
		ack, err := stream.Recv()
		if errors.Is(err, io.EOF) && len(acks) == len(messages) {
			return acks, nil
		}
		if err != nil {
			return nil, err
		}
		acks = append(acks, ack)
	}
}

func (r remote) Next(ctx context.Context) (frontier.Lease, error) {
	for {
		l, err := r.take(ctx)
		if !errors.Is(err, frontier.ErrNotDue) {
			return l, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return frontier.Lease{}, ctx.Err()
		}
	}
}

// TryNext ends the call when the server begins to wait: until then no time passes in the bubble.
func (r remote) TryNext() (frontier.Lease, time.Time, error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	l, err := r.take(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.nothing(context.Background())
	}
	return l, time.Time{}, err
}

// take gets one URL of one queue. The deadline of its lease is the one that the client may count on.
func (r remote) take(ctx context.Context) (_ frontier.Lease, err error) {
	defer func() {
		if status.Code(err) == codes.DeadlineExceeded {
			err = context.DeadlineExceeded
		}
	}()
	deadline := time.Now().Add(r.hold)
	stream, err := r.GetURLs(ctx, &pb.GetParams{
		MaxUrlsPerQueue: 1, MaxQueues: 1, DelayRequestable: uint32(r.hold / time.Second), Item: &pb.GetParams_CrawlID{},
	})
	if err != nil {
		return frontier.Lease{}, err
	}
	var leases []frontier.Lease
	for {
		u, err := stream.Recv()
		switch {
		case err == nil:
			e := frontier.Entry{URL: u.GetUrl()}
			if v := u.GetMetadata()[metaName].GetValues(); len(v) > 0 {
				e.Meta = []byte(v[0])
			}
			leases = append(leases, frontier.Lease{Entry: e, Host: u.GetKey(), Deadline: deadline})
		case !errors.Is(err, io.EOF):
			return frontier.Lease{}, err
		case len(leases) == 0:
			return frontier.Lease{}, r.nothing(ctx)
		case len(leases) > 1:
			return frontier.Lease{}, fmt.Errorf("%d URLs instead of one", len(leases))
		default:
			return leases[0], nil
		}
	}
}

// nothing says why there was no URL. A queue that is blocked, or has nothing to come, is not listed.
func (r remote) nothing(ctx context.Context) error {
	queues, err := r.ListQueues(ctx, &pb.Pagination{Size: 1})
	if err != nil {
		return err
	}
	s, err := r.GetStats(ctx, &pb.QueueWithinCrawlParams{})
	switch {
	case err != nil:
		return err
	case len(queues.GetValues()) > 0 || s.GetInProcess() > 0:
		return frontier.ErrNotDue
	case s.GetSize() > 0:
		return &frontier.HeldError{Held: int64(s.GetSize())}
	}
	return frontier.ErrExhausted
}

// statusCodes maps failures to statuses.
var statusCodes = map[frontier.Failure]int{frontier.FailureTooMany: 429, frontier.FailureUnavailable: 503, frontier.FailureServer: 500}

// Done sends a known item, and the outlinks as discovered ones.
func (r remote) Done(l frontier.Lease, o frontier.Outcome) error {
	e := frontier.Entry{URL: l.Entry.URL, Host: l.Host, Meta: l.Entry.Meta}
	if o.Meta != nil {
		e.Meta = o.Meta
	}
	i, date := infoOf(e), o.Next
	say := func(name string, n int) {
		if i.Metadata == nil {
			i.Metadata = map[string]*pb.StringList{}
		}
		i.Metadata[name] = &pb.StringList{Values: []string{strconv.Itoa(n)}}
	}
	switch o.Result {
	case frontier.Visited, frontier.Changed, frontier.PutOff:
	case frontier.Failed:
		code, ok := statusCodes[o.Failure]
		if !ok {
			return errNoWord
		}
		say("fetch.statusCode", code)
		if date.IsZero() {
			date = time.Now()
		}
	default:
		return errNoWord
	}
	if o.RetryAfter > 0 {
		say("protocol.retry-after", int(o.RetryAfter/time.Second))
	}
	items := []*pb.URLItem{knownAt(i, date)}
	for _, link := range o.Add {
		items = append(items, &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: infoOf(link)}}})
	}
	statuses, err := r.put(context.Background(), items...)
	if err != nil {
		return err
	}
	for i, s := range statuses {
		if s == pb.AckMessage_FAIL || i == 0 && s != pb.AckMessage_OK {
			return fmt.Errorf("item %d: %v", i, s)
		}
	}
	return nil
}

// Host counts the URLs of a host. Those that are scheduled count as waiting.
func (r remote) Host(ctx context.Context, host string) (inspect.Host, error) {
	s, err := r.GetStats(ctx, &pb.QueueWithinCrawlParams{Key: host})
	if err == nil && s.GetNumberOfQueues() == 0 {
		err = frontier.ErrUnknownHost
	}
	return inspect.Host{Host: host, Waiting: int64(s.GetSize()) - int64(s.GetInProcess()), Leased: int(s.GetInProcess())}, err
}

// Stats counts URLs as Host does. If the call fails, the counts are negative.
func (r remote) Stats() frontier.Stats {
	s, err := r.GetStats(context.Background(), &pb.QueueWithinCrawlParams{})
	if err != nil {
		return frontier.Stats{Waiting: -1, Leased: -1}
	}
	return frontier.Stats{Waiting: int64(s.GetSize()) - int64(s.GetInProcess()), Leased: int64(s.GetInProcess()), Finished: int64(s.GetCounts()["completed"])}
}

// Pause blocks a host for ever.
func (r remote) Pause(s scope.Scope) error {
	_, err := r.BlockQueueUntil(context.Background(), &pb.BlockQueueParams{Key: s.String(), Time: 1 << 62})
	return err
}

func (r remote) Resume(s scope.Scope) error {
	_, err := r.BlockQueueUntil(context.Background(), &pb.BlockQueueParams{Key: s.String()})
	return err
}

// Delete deletes the queue of a host.
func (r remote) Delete(ctx context.Context, s scope.Scope) (int64, error) {
	n, err := r.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: s.String()})
	return int64(n.GetValue()), err
}
