package urlfrontier_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// What a client of this API has, an operator sees and ends; for more than the longest lease no client gets
// it, whatever it asks for.
func TestOperatorsEndWhatGetURLsHandedOut(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{MaxLease: time.Minute})
	require.NoError(t, err)
	s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
	require.NoError(t, err)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := s.GRPC(urlfrontier.GRPCOptions{})
	end := serving(t, server, at)
	t.Cleanup(func() {
		require.NoError(t, s.Stop(server, time.Second))
		end()
		require.NoError(t, svc.Close())
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	})
	a := dial(t, at.Addr().String())
	a.put(discovered("DEFAULT", "a.example", "http://a.example/"))
	require.Len(t, a.get(&pb.GetParams{DelayRequestable: 4294967295, Item: anyCrawl}), 1)
	l := svc.Leases(console.LeaseQuery{}).Leases
	require.Len(t, l, 1)
	assert.Equal(t, []string{"127.0.0.1", "a.example", "http://a.example/", "DEFAULT"}, []string{l[0].Client, l[0].Host, l[0].URL, l[0].Crawl})
	assert.LessOrEqual(t, l[0].Until.Sub(l[0].Since), time.Minute)
	n, err := svc.EndLeases(console.LeaseQuery{Client: "127.0.0.1"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Len(t, a.get(&pb.GetParams{Item: anyCrawl}), 1, "it came again")
}

// The log names who changes something by this API, and what; it has no line for other calls, and no token.
func TestTheLogNamesWhoChangesSomething(t *testing.T) {
	tokens, err := serve.ReadTokens(bytes.NewReader(fmt.Appendf(nil, "operate %x op-1\nlook %x reader\n", sha256.Sum256([]byte("secret-o")), sha256.Sum256([]byte("secret-l")))))
	require.NoError(t, err)
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
	require.NoError(t, err)
	var log bytes.Buffer
	at, _, stop := startOf(t, f, serve.Options{Tokens: tokens}, urlfrontier.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Level: new(slog.LevelVar)}, urlfrontier.GRPCOptions{})
	a := dial(t, at)
	changes := map[string]func(context.Context) error{
		"BlockQueueUntil": func(ctx context.Context) error {
			_, err := a.BlockQueueUntil(ctx, &pb.BlockQueueParams{Key: "a.example", Time: 1})
			return err
		},
		"DeleteCrawl": func(ctx context.Context) error {
			_, err := a.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "news"})
			return err
		},
		"DeleteQueue": func(ctx context.Context) error {
			_, err := a.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: "a.example"})
			return err
		},
		"PurgeURLs": func(ctx context.Context) error {
			_, err := a.PurgeURLs(ctx, &pb.PurgeUrlParams{Key: "a.example", Days: 1})
			return err
		},
		"SetActive": func(ctx context.Context) error { _, err := a.SetActive(ctx, &pb.Active{State: true}); return err },
		"SetCrawlLimit": func(ctx context.Context) error {
			_, err := a.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "b.example", CrawlID: "DEFAULT", Limit: 1})
			return err
		},
		"SetDelay": func(ctx context.Context) error {
			_, err := a.SetDelay(ctx, &pb.QueueDelayParams{Key: "a.example", DelayRequestable: 1})
			return err
		},
		"SetLogLevel": func(ctx context.Context) error {
			_, err := a.SetLogLevel(ctx, &pb.LogLevelParams{Level: pb.LogLevelParams_INFO})
			return err
		},
	}
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	for name, change := range changes {
		require.Equal(t, codes.PermissionDenied, status.Code(change(as("secret-l"))), name)
		require.NoError(t, change(as("secret-o")), name)
	}
	_, err = a.ListCrawls(as("secret-o"), &pb.Local{})
	require.NoError(t, err)
	stop()
	said := log.String()
	for name := range changes {
		require.Regexp(t, `msg="a client changed something" call=`+name+` request=.* who=op-1`, said)
	}
	require.Equal(t, len(changes), strings.Count(said, "a client changed something"), said)
	require.NotContains(t, said, "secret-")
	require.NotContains(t, said, "reader")
}
