// This file tests clients that do not read what the server sends.

package urlfrontier_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// addLarge adds a URL with metadata to each of some hosts.
func (a *api) addLarge(hosts, bytes int) {
	a.Helper()
	meta := map[string]*pb.StringList{"x": {Values: []string{strings.Repeat("x", bytes)}}}
	var items []*pb.URLItem
	for i := range hosts {
		item := discovered("", "", fmt.Sprintf("http://host%d.example/", i))
		item.GetDiscovered().Info.Metadata = meta
		items = append(items, item)
	}
	a.put(items...)
}

// slow is a client that the server does not send much in advance.
func (a *api) slow() *api {
	return dial(a.T, a.conn.Target(), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
}

func TestACallThatIsNotReadEndsWithItsLeases(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	a.addLarge(50, 60<<10)
	stream, err := a.slow().GetURLs(t.Context(), &pb.GetParams{DelayRequestable: 1, MaxUrlsPerQueue: 1, Item: anyCrawl})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	others := 0
	require.Eventually(t, func() bool {
		others += len(a.get(&pb.GetParams{DelayRequestable: 600, MaxUrlsPerQueue: 1, Item: anyCrawl}))
		return others == 50
	}, time.Minute, 50*time.Millisecond)
	if *address == "" {
		require.Eventually(t, func() bool {
			stacks := make([]byte, 1<<20)
			return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "Server).send")
		}, 10*time.Second, 10*time.Millisecond, "nothing sends any more")
	}
	late := 0
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			late++
		}
	}
	require.ErrorContains(t, err, "EOF")
	require.Less(t, late, 5, "those that were on their way when the leases ended")
}

func TestACallForEverythingIsOneLap(t *testing.T) {
	a := start(t)
	a.delay("", 0)
	a.addLarge(250, 8<<10)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := a.slow().GetURLs(ctx, &pb.GetParams{DelayRequestable: 1, MaxUrlsPerQueue: 1, Item: anyCrawl})
	require.NoError(t, err)
	n := 0
	for ; err == nil && n <= 250; n++ {
		time.Sleep(5 * time.Millisecond)
		_, err = stream.Recv()
	}
	require.ErrorContains(t, err, "EOF")
}

func TestUnreadAcknowledgementsAreSmall(t *testing.T) {
	a := start(t)
	if *address != "" {
		t.Skip("the server's memory is ours")
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := a.slow()
	id := strings.Repeat("i", 1<<20)
	large := []*pb.URLInfo{info("", "", "http://a.example/"+strings.Repeat("x", 8<<20))}
	for range 12 {
		stream, err := slow.PutDiscovered(ctx)
		require.NoError(t, err)
		require.NoError(t, stream.Send(&pb.DiscoveredBatch{ID: id}))
		time.Sleep(20 * time.Millisecond)
		require.NoError(t, stream.Send(&pb.DiscoveredBatch{Items: large}))
	}
	require.Eventually(t, func() bool { return heap() < before+30<<20 }, time.Minute, 200*time.Millisecond, "12 streams with 9 MiB")

	stream, err := a.PutURLs(t.Context())
	require.NoError(t, err)
	item := discovered("", "", "http://b.example/")
	item.ID = strings.Repeat("é", 1<<19)
	require.NoError(t, stream.Send(item))
	ack, err := stream.Recv()
	require.NoError(t, err)
	require.Equal(t, item.ID[:frontier.MaxURL], ack.GetID(), "it is cut")
}
