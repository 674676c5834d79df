package urlfrontier_test

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// BenchmarkPutDiscovered puts URLs of 10,000 hosts in batches of 1,000 into a durable frontier in
// another process: go test -run xxx -bench PutDiscovered -benchtime 500x ./urlfrontier
func BenchmarkPutDiscovered(b *testing.B) {
	at, _ := startProcess(b, b.TempDir())
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close()) }()
	stream, err := pb.NewURLFrontierClient(conn).PutDiscovered(b.Context())
	require.NoError(b, err)
	batches := make([]*pb.DiscoveredBatch, b.N)
	for i := range batches {
		batches[i] = &pb.DiscoveredBatch{ID: fmt.Sprint(i), Items: make([]*pb.URLInfo, 1000)}
		for j := range batches[i].Items {
			n := i*1000 + j
			batches[i].Items[j] = info("", "", fmt.Sprintf("http://host%d.example/page/%d", n%10_000, n))
		}
	}
	b.ResetTimer()
	sent := make(chan error, 1)
	go func() {
		for _, batch := range batches {
			if err := stream.Send(batch); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	for range batches {
		ack, err := stream.Recv()
		require.NoError(b, err)
		for _, status := range ack.GetStatuses() {
			if status != pb.AckMessage_OK {
				b.Fatalf("batch %s: %v", ack.GetID(), status)
			}
		}
	}
	require.NoError(b, <-sent)
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "URLs/s")
}
