// This file tests that clients of URLFrontier reach all hosts of a divided frontier.

//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// urlFrontier is a client of a process at an address.
func urlFrontier(t *testing.T, address string) pb.URLFrontierClient {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return pb.NewURLFrontierClient(conn)
}

// putAll puts items until all are stored.
func putAll(t *testing.T, c pb.URLFrontierClient, items map[string]*pb.URLItem) {
	for end := time.Now().Add(time.Minute); len(items) > 0; time.Sleep(50 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%d items are not stored", len(items))
		stream, err := c.PutURLs(t.Context())
		require.NoError(t, err)
		for _, item := range items {
			require.NoError(t, stream.Send(item))
		}
		require.NoError(t, stream.CloseSend())
		for {
			ack, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if ack.GetStatus() != pb.AckMessage_FAIL {
				delete(items, ack.GetID())
			}
		}
	}
}

// takeReports takes URLs for 6 s, and returns the reports of them.
func takeReports(t *testing.T, c pb.URLFrontierClient, last map[string]time.Time) map[string]*pb.URLItem {
	asked := time.Now()
	stream, err := c.GetURLs(t.Context(), &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 10, DelayRequestable: 6, Item: &pb.GetParams_AnyCrawlID{AnyCrawlID: &pb.AnyCrawlID{}}})
	require.NoError(t, err)
	reports := map[string]*pb.URLItem{}
	for {
		u, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return reports
		}
		require.NoError(t, err)
		if before, ok := last[u.GetUrl()]; ok {
			require.False(t, time.Now().Before(before.Add(6*time.Second)), "%s is out twice", u.GetUrl())
		}
		last[u.GetUrl()] = asked
		reports[u.GetUrl()] = &pb.URLItem{Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: u}}}
	}
}

func TestAFleetWithPartitionsAnswersGRPC(t *testing.T) {
	all, _, fail, within := begin(t, "-fleet-partitions", "4", "-memory", "320M", "-grpc", "127.0.0.1:0")
	var clients []pb.URLFrontierClient
	for _, m := range all {
		log, err := os.ReadFile(m.log)
		require.NoError(t, err)
		at := regexp.MustCompile(startedGRPC+`.* grpc=(\S+)`).FindAllSubmatch(log, -1)
		require.Len(t, at, 1, "one address for all partitions")
		clients = append(clients, urlFrontier(t, string(at[0][1])))
	}
	within(time.Minute, "all partitions are open", func() bool {
		_, said := all[0].get("/v1/fleet")
		return strings.Count(said, `"state":"open"`)+strings.Count(said, `"state":"held"`) == 4
	})
	owner := func() int {
		_, said := all[0].get("/v1/fleet")
		_, name, _ := strings.Cut(said, `"owner":"`)
		return strings.IndexByte("abc", name[0])
	}
	const hosts = 60
	items := map[string]*pb.URLItem{}
	for i := range hosts {
		url := fmt.Sprintf("http://h%d.example/", i)
		items[url] = discovered(url)
	}
	putAll(t, clients[0], items)
	for _, c := range clients {
		s, err := c.GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
		require.NoError(t, err)
		require.EqualValues(t, hosts, s.GetNumberOfQueues())
		require.Greater(t, len(s.GetCounts()), 1)
	}
	for p := range 4 {
		_, said := all[2].get(fmt.Sprintf("/parts/%d/v1/export", p))
		n := strings.Count(said, `"url":"http://`)
		require.True(t, n > 0 && n < hosts, "%d of %d", n, hosts)
	}

	stream, err := clients[2].PutURLs(t.Context()) // StormCrawler keeps its stream open
	require.NoError(t, err)
	again := func() (fails int) {
		for i := range hosts {
			require.NoError(t, stream.Send(discovered(fmt.Sprintf("http://h%d.example/", i))))
		}
		for range hosts {
			ack, err := stream.Recv()
			require.NoError(t, err)
			if ack.GetStatus() == pb.AckMessage_FAIL {
				fails++
			}
		}
		return fails
	}
	require.Zero(t, again())
	began, drained := time.Now(), all[owner()].dir
	code, _, said := operate(t, "drain", "-dir", drained)
	require.Zero(t, code, said)
	t.Logf("drained in %v", time.Since(began))
	require.Less(t, time.Since(began), 9*time.Second, "streams of routers do not hold it up")
	within(time.Minute, "the stream goes on", func() bool { return again() == 0 })
	code, _, said = operate(t, "drain", "-back", "-dir", drained)
	require.Zero(t, code, said)

	last, done := map[string]time.Time{}, 0
	for done < hosts/3 {
		reports := takeReports(t, clients[1], last)
		done += len(reports)
		putAll(t, clients[2], reports)
	}
	lost := takeReports(t, clients[0], last) // their reports come after a machine's death
	dead := owner()
	require.NoError(t, all[dead].cmd.Process.Kill())
	_ = all[dead].cmd.Wait()
	clients = slices.Delete(clients, dead, dead+1)
	done += len(lost)
	putAll(t, clients[0], lost)
	for end, i := time.Now().Add(time.Minute), 0; done < hosts; i++ {
		if time.Now().After(end) {
			fail(fmt.Sprint(done, " came"))
		}
		reports := takeReports(t, clients[i%2], last)
		done += len(reports)
		putAll(t, clients[1-i%2], reports)
	}
	within(time.Minute, "every partition answers", func() bool {
		s, err := clients[0].GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
		return err == nil && s.GetCounts()["completed"] == hosts
	})
}

func TestARouterAnswersGRPC(t *testing.T) {
	if testing.Short() {
		t.Skip("three processes: -short")
	}
	args := []string{"-quiet"}
	var at [2]string
	for i, name := range []string{"a", "b"} {
		http := freePort(t)
		at[i] = freePort(t)
		spawn(t, http, "serve", "-quiet", "-dir", filepath.Join(t.TempDir(), name), "-grpc", at[i])
		args = append(args, "-part", name+"=http://"+http)
	}
	routed, gone := freePort(t), freePort(t)
	spawn(t, freePort(t), append(append([]string{"route"}, args...), "-grpc", routed, "-part-grpc", "a=http://"+at[0], "-part-grpc", "b=http://"+gone+",http://"+at[1])...)
	items, last := map[string]*pb.URLItem{}, map[string]time.Time{}
	for i := range 30 {
		url := fmt.Sprintf("http://h%d.example/", i)
		items[url] = discovered(url)
	}
	c := urlFrontier(t, routed)
	putAll(t, c, items)
	for done := 0; done < 30; {
		reports := takeReports(t, c, last)
		done += len(reports)
		putAll(t, c, reports)
	}
	for _, address := range append(at[:], routed) {
		s, err := urlFrontier(t, address).GetStats(t.Context(), &pb.QueueWithinCrawlParams{})
		require.NoError(t, err)
		require.Equal(t, address == routed, s.GetCounts()["completed"] == 30, address)
	}
}
