// This file tests the listings that connections share.

package urlfrontier_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// filesIn counts the files of a folder that this process has open. They have no name any more.
func filesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not tell which files are open")
	}
	for _, fd := range open {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, dir) {
			n++
		}
	}
	return n
}

func TestAListingFromTheStartSeesChanges(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
	require.NoError(t, err)
	dir := t.TempDir()
	at, _, stop := startOf(t, f, serve.Options{}, urlfrontier.Options{TempDir: dir}, urlfrontier.GRPCOptions{})
	defer stop()
	a, b := dial(t, at), dial(t, at)
	stream, err := a.PutURLs(t.Context())
	require.NoError(t, err)
	put := func(url string) {
		t.Helper()
		require.NoError(t, stream.Send(discovered("", "", url)))
		_, err := stream.Recv()
		require.NoError(t, err)
	}
	put("http://a.example/1")
	put("http://a.example/2")
	for _, x := range []*api{a, b} {
		require.Len(t, x.list(&pb.ListUrlParams{Size: 1}), 1)
	}
	require.Equal(t, 1, filesIn(t, dir), "they share one")
	put("http://a.example/3")
	require.Len(t, b.list(&pb.ListUrlParams{Start: 1}), 1, "its second page is of the same moment")
	require.Len(t, a.list(&pb.ListUrlParams{}), 3, "written on a stream that was open before")
	require.Len(t, b.list(&pb.ListUrlParams{}), 3)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/4", Crawl: crawlOf(t, f, "http://a.example/1")}) // as by HTTP
	require.NoError(t, err)
	require.Len(t, a.list(&pb.ListUrlParams{}), 4)
	require.Len(t, dial(t, at).list(&pb.ListUrlParams{}), 4)
}

func TestListingsGo(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
	require.NoError(t, err)
	dir := t.TempDir()
	at, s, stop := startOf(t, f, serve.Options{}, urlfrontier.Options{TempDir: dir, ListingAge: 200 * time.Millisecond}, urlfrontier.GRPCOptions{})
	defer stop()
	a := dial(t, at)
	a.put(discovered("", "", "http://a.example/1"))
	require.Len(t, a.list(&pb.ListUrlParams{}), 1)
	require.Equal(t, 1, filesIn(t, dir))
	require.Eventually(t, func() bool { return filesIn(t, dir) == 0 }, time.Minute, 10*time.Millisecond, "nobody lists again")

	require.Len(t, a.list(&pb.ListUrlParams{}), 1)
	require.NoError(t, s.Close())
	require.Zero(t, filesIn(t, dir))
	stream, err := a.ListURLs(t.Context(), &pb.ListUrlParams{})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Zero(t, filesIn(t, dir))
	for _, service := range []string{"", "urlfrontier.URLFrontier"} {
		health, err := grpc_health_v1.NewHealthClient(a.conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		require.Equal(t, grpc_health_v1.HealthCheckResponse_NOT_SERVING, health.GetStatus())
	}
}
