package urlfrontier_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var address = flag.String("urlfrontier.address", "", "run the conformance tests against this server instead of our own")

var parts = flag.Int("urlfrontier.parts", 0, "run the conformance tests against a router with as many parts")

// serverDir names the folder of a server that a test starts as a process, to kill it.
const serverDir = "URLFRONTIER_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		serveUntilKilled(dir)
		return
	}
	flag.Parse()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/golang/glog.(*fileSink).flushDaemon"))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveUntilKilled(dir string) {
	ctx := context.Background()
	store, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20})
	check(err)
	f, err := frontier.Open(ctx, urlfrontier.Frontier(frontier.Options{Spill: store}))
	check(err)
	svc, err := serve.New(f, serve.Options{Contacts: filepath.Join(dir, "contacts")})
	check(err)
	s, err := urlfrontier.New(ctx, svc, urlfrontier.Options{})
	check(err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	check(os.WriteFile(filepath.Join(dir, "address.new"), []byte(l.Addr().String()), 0o600))
	check(os.Rename(filepath.Join(dir, "address.new"), filepath.Join(dir, "address")))
	check(s.GRPC(urlfrontier.GRPCOptions{}).Serve(l))
}

// startProcess starts a server as a process, and returns its address and what kills it.
func startProcess(t testing.TB, dir string) (address string, kill func()) {
	t.Helper()
	_ = os.Remove(filepath.Join(dir, "address"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverDir+"="+dir)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	t.Cleanup(kill)
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "address")); err == nil {
			return string(b), kill
		}
		select {
		case <-ended:
			require.FailNow(t, "the server ended")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// api is a client of a server.
type api struct {
	pb.URLFrontierClient
	*testing.T
	conn *grpc.ClientConn
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *api {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return &api{pb.NewURLFrontierClient(conn), t, conn}
}

// startWith starts a server of a frontier in memory.
func startWith(t *testing.T, so serve.Options, o urlfrontier.Options, g urlfrontier.GRPCOptions) (address string, s *urlfrontier.Server) {
	t.Helper()
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
	require.NoError(t, err)
	address, s, stop := startOf(t, f, so, o, g)
	t.Cleanup(stop)
	return address, s
}

// startOf starts a server of a frontier, and returns what stops both.
func startOf(t *testing.T, f *frontier.Frontier, so serve.Options, o urlfrontier.Options, g urlfrontier.GRPCOptions) (address string, s *urlfrontier.Server, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s, stop = serveOn(t, l, f, so, o, g)
	return l.Addr().String(), s, stop
}

// serveOn is startOf on a listener.
func serveOn(t *testing.T, l net.Listener, f *frontier.Frontier, so serve.Options, o urlfrontier.Options, g urlfrontier.GRPCOptions) (s *urlfrontier.Server, stop func()) {
	t.Helper()
	svc, err := serve.New(f, so)
	require.NoError(t, err)
	if o.TempDir == "" {
		o.TempDir = t.TempDir()
	}
	s, err = urlfrontier.New(t.Context(), svc, o)
	require.NoError(t, err)
	server := s.GRPC(g)
	end := serving(t, server, l)
	return s, func() {
		require.NoError(t, s.Stop(server, time.Second))
		end()
		require.NoError(t, svc.Close())
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	}
}

// serving serves calls; end waits for the end. A test may stop the server before it has begun.
func serving(t *testing.T, server *grpc.Server, l net.Listener) (end func()) {
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return func() {
		if err := <-served; !errors.Is(err, grpc.ErrServerStopped) {
			require.NoError(t, err)
		}
	}
}

// start connects to the server that -urlfrontier.address names, emptied, or to a new one.
func start(t *testing.T) *api {
	t.Helper()
	if *address == "" && *parts > 0 {
		return dial(t, startRouted(t, *parts, serve.Options{}, urlfrontier.Options{}).address)
	}
	if *address == "" {
		at, _ := startWith(t, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
		return dial(t, at)
	}
	a := dial(t, *address)
	a.empty()
	return a
}

// empty deletes all crawls.
func (a *api) empty() {
	a.Helper()
	for _, name := range a.crawls() {
		_, err := a.DeleteCrawl(a.Context(), &pb.DeleteCrawlMessage{Value: name})
		require.NoError(a, err)
	}
	require.Empty(a, a.crawls())
}

func (a *api) crawls() []string {
	a.Helper()
	l, err := a.ListCrawls(a.Context(), &pb.Local{})
	require.NoError(a, err)
	return l.GetValues()
}

func info(crawl, key, url string) *pb.URLInfo { return &pb.URLInfo{Url: url, Key: key, CrawlID: crawl} }

func discovered(crawl, key, url string) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Discovered{Discovered: &pb.DiscoveredURLItem{Info: info(crawl, key, url)}}}
}

func known(crawl, key, url string, date int64) *pb.URLItem {
	return &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: info(crawl, key, url), RefetchableFromDate: uint64(date)}}}
}

// put sends items on one stream, and returns the acknowledgements by ID.
func (a *api) put(items ...*pb.URLItem) map[string][]string {
	a.Helper()
	stream, err := a.PutURLs(a.Context())
	require.NoError(a, err)
	sent := make(chan error, 1)
	go func() {
		for _, item := range items {
			if err := stream.Send(item); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	acks := map[string][]string{}
	for range items {
		ack, err := stream.Recv()
		require.NoError(a, err)
		acks[ack.GetID()] = append(acks[ack.GetID()], ack.GetStatus().String())
	}
	require.NoError(a, <-sent)
	return acks
}

// batch sends one batch, and returns the statuses.
func (a *api) batch(id string, items ...*pb.URLInfo) []string {
	a.Helper()
	stream, err := a.PutDiscovered(a.Context())
	require.NoError(a, err)
	require.NoError(a, stream.Send(&pb.DiscoveredBatch{ID: id, Items: items}))
	ack, err := stream.Recv()
	require.NoError(a, err)
	require.NoError(a, stream.CloseSend())
	require.Equal(a, id, ack.GetID())
	statuses := []string{}
	for _, s := range ack.GetStatuses() {
		statuses = append(statuses, s.String())
	}
	return statuses
}

func (a *api) get(p *pb.GetParams) []string {
	a.Helper()
	stream, err := a.GetURLs(a.Context(), p)
	require.NoError(a, err)
	urls := []string{}
	for {
		u, err := stream.Recv()
		if err != nil {
			require.ErrorContains(a, err, "EOF")
			return urls
		}
		urls = append(urls, u.GetUrl())
	}
}

func byKey(crawl, key string, hold uint32) *pb.GetParams {
	return &pb.GetParams{Key: key, MaxUrlsPerQueue: 1, MaxQueues: 1, DelayRequestable: hold, Item: &pb.GetParams_CrawlID{CrawlID: crawl}}
}

func (a *api) stats(crawl, key string) *pb.Stats {
	a.Helper()
	s, err := a.GetStats(a.Context(), &pb.QueueWithinCrawlParams{CrawlID: crawl, Key: key})
	require.NoError(a, err)
	return s
}

func (a *api) queues(crawl string) []string {
	a.Helper()
	l, err := a.ListQueues(a.Context(), &pb.Pagination{CrawlID: crawl, IncludeInactive: true})
	require.NoError(a, err)
	return l.GetValues()
}

func (a *api) list(p *pb.ListUrlParams) []*pb.URLItem {
	a.Helper()
	stream, err := a.ListURLs(a.Context(), p)
	require.NoError(a, err)
	var items []*pb.URLItem
	for {
		u, err := stream.Recv()
		if err != nil {
			require.ErrorContains(a, err, "EOF")
			return items
		}
		require.NotNil(a, u.GetKnown())
		items = append(items, u)
	}
}

func (a *api) status(crawl, key, url string) (*pb.URLItem, error) {
	return a.GetURLStatus(a.Context(), &pb.URLStatusRequest{CrawlID: crawl, Key: key, Url: url})
}

func (a *api) dateOf(crawl, url string) int64 {
	a.Helper()
	item, err := a.status(crawl, "", url)
	require.NoError(a, err)
	return int64(item.GetKnown().GetRefetchableFromDate())
}
