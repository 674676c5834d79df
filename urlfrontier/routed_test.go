package urlfrontier_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// hostOf returns a host of a part.
func (x *routed) hostOf(part string, n int) string {
	for i := 0; ; i++ {
		host := fmt.Sprintf("h%d-%d.example", n, i)
		if x.route.Home(host) == part {
			return host
		}
	}
}

func TestTheSevenPassThroughARouter(t *testing.T) {
	for _, n := range []int{1, 3} {
		a := dial(t, startRouted(t, n, serve.Options{}, urlfrontier.Options{}).address)
		for _, c := range seven {
			t.Run(fmt.Sprintf("%d parts: %s", n, c.name), func(t *testing.T) { one := *a; one.T = t; one.empty(); c.run(&one) })
		}
	}
}

// Each URL is at the part of its host, also when a client gives a key, and lists have each once.
func TestAllPartsAreOne(t *testing.T) {
	x := startRouted(t, 3, serve.Options{}, urlfrontier.Options{Advertised: []string{"router:7071"}})
	a := dial(t, x.address)
	var items []*pb.URLItem
	for i := range 90 {
		items = append(items, discovered("", "", fmt.Sprintf("http://%s/%d", x.hostOf(x.names[i%3], i%30), i)))
	}
	acks := a.put(items...)
	require.Len(t, acks, 90)
	for _, p := range x.parts {
		require.EqualValues(t, 30, p.f.Stats().Known)
	}
	for _, page := range []string{"/new", "/newer"} {
		require.Equal(t, []string{"OK", "SKIPPED", "OK", "OK"}, a.batch("b",
			info("", "", "http://"+x.hostOf("2", 7)+page), info("", "", "no host"), info("", x.hostOf("0", 8), "http://elsewhere.example"+page), info("", "", "http://"+x.hostOf("1", 0)+page)))
	}
	require.Empty(t, a.batch("empty"))
	for part, n := range map[string]int64{"0": 32, "1": 32, "2": 32} {
		require.EqualValues(t, n, x.parts[part].f.Stats().Known)
	}
	s := a.stats("", "")
	require.Equal(t, []any{uint64(96), "DEFAULT", uint64(0)}, []any{s.GetSize(), s.GetCrawlID(), s.GetCounts()["completed"]})
	queues := a.queues("")
	require.EqualValues(t, s.GetNumberOfQueues(), len(queues))
	slices.Sort(queues)
	require.Len(t, slices.Compact(queues), int(s.GetNumberOfQueues()))

	for _, size := range []uint32{1, 7, 32, 33, 1000} { // ends of pages that are ends of parts, and others
		urls, keys := map[string]bool{}, map[string]bool{}
		for start := uint32(0); ; start += size {
			page := a.list(&pb.ListUrlParams{Start: start, Size: size})
			for _, u := range page {
				urls[u.GetKnown().GetInfo().GetUrl()] = true
			}
			if len(page) < int(size) {
				require.EqualValues(t, 96, int(start)+len(page))
				break
			}
		}
		require.Len(t, urls, 96)
		for start := uint32(0); ; start += size {
			page, err := a.ListQueues(t.Context(), &pb.Pagination{Start: start, Size: size})
			require.NoError(t, err)
			require.Equal(t, []uint32{start, uint32(len(page.GetValues()))}, []uint32{page.GetStart(), page.GetSize()})
			for _, key := range page.GetValues() {
				keys[key] = true
			}
			if len(page.GetValues()) < int(size) {
				break
			}
		}
		require.Len(t, keys, len(queues))
	}
	filter := "/1"
	require.Len(t, a.list(&pb.ListUrlParams{Start: 4, Filter: &filter}), 11-4)
	n, err := a.CountURLs(t.Context(), &pb.CountUrlParams{Filter: &filter})
	require.NoError(t, err)
	require.EqualValues(t, 11, n.GetValue())
	nodes, err := a.ListNodes(t.Context(), &pb.Empty{})
	require.NoError(t, err)
	require.Equal(t, []string{"router:7071"}, nodes.GetValues())

	_, err = a.SetActive(t.Context(), &pb.Active{})
	require.NoError(t, err)
	on, err := a.GetActive(t.Context(), &pb.Local{})
	require.NoError(t, err)
	require.False(t, on.GetState())
	require.Empty(t, a.get(&pb.GetParams{Item: anyCrawl}))
	_, err = a.SetActive(t.Context(), &pb.Active{State: true})
	require.NoError(t, err)
	require.Len(t, a.get(&pb.GetParams{Item: anyCrawl, MaxQueues: 20, MaxUrlsPerQueue: 1}), 20, "of several parts")
	a.empty()
	require.Zero(t, a.stats("", "").GetNumberOfQueues())
}

// Parts without URLs cost no wait, and a router waits for the first clock of any of them.
func TestARouterWaitsForTheFirstClock(t *testing.T) {
	x := startRouted(t, 3, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	began := time.Now()
	require.Empty(t, a.get(&pb.GetParams{Item: anyCrawl}))
	require.Less(t, time.Since(began), time.Second)
	fast, slow := x.hostOf("1", 1), x.hostOf("2", 1)
	a.delay(fast, 1)
	a.delay(slow, 600)
	for i := range 3 {
		a.put(discovered("", "", fmt.Sprintf("http://%s/%d", fast, i)), discovered("", "", fmt.Sprintf("http://%s/%d", slow, i)))
	}
	first := a.get(&pb.GetParams{Item: anyCrawl, MaxUrlsPerQueue: 1})
	require.Len(t, first, 2)
	for _, url := range first {
		require.Equal(t, map[string][]string{url: {"OK"}}, a.put(known("", "", url, 0)))
	}
	began = time.Now()
	require.Equal(t, []string{"http://" + fast + "/1"}, a.get(&pb.GetParams{Item: anyCrawl, MaxUrlsPerQueue: 1}))
	require.InDelta(t, time.Second.Seconds(), time.Since(began).Seconds(), 0.5)
	began = time.Now()
	require.Empty(t, a.get(byKey("", slow, 30)))
	require.Less(t, time.Since(began), time.Second, "that clock is too far away")
}

// What a part has not acknowledged when it dies is FAIL, and each item has one acknowledgement.
func TestAPartDiesWhileURLsArePut(t *testing.T) {
	x := startRouted(t, 3, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	const items = 20_000
	left := map[string]*pb.URLItem{}
	for i := range items {
		url := fmt.Sprintf("http://h%d.example/%d", i%500, i)
		left[url] = discovered("", "", url)
	}
	failed, rounds := 0, 0
	for ; len(left) > 0; rounds++ {
		require.Less(t, rounds, 100)
		stream, err := a.PutURLs(t.Context())
		require.NoError(t, err)
		sending := slices.Collect(maps.Values(left))
		go func() {
			for _, item := range sending {
				if stream.Send(item) != nil {
					return
				}
			}
			_ = stream.CloseSend()
		}()
		acked := map[string]bool{}
		for {
			ack, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.False(t, acked[ack.GetID()], "twice")
			if acked[ack.GetID()] = true; ack.GetStatus() == pb.AckMessage_FAIL {
				failed++
			} else {
				delete(left, ack.GetID())
			}
			if len(acked) == items/4 && rounds == 0 {
				x.parts["1"].end()
			}
		}
		require.Len(t, acked, len(sending))
		if rounds == 1 {
			require.NotEmpty(t, a.batch("b", info("", "", "http://"+x.hostOf("1", 1)+"/"), info("", "", "http://"+x.hostOf("0", 1)+"/")))
			require.Equal(t, []string{"FAIL", "OK"}, a.batch("b", info("", "", "http://"+x.hostOf("1", 1)+"/"), info("", "", "http://"+x.hostOf("0", 2)+"/")))
			x.parts["1"].start()
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Log(failed, "FAIL in", rounds, "rounds")
	require.Positive(t, failed)
	require.EqualValues(t, items+2, a.stats("", "").GetSize())
}

// A client may send a page's links and then its report, and wait for neither: the page is done when its links are
// stored, and comes again if they are not.
func TestAReportWaitsForTheLinksBeforeIt(t *testing.T) {
	x := startRouted(t, 2, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	a.delay("", 0)
	pages := map[string]bool{}
	for i := range 4 {
		page := fmt.Sprintf("http://%s/%d", x.hostOf("0", i), i)
		pages[page] = true
		a.put(discovered("", "", page))
	}
	require.Len(t, a.get(&pb.GetParams{Item: anyCrawl, DelayRequestable: 60}), 4)
	done := func() uint64 { return a.stats("", x.hostOf("0", 0)).GetCounts()["completed"] }
	type sent struct{ links, report, batched string }
	for i, want := range []sent{{"OK", "OK", "OK"}, {"FAIL", "FAIL", "FAIL"}} {
		x.parts["1"].end()
		puts, err := a.PutURLs(t.Context())
		require.NoError(t, err)
		batches, err := a.PutDiscovered(t.Context())
		require.NoError(t, err)
		link, page := fmt.Sprintf("http://%s/%d", x.hostOf("1", i), i), fmt.Sprintf("http://%s/%d", x.hostOf("0", 2*i), 2*i)
		acks := make(chan string, 4)
		go func() {
			for ack, err := puts.Recv(); err == nil; ack, err = puts.Recv() {
				acks <- ack.GetID() + " " + ack.GetStatus().String()
			}
		}()
		require.NoError(t, puts.Send(discovered("", "", link)))
		require.NoError(t, puts.Send(known("", "", page, 0)))
		time.Sleep(100 * time.Millisecond)
		require.Empty(t, acks, "the part may come back")
		require.NoError(t, batches.Send(&pb.DiscoveredBatch{Items: []*pb.URLInfo{info("", "", link+"/b")}}))
		time.Sleep(100 * time.Millisecond)
		next := fmt.Sprintf("http://%s/%d", x.hostOf("0", 2*i+1), 2*i+1)
		require.NoError(t, puts.Send(known("", "", next, 0)))
		if want.links == "OK" {
			require.Zero(t, done())
			x.parts["1"].start()
		}
		got := []string{<-acks, <-acks, <-acks}
		slices.Sort(got)
		all := []string{link + " " + want.links, page + " " + want.report, next + " " + want.report}
		slices.Sort(all)
		require.Equal(t, all, got)
		ack, err := batches.Recv()
		require.NoError(t, err)
		require.Equal(t, want.batched, ack.GetStatuses()[0].String())
		require.NoError(t, puts.CloseSend())
		require.NoError(t, batches.CloseSend())
	}
	x.parts["1"].start()
	require.Equal(t, map[string][]string{"http://" + x.hostOf("0", 2) + "/2": {"OK"}}, a.put(known("", "", "http://"+x.hostOf("0", 2)+"/2", 0)), "nothing waits for links that have failed")
}

// A part dies while URLs are taken. The others hand out theirs, nothing is handed out twice at once, and all come.
func TestAPartDiesWhileURLsAreTaken(t *testing.T) {
	x := startRouted(t, 3, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	const hosts, hold = 3000, 3 * time.Second
	var items []*pb.URLItem
	for i := range hosts {
		items = append(items, discovered("", "", fmt.Sprintf("http://h%d.example/", i)))
	}
	a.put(items...)
	last, done, broken := map[string]time.Time{}, map[string]bool{}, 0
	for end := time.Now().Add(time.Minute); len(done) < hosts; {
		require.True(t, time.Now().Before(end), "%d came", len(done))
		stream, err := a.GetURLs(t.Context(), &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 700, DelayRequestable: uint32(hold / time.Second), Item: anyCrawl})
		require.NoError(t, err)
		var got []*pb.URLItem
		asked := time.Now()
		for {
			u, err := stream.Recv()
			if err != nil {
				require.ErrorIs(t, err, io.EOF, "the other parts answer")
				break
			}
			if len(got) == 200 && broken == 0 {
				broken++
				x.parts["0"].end()
				x.parts["2"].end()
			}
			require.False(t, asked.Before(last[u.GetUrl()].Add(hold)) && !last[u.GetUrl()].IsZero(), "%s twice at once", u.GetUrl())
			last[u.GetUrl()] = asked
			got = append(got, known("", "", u.GetUrl(), 0))
		}
		if broken == 1 {
			broken++
			_, err := a.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
			require.Equal(t, codes.Unavailable, status.Code(err))
			require.ErrorContains(t, err, "part 0: ")
			require.ErrorContains(t, err, "part 2: ")
			require.ErrorContains(t, err, "the other 1 parts have answered")
			x.parts["0"].start()
			x.parts["2"].start()
		}
		for url, acks := range a.put(got...) {
			if acks[0] == "OK" {
				done[url] = true
			} else {
				require.Equal(t, "FAIL", acks[0])
			}
		}
	}
	require.EqualValues(t, hosts, a.stats("", "").GetCounts()["completed"])
}

// A change is in force at all parts, or the error names those at which it is not.
func TestAnErrorNamesTheParts(t *testing.T) {
	x := startRouted(t, 3, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	health := grpc_health_v1.NewHealthClient(a.conn)
	says := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		s, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, want, s.GetStatus())
	}
	says(grpc_health_v1.HealthCheckResponse_SERVING)
	x.parts["2"].end()
	_, err := a.SetDelay(t.Context(), &pb.QueueDelayParams{DelayRequestable: 7})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.ErrorContains(t, err, "part 2: ")
	require.NotContains(t, err.Error(), "part 1: ")
	a.delay(x.hostOf("0", 1), 5)
	_, err = a.SetDelay(t.Context(), &pb.QueueDelayParams{Key: x.hostOf("2", 1), DelayRequestable: 7})
	require.ErrorContains(t, err, "part 2: ")
	says(grpc_health_v1.HealthCheckResponse_SERVING)
	for _, list := range []func() error{
		func() error { _, err := a.ListQueues(t.Context(), &pb.Pagination{}); return err },
		func() error { _, err := a.ListCrawls(t.Context(), &pb.Local{}); return err },
		func() error { _, err := a.CountURLs(t.Context(), &pb.CountUrlParams{}); return err },
		func() error {
			stream, err := a.ListURLs(t.Context(), &pb.ListUrlParams{})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		require.ErrorContains(t, list(), "part 2: ", "no list without what it has")
	}
	x.parts["0"].end()
	x.parts["1"].end()
	says(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	stream, err := a.GetURLs(t.Context(), &pb.GetParams{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
}

// The parts judge tokens. A part knows which it is, and refuses a router that takes it for another.
func TestPartsJudgeWhoAsks(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	tokens, err := serve.ReadTokens(strings.NewReader("crawl " + hex.EncodeToString(sum[:]) + " c\n"))
	require.NoError(t, err)
	x := startRouted(t, 2, serve.Options{Tokens: tokens}, urlfrontier.Options{})
	a := dial(t, x.address)
	item := discovered("", "", "http://a.example/")
	put := func(ctx context.Context) error {
		stream, err := a.PutURLs(ctx)
		require.NoError(t, err)
		_ = stream.Send(item)
		_, err = stream.Recv()
		return err
	}
	take := func(ctx context.Context) error {
		stream, err := a.GetURLs(ctx, &pb.GetParams{})
		require.NoError(t, err)
		_, err = stream.Recv()
		return err
	}
	for _, err := range []error{put(t.Context()), take(t.Context())} {
		require.Equal(t, codes.Unauthenticated, status.Code(err), err)
	}
	_, err = a.ListNodes(t.Context(), &pb.Empty{})
	require.Equal(t, codes.Unauthenticated, status.Code(err))
	with := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")
	require.NoError(t, put(with))
	require.NoError(t, take(with))
	_, err = a.SetActive(with, &pb.Active{})
	require.Equal(t, codes.PermissionDenied, status.Code(err))

	y := startRouted(t, 2, serve.Options{}, urlfrontier.Options{})
	b := dial(t, y.address)
	b.put(discovered("", "", "http://"+y.hostOf("0", 1)+"/"), discovered("", "", "http://"+y.hostOf("1", 1)+"/"))
	wrong := metadata.AppendToOutgoingContext(t.Context(), serve.PartHeader, y.route.Mark("1"))
	conn, err := grpc.NewClient(y.parts["0"].address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	_, err = pb.NewURLFrontierClient(conn).GetStats(wrong, &pb.QueueWithinCrawlParams{})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "takes this server for 1/")
	_, err = pb.NewURLFrontierClient(conn).GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
	require.NoError(t, err)
}

// Each client reads a listing of its own in pages, whatever others put and list meanwhile.
func TestClientsOfARouterListApart(t *testing.T) {
	x := startRouted(t, 2, serve.Options{}, urlfrontier.Options{})
	a, b := dial(t, x.address), dial(t, x.address)
	for i := range 40 {
		a.put(discovered("", "", fmt.Sprintf("http://h%d.example/old", i)))
	}
	seen := map[string]bool{}
	for start := range uint32(40) {
		for _, u := range a.list(&pb.ListUrlParams{Start: start, Size: 1}) {
			seen[u.GetKnown().GetInfo().GetUrl()] = true
		}
		b.put(discovered("", "", fmt.Sprintf("http://h%d.example/a", start)))
		b.list(&pb.ListUrlParams{Size: 3})
	}
	old := 0
	for url := range seen {
		if strings.HasSuffix(url, "/old") {
			old++
		}
	}
	assert.Len(t, seen, 40, "no URL twice")
	assert.GreaterOrEqual(t, old, 20, "those of the first part are of the moment of the first page")
}

// A client that reads slowly gets nothing whose lease may have ended: it may be out again.
func TestASlowClientGetsNoLapsedURL(t *testing.T) {
	x := startRouted(t, 2, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	a.delay("", 0)
	a.addLarge(50, 60<<10)
	stream, err := a.slow().GetURLs(t.Context(), &pb.GetParams{DelayRequestable: 1, MaxUrlsPerQueue: 1, Item: anyCrawl})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	time.Sleep(1500 * time.Millisecond)
	late := 0
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			late++
		}
	}
	require.ErrorIs(t, err, io.EOF)
	require.Less(t, late, 5, "those that were on their way when the leases ended")
}

// A client that never reads does not fill the router's memory.
func TestARouterHoldsNoEndOfAcknowledgements(t *testing.T) {
	if testing.Short() {
		t.Skip("the parts wait 20 s for a client that does not read: -short")
	}
	t.Parallel()
	x := startRouted(t, 2, serve.Options{}, urlfrontier.Options{})
	a := dial(t, x.address)
	stream, err := a.PutURLs(t.Context())
	require.NoError(t, err)
	for i := range 3000 {
		item := discovered("", "", fmt.Sprintf("http://h%d.example/", i))
		item.ID = strings.Repeat("i", 64<<10)
		require.NoError(t, stream.Send(item))
	}
	require.NoError(t, stream.CloseSend())
	acks := 0
	for ; err == nil; acks++ {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.Less(t, acks, 1<<10+100, "64 MiB")
	require.Equal(t, map[string][]string{"http://a.example/": {"OK"}}, a.put(discovered("", "", "http://a.example/")))
}
