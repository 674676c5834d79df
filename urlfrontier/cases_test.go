package urlfrontier_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

var anyCrawl = &pb.GetParams_AnyCrawlID{AnyCrawlID: &pb.AnyCrawlID{}}

// due waits until something of a queue is handed out.
func (a *api) due(p *pb.GetParams) (got []string) {
	a.Helper()
	require.Eventually(a, func() bool { got = a.get(p); return len(got) > 0 }, time.Minute, time.Millisecond)
	return got
}

func (a *api) delay(key string, seconds uint32) {
	a.Helper()
	_, err := a.SetDelay(a.Context(), &pb.QueueDelayParams{Key: key, DelayRequestable: seconds})
	require.NoError(a, err)
}

func TestAQueueIsServedOnceADelay(t *testing.T) {
	for name, p := range map[string]*pb.GetParams{"by key": {Key: "a.example", MaxUrlsPerQueue: 1, Item: anyCrawl}, "by rotation": {MaxUrlsPerQueue: 1, Item: anyCrawl}} {
		t.Run(name, func(t *testing.T) {
			a := start(t)
			a.delay("", 1000)
			a.put(discovered("", "", "http://a.example/1"), discovered("", "", "http://a.example/2"))
			got := make(chan []string, 2)
			for range 2 {
				go func() {
					stream, err := a.GetURLs(context.WithoutCancel(a.Context()), p)
					var urls []string
					for err == nil {
						var u *pb.URLInfo
						if u, err = stream.Recv(); err == nil {
							urls = append(urls, u.GetUrl())
						}
					}
					got <- urls
				}()
			}
			require.Len(t, append(<-got, <-got...), 1)
			s := a.stats("", "a.example")
			require.Equal(t, []any{uint64(2), uint32(1)}, []any{s.GetSize(), s.GetInProcess()})
		})
	}
}

func TestNothingIsServedThatIsWithheld(t *testing.T) {
	a := start(t)
	both := func() {
		t.Helper()
		require.Empty(t, a.get(&pb.GetParams{Key: "a.example", Item: anyCrawl}))
		require.Empty(t, a.get(&pb.GetParams{Item: anyCrawl}))
	}
	both() // a queue that has nothing starts no delay
	a.put(discovered("", "", "http://a.example/1"))
	require.Empty(t, a.get(&pb.GetParams{Key: "a.example"}), "a key without a crawl")
	require.Empty(t, a.get(byKey("other", "a.example", 1)))
	_, err := a.SetActive(t.Context(), &pb.Active{})
	require.NoError(t, err)
	state, err := a.GetActive(t.Context(), &pb.Local{})
	require.NoError(t, err)
	require.False(t, state.GetState())
	both()
	_, err = a.SetActive(t.Context(), &pb.Active{State: true})
	require.NoError(t, err)
	block := func(until int64) {
		t.Helper()
		_, err := a.BlockQueueUntil(t.Context(), &pb.BlockQueueParams{Key: "a.example", Time: uint64(until)})
		require.NoError(t, err)
	}
	for _, until := range []int64{time.Now().Unix() + 1000, 1 << 62} { // the second is for ever
		block(0)
		block(until)
		both()
	}
	inactive, err := a.ListQueues(t.Context(), &pb.Pagination{})
	require.NoError(t, err)
	require.Empty(t, inactive.GetValues())
	require.Equal(t, []string{"a.example"}, a.queues(""))
	block(0)
	limit := func(key string, n uint32) error {
		_, err := a.SetCrawlLimit(t.Context(), &pb.CrawlLimitParams{Key: key, Limit: n})
		return err
	}
	require.Error(t, limit("b.example", 1), "an unknown queue")
	require.NoError(t, limit("a.example", 1))
	a.put(known("", "", "http://a.example/done", 0))
	both()
	require.NoError(t, limit("a.example", 0))
	require.Equal(t, []string{"http://a.example/1"}, a.due(byKey("DEFAULT", "a.example", 30)))
}

func TestURLsComeAtTheirTimeTheMostUrgentFirst(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	now := time.Now().Unix()
	a.put(known("", "", "http://a.example/later", now+1000), discovered("", "", "http://a.example/found"),
		known("", "", "http://a.example/late", now-100_000), known("", "", "http://a.example/first", 1))
	for _, want := range []string{"first", "late", "found"} {
		require.Equal(t, []string{"http://a.example/" + want}, a.due(byKey("", "a.example", 30)))
		a.put(known("", "", "http://a.example/"+want, 0))
	}
	require.Empty(t, a.get(byKey("", "a.example", 30)))
	require.EqualValues(t, 1, a.stats("", "").GetSize())
}

func TestABundleHasTheMostUrgentOfAQueue(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	now := time.Now().Unix()
	a.put(discovered("", "", "http://a.example/found"), discovered("other", "", "http://a.example/other"),
		known("", "", "http://a.example/late", now-100_000), known("", "", "http://a.example/first", 1))
	p := byKey("", "a.example", 600)
	p.MaxUrlsPerQueue = 2
	require.Equal(t, []string{"http://a.example/first", "http://a.example/late"}, a.due(p))
	require.EqualValues(t, 2, a.stats("", "").GetInProcess())
	require.Empty(t, a.get(p), "the next bundle comes when all of this one are reported")
	a.put(known("", "", "http://a.example/first", 0))
	require.Empty(t, a.get(p))
	a.put(known("", "", "http://a.example/late", 0))
	require.Equal(t, []string{"http://a.example/found"}, a.due(p))
}

func TestAClientThatLeavesLosesNothing(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	var items []*pb.URLItem
	for i := range 50 {
		items = append(items, discovered("", "", fmt.Sprintf("http://host%d.example/", i)))
	}
	a.put(items...)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := a.GetURLs(ctx, &pb.GetParams{DelayRequestable: 1, Item: anyCrawl})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	cancel()
	seen := map[string]bool{}
	require.Eventually(t, func() bool {
		for _, url := range a.get(&pb.GetParams{DelayRequestable: 600, Item: anyCrawl}) {
			require.False(t, seen[url], url)
			seen[url] = true
		}
		return len(seen) == 50
	}, time.Minute, 10*time.Millisecond)
}

func TestAQueueIsDeletedWhileItsURLsAreOut(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	urls := []string{"http://a.example/1", "http://a.example/2"}
	a.put(discovered("", "", urls[0]), discovered("", "", urls[1]), discovered("other", "", urls[0]))
	require.Len(t, a.due(byKey("DEFAULT", "a.example", 600)), 1)
	n, err := a.DeleteQueue(t.Context(), &pb.QueueWithinCrawlParams{Key: "a.example"})
	require.NoError(t, err)
	require.EqualValues(t, 2, n.GetValue())
	require.Equal(t, []string{"other"}, a.crawls())
	require.Empty(t, a.get(byKey("DEFAULT", "a.example", 600)))
	require.Equal(t, urls[:1], a.due(byKey("other", "a.example", 600)))
	require.Equal(t, map[string][]string{urls[1]: {"OK"}}, a.put(discovered("", "", urls[1])))
	require.Len(t, a.list(&pb.ListUrlParams{}), 1)
}

func TestBatchesHaveAStatusForEachURL(t *testing.T) {
	a := start(t)
	require.Equal(t, []string{"OK", "OK", "OK"}, a.batch("1", info("", "", "http://a.example/1"), info("", "", "http://a.example/2"), info("", "", "http://b.example/")))
	require.Equal(t, []string{"OK", "SKIPPED"}, a.batch("2", info("", "", "http://c.example/"), info("", "", "http://c.example/")))
	require.Equal(t, []string{"SKIPPED", "SKIPPED", "OK"}, a.batch("3", info("", "", "http://a.example/1"), info("", "", "no URL"), info("", "", "http://d.example/")))
	require.Empty(t, a.batch("empty"))
	require.Equal(t, []string{"SKIPPED"}, a.batch("4", info("", strings.Repeat("k", 256), "http://a.example/5")))
	require.EqualValues(t, 5, a.stats("", "").GetSize())
}

func TestAStreamIsAcknowledgedWhileItIsSent(t *testing.T) {
	a := start(t)
	var items []*pb.URLItem
	for i := range 5000 { // more than may be without acknowledgement
		item := discovered("", "", fmt.Sprintf("http://host%d.example/%d", i%10, i))
		item.ID = fmt.Sprint(i)
		items = append(items, item)
	}
	acks := a.put(items...)
	require.Len(t, acks, 5000)
	for _, ack := range acks {
		require.Equal(t, []string{"OK"}, ack)
	}
	require.Len(t, a.queues(""), 10)
	require.EqualValues(t, 5000, a.stats("", "").GetSize())
}

func TestKnownURLsChange(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	const url = "http://a.example/"
	now := time.Now().Unix()
	a.put(discovered("", "", url))
	require.GreaterOrEqual(t, a.dateOf("", url), now)
	item, err := a.status("", "a.example", url)
	require.NoError(t, err)
	created := item.GetCreationDate()
	require.NotZero(t, created)
	for _, date := range []int64{now + 500, 0, 2943003600, 0} {
		a.put(known("", "", url, date))
		item, err := a.status("", "", url)
		require.NoError(t, err)
		require.EqualValues(t, date, item.GetKnown().GetRefetchableFromDate())
		require.Equal(t, created, item.GetCreationDate())
	}
	require.Equal(t, map[string][]string{url: {"SKIPPED"}}, a.put(discovered("", "", url)))
	_, err = a.status("", "", "http://a.example/unknown")
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = a.status("unknown", "", url)
	require.Equal(t, codes.NotFound, status.Code(err))
	_, err = a.status("", "", "no URL")
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	a.put(known("", "other.example", url, now+900)) // it joins another queue
	require.EqualValues(t, 1, a.stats("", "other.example").GetSize())
	require.Equal(t, map[string][]string{url: {"SKIPPED"}}, a.put(discovered("", "third.example", url)))
}

func TestAReportOfATroubledHostSlowsItDown(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	item := known("", "", "http://a.example/1", time.Now().Unix())
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{"fetch.statusCode": {Values: []string{"429"}}, "protocol.retry-after": {Values: []string{"1000"}}}
	a.put(discovered("", "", "http://a.example/1"), discovered("", "", "http://a.example/2"))
	require.Equal(t, []string{"http://a.example/1"}, a.due(byKey("", "a.example", 600)))
	a.put(item)
	require.Empty(t, a.get(byKey("", "a.example", 600)))
	require.EqualValues(t, 2, a.stats("", "a.example").GetSize())
	require.Zero(t, a.stats("", "a.example").GetInProcess())

	a.put(discovered("", "", "http://b.example/1"), discovered("", "", "http://b.example/2"))
	require.Equal(t, []string{"http://b.example/1"}, a.due(byKey("", "b.example", 600)))
	item = known("", "", "http://b.example/1", 0)
	item.GetKnown().Info.Metadata = map[string]*pb.StringList{"fetch.statusCode": {Values: []string{"500"}}}
	a.put(item)
	require.Zero(t, a.dateOf("", "http://b.example/1"), "a failure may complete a URL")
	require.Equal(t, []string{"http://b.example/2"}, a.due(byKey("", "b.example", 600)))
}

func TestListsAndCounts(t *testing.T) {
	a := start(t)
	for i := range 5 {
		a.put(known("", "", fmt.Sprintf("http://a.example/%d", i), int64(i%2)*(time.Now().Unix()+1000)))
	}
	a.put(known("", "", "http://b.example/Completed", 0))
	require.Len(t, a.list(&pb.ListUrlParams{}), 6)
	require.Len(t, a.list(&pb.ListUrlParams{Start: 4}), 2)
	require.Len(t, a.list(&pb.ListUrlParams{Size: 4}), 4)
	require.Len(t, a.list(&pb.ListUrlParams{Key: "a.example"}), 5)
	require.Len(t, a.list(&pb.ListUrlParams{Key: "a.example", Start: 3}), 2)
	text, yes := "COMPLETED", true
	for want, ignore := range map[int]*bool{0: nil, 1: &yes} {
		require.Len(t, a.list(&pb.ListUrlParams{Filter: &text, IgnoreCase: ignore}), want)
		n, err := a.CountURLs(t.Context(), &pb.CountUrlParams{Filter: &text, IgnoreCase: ignore})
		require.NoError(t, err)
		require.EqualValues(t, want, n.GetValue())
	}
	n, err := a.CountURLs(t.Context(), &pb.CountUrlParams{Key: "a.example"})
	require.NoError(t, err)
	require.EqualValues(t, 5, n.GetValue())
	a.put(discovered("", "", "http://c.example/")) // a listing sees what its connection wrote
	require.Len(t, a.list(&pb.ListUrlParams{}), 7)

	page, err := a.ListQueues(t.Context(), &pb.Pagination{Start: 1, Size: 1, IncludeInactive: true})
	require.NoError(t, err)
	require.Equal(t, []any{[]string{"b.example"}, uint32(1), uint32(1), "DEFAULT"}, []any{page.GetValues(), page.GetStart(), page.GetSize(), page.GetCrawlID()})
	page, err = a.ListQueues(t.Context(), &pb.Pagination{Start: 1, Size: 5})
	require.NoError(t, err)
	require.Equal(t, []string{"c.example"}, page.GetValues(), "inactive ones do not shift the offset")
}

func TestPurgeRemovesWhatIsOld(t *testing.T) {
	a := start(t)
	a.put(discovered("", "", "http://a.example/1"), known("", "", "http://b.example/", 0))
	purge := func(days uint32, key string) uint64 {
		n, err := a.PurgeURLs(t.Context(), &pb.PurgeUrlParams{Days: days, Key: key})
		require.NoError(t, err)
		return n.GetValue()
	}
	require.Zero(t, purge(1, ""))
	require.Eventually(t, func() bool { return purge(0, "b.example") == 1 }, time.Minute, 50*time.Millisecond)
	require.Equal(t, []any{uint64(1), uint64(0)}, []any{a.stats("", "").GetSize(), a.stats("", "").GetCounts()["completed"]})
	require.Len(t, a.list(&pb.ListUrlParams{}), 1)
	require.Equal(t, []string{"OK"}, a.batch("again", info("", "", "http://b.example/")))
}

func TestWhatWasPurgedIsGoneAfterARestart(t *testing.T) {
	dir := t.TempDir()
	a, settle, stop := startIn(t, dir)
	for i := range 10 {
		a.put(known("", "", fmt.Sprintf("http://a.example/%d", i), int64(i%2)*4e9))
	}
	purged := uint64(0)
	require.Eventually(t, func() bool { // in a later second
		n, err := a.PurgeURLs(t.Context(), &pb.PurgeUrlParams{})
		require.NoError(t, err)
		purged += n.GetValue()
		return purged == 10
	}, time.Minute, 50*time.Millisecond)
	gone := func() {
		t.Helper()
		require.Empty(t, a.queues(""))
		require.Empty(t, a.list(&pb.ListUrlParams{}))
		require.Empty(t, a.stats("", "a.example").GetCounts()["completed"])
		crawls, err := a.ListCrawls(t.Context(), &pb.Local{})
		require.NoError(t, err)
		require.Empty(t, crawls.GetValues())
		_, err = a.status("", "", "http://a.example/1")
		require.Equal(t, codes.NotFound, status.Code(err))
	}
	gone()
	settle()
	stop()
	a, _, stop = startIn(t, dir)
	gone()
	require.Equal(t, []string{"OK", "SKIPPED"}, a.batch("again", info("", "", "http://a.example/1"), info("", "", "http://a.example/1")))
	require.EqualValues(t, 1, a.stats("", "").GetSize())
	stop()
	a, _, stop = startIn(t, dir)
	require.EqualValues(t, 1, a.stats("", "").GetSize())
	require.Len(t, a.list(&pb.ListUrlParams{}), 1)
	stop()
}

// What comes and goes by another API of the same frontier counts here, too.
func TestBothAPIsShareAFrontier(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	address, _, stop := startOf(t, f, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	defer stop()
	a := dial(t, address)
	a.put(discovered("", "", "http://a.example/0")) // the crawl has a number now
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1", Crawl: crawlOf(t, f, "http://a.example/0")})
	require.NoError(t, err)
	require.EqualValues(t, 2, a.stats("", "a.example").GetSize())
	require.Equal(t, []string{"SKIPPED"}, a.batch("", info("", "", "http://a.example/1")))
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, a.stats("", "").GetInProcess())
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	s := a.stats("", "")
	require.Equal(t, []uint64{1, 1}, []uint64{s.GetSize(), s.GetCounts()["completed"]})
}

// crawlOf returns the number of a URL's crawl.
func crawlOf(t *testing.T, f *frontier.Frontier, url string) uint32 {
	for u, err := range inspect.New(f).URLs(t.Context(), scope.All(), "") {
		require.NoError(t, err)
		if u.Entry.URL == url {
			return u.Entry.Crawl
		}
	}
	require.Fail(t, "it is not there", url)
	return 0
}

// What a client has while the server is killed keeps its host, until the client reports it.
func TestAKilledServerLeavesHostsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at, kill := startProcess(t, dir)
	a := dial(t, at)
	const has, is, free = "http://a.example/1", "http://b.example/1", "http://c.example/1"
	a.put(discovered("", "", has), discovered("", "", "http://a.example/2"), discovered("", "", is), discovered("", "", "http://b.example/2"), discovered("", "", free))
	require.Equal(t, []string{has}, a.get(byKey("DEFAULT", "a.example", 600)))
	require.Equal(t, []string{is}, a.get(byKey("DEFAULT", "b.example", 600)))
	kill()
	at, _ = startProcess(t, dir)
	a = dial(t, at)
	got := a.get(&pb.GetParams{MaxUrlsPerQueue: 1, DelayRequestable: 600})
	require.Equal(t, []string{free}, got, "it waited until hosts may be contacted after a kill")
	a.put(known("", "", has, 0))
	require.Equal(t, []string{"http://a.example/2"}, a.due(byKey("DEFAULT", "a.example", 600)))
	require.Empty(t, a.get(byKey("DEFAULT", "b.example", 600)))
}

func TestKillsLoseNothingThatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	at, kill := startProcess(t, dir)
	a := dial(t, at)
	a.put(discovered("", "", "http://a.example/1"), known("", "", "http://a.example/done", 0), discovered("", "key", "http://b.example/"), discovered("gone", "", "http://c.example/"))
	_, err := a.DeleteCrawl(t.Context(), &pb.DeleteCrawlMessage{Value: "gone"})
	require.NoError(t, err)
	_, err = a.SetActive(t.Context(), &pb.Active{})
	require.NoError(t, err)
	_, err = a.BlockQueueUntil(t.Context(), &pb.BlockQueueParams{Key: "key", Time: 4e9})
	require.NoError(t, err)
	kill()
	at, _ = startProcess(t, dir)
	a = dial(t, at)
	require.ElementsMatch(t, []string{"a.example", "key"}, a.queues(""))
	require.Equal(t, []string{"DEFAULT"}, a.crawls())
	s := a.stats("", "")
	require.Equal(t, []any{uint64(2), uint64(1)}, []any{s.GetSize(), s.GetCounts()["completed"]})
	state, err := a.GetActive(t.Context(), &pb.Local{})
	require.NoError(t, err)
	require.False(t, state.GetState())
	open, err := a.ListQueues(t.Context(), &pb.Pagination{})
	require.NoError(t, err)
	require.Equal(t, []string{"a.example"}, open.GetValues())
	require.Equal(t, []string{"SKIPPED", "SKIPPED", "OK"}, a.batch("1", info("", "", "http://a.example/done"), info("", "", "http://b.example/"), info("gone", "", "http://c.example/")))
}

func TestRolesOfTokens(t *testing.T) {
	var lines string
	for _, role := range []string{"look", "crawl", "operate"} {
		sum := sha256.Sum256([]byte("secret-" + role))
		lines += role + " " + hex.EncodeToString(sum[:]) + " " + role + "\n"
	}
	tokens, err := serve.ReadTokens(strings.NewReader(lines))
	require.NoError(t, err)
	at, _ := startWith(t, serve.Options{Tokens: tokens}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	a := dial(t, at)
	h, err := grpc_health_v1.NewHealthClient(a.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "urlfrontier.URLFrontier"})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, h.GetStatus())
	try := func(token string) (look, crawl, operate codes.Code) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
		_, err := a.GetStats(ctx, &pb.QueueWithinCrawlParams{})
		stream, serr := a.GetURLs(ctx, &pb.GetParams{Item: anyCrawl})
		if serr == nil {
			if _, serr = stream.Recv(); serr == io.EOF {
				serr = nil
			}
		}
		_, oerr := a.SetActive(ctx, &pb.Active{State: true})
		return status.Code(err), status.Code(serr), status.Code(oerr)
	}
	for token, want := range map[string][3]codes.Code{
		"": {codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated}, "Bearer wrong": {codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated},
		"Bearer secret-look":    {codes.OK, codes.PermissionDenied, codes.PermissionDenied},
		"Bearer secret-crawl":   {codes.OK, codes.OK, codes.PermissionDenied},
		"Bearer secret-operate": {codes.OK, codes.OK, codes.OK},
	} {
		look, crawl, operate := try(token)
		require.Equal(t, want, [3]codes.Code{look, crawl, operate}, token)
	}
}

func TestAClosingServerFailsWhatComes(t *testing.T) {
	at, s := startWith(t, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{Reflection: true})
	a := dial(t, at)
	stream, err := a.PutURLs(t.Context())
	require.NoError(t, err)
	exchange := func(url string) string {
		require.NoError(t, stream.Send(discovered("", "", url)))
		ack, err := stream.Recv()
		require.NoError(t, err)
		return ack.GetStatus().String()
	}
	require.Equal(t, "OK", exchange("http://a.example/1"))
	require.NoError(t, s.Close())
	require.Equal(t, "FAIL", exchange("http://a.example/2"))
	require.Empty(t, a.get(&pb.GetParams{Item: anyCrawl}))
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.Equal(t, io.EOF, err)
}

func TestLargeMessages(t *testing.T) {
	a := start(t)
	big := make([]*pb.URLInfo, 100)
	for i := range big {
		big[i] = info("", "", fmt.Sprintf("http://a.example/%d/%s", i, strings.Repeat("x", 60<<10)))
	}
	require.Len(t, a.batch("6 MB", big...), 100)
	stream, err := a.PutDiscovered(t.Context(), grpc.MaxCallSendMsgSize(64<<20))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&pb.DiscoveredBatch{Items: append(append(big, big...), big...)}))
	_, err = stream.Recv()
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
}

// startIn starts a server of the frontier in a folder. It returns what moves URLs to disk, and what
// stops the server in good order.
func startIn(t *testing.T, dir string) (a *api, settle, stop func()) {
	t.Helper()
	store, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Spill: store}))
	require.NoError(t, err)
	at, _, end := startOf(t, f, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	settle = func() { require.NoError(t, hook.Of(f).MoveNow(true)) }
	return dial(t, at), settle, func() { end(); require.NoError(t, store.Close()) }
}

// Keys are used as they are, hosts or not, in memory and on disk. A report with another key completes
// the URL in its queue, and sends it to the other.
func TestKeysOfAllKinds(t *testing.T) {
	dir := t.TempDir()
	a, settle, stop := startIn(t, dir)
	a.delay("", 0)
	now := time.Now().Unix() - 1
	later := now + 1000
	keys := []string{"_DEFAULT_", "a.example", "Key / with ? anything"}
	dates := func(i int) map[string]int64 {
		return map[string]int64{
			fmt.Sprintf("http://a.example/%d/now", i): now, fmt.Sprintf("http://a.example/%d/later", i): later,
			fmt.Sprintf("http://a.example/%d/done", i): 0,
		}
	}
	check := func() {
		t.Helper()
		for i, key := range keys {
			s := a.stats("", key)
			require.Equal(t, []any{uint64(2), uint64(1)}, []any{s.GetSize(), s.GetCounts()["completed"]})
			for url, date := range dates(i) {
				item, err := a.status("", key, url)
				require.NoError(t, err)
				require.EqualValues(t, date, item.GetKnown().GetRefetchableFromDate(), url)
			}
		}
		s := a.stats("", "")
		require.Equal(t, []any{uint64(6), uint64(3)}, []any{s.GetSize(), s.GetCounts()["completed"]})
		require.Len(t, a.list(&pb.ListUrlParams{}), 9)
		require.ElementsMatch(t, keys, a.queues(""))
	}
	for i, key := range keys {
		for url, date := range dates(i) {
			require.Equal(t, map[string][]string{url: {"OK"}}, a.put(known("", key, url, date)))
		}
	}
	check()
	settle()
	check()
	stop()
	a, _, stop = startIn(t, dir)
	check()
	for i, key := range keys {
		require.Equal(t, []string{fmt.Sprintf("http://a.example/%d/now", i)}, a.due(byKey("", key, 600)))
	}
	moved := "http://a.example/0/now"
	require.Equal(t, map[string][]string{moved: {"OK"}}, a.put(known("", "b.example", moved, later)))
	require.EqualValues(t, 1, a.stats("", "_DEFAULT_").GetSize())
	require.EqualValues(t, 1, a.stats("", "b.example").GetSize())
	item, err := a.status("", "b.example", moved)
	require.NoError(t, err)
	require.EqualValues(t, later, item.GetKnown().GetRefetchableFromDate())
	stop()
}
