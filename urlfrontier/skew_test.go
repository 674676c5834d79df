package urlfrontier_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

var long = flag.Bool("frontier.long", false, "make 1,000 contacts by each clock, not 100")

// Gaps are right, not too long either, whatever the clocks of the crawler and of the sites say.
func TestTheClocksOfTwoMachines(t *testing.T) {
	for name, ahead := range map[string]func() time.Duration{
		"right":            func() time.Duration { return 0 },
		"1.5 s behind":     func() time.Duration { return -1500 * time.Millisecond },
		"60 s ahead":       func() time.Duration { return time.Minute },
		"an hour ahead":    func() time.Duration { return time.Hour },
		"set all the time": func() time.Duration { return rand.N(4*time.Second) - 2*time.Second },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { crawlBy(t, ahead) }) })
	}
}

func crawlBy(t *testing.T, ahead func() time.Duration) {
	const hosts, delay, parse, poll = 10, 1500 * time.Millisecond, 2 * time.Second, 100 * time.Millisecond
	contacts := 100
	if *long {
		contacts = 1000
	}
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{
		Delay: frontier.FixedDelay(delay), Backoff: frontier.Backoff{Disabled: true}, // it would lengthen the gaps to minutes
	}))
	require.NoError(t, err)
	l := bufconn.Listen(1 << 20)
	_, stop := serveOn(t, l, f, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	defer stop()
	conn, err := grpc.NewClient("passthrough:///frontier", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close()) }()
	a := &api{pb.NewURLFrontierClient(conn), t, conn}
	for i := range contacts {
		_, err := f.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", i%hosts, i)})
		require.NoError(t, err)
	}

	var mu sync.Mutex
	ended, asked := map[string]time.Time{}, map[string]time.Duration{} // by host; the latter by Retry-After
	fetched := map[string]bool{}
	began, early, late := 0, 0, 0
	fetch := func(url *pb.URLInfo) *pb.URLItem {
		mu.Lock()
		now := time.Now()
		if last, ok := ended[url.GetKey()]; ok {
			gap, least := now.Sub(last), max(delay, asked[url.GetKey()])
			if last.IsZero() || gap < least {
				early++
			} else if !fetched[url.GetUrl()] && gap > least+parse+time.Second+poll { // it waited all the while; dates are in seconds
				late++
			}
		}
		fetched[url.GetUrl()] = true
		began++
		ended[url.GetKey()], asked[url.GetKey()] = time.Time{}, 0
		item := known("", url.GetKey(), url.GetUrl(), 0)
		switch rand.N(10) {
		case 0: // the crawler wants it again in five seconds, by its clock
			item.GetKnown().RefetchableFromDate = uint64(now.Add(ahead()).Add(5 * time.Second).Unix())
		case 1: // the site asks for ten, by its clock
			site := now.Add(-17 * time.Minute)
			asked[url.GetKey()] = 10 * time.Second
			item.GetKnown().Info.Metadata = map[string]*pb.StringList{
				"fetch.statusCode": {Values: []string{"503"}}, "protocol.date": {Values: []string{site.UTC().Format(http.TimeFormat)}},
				"protocol.retry-after": {Values: []string{site.Add(11 * time.Second).UTC().Format(http.TimeFormat)}},
			}
		}
		mu.Unlock()
		time.Sleep(rand.N(3 * time.Second))
		mu.Lock()
		ended[url.GetKey()] = time.Now()
		mu.Unlock()
		time.Sleep(rand.N(parse))
		return item
	}
	var workers sync.WaitGroup
	start := time.Now()
	for range 2 * hosts {
		workers.Go(func() {
			for {
				mu.Lock()
				over := began >= contacts || late > 0 // late ones may be hours apart
				mu.Unlock()
				if over {
					return
				}
				s, err := a.GetURLs(t.Context(), &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 1, DelayRequestable: 30})
				if !assert.NoError(t, err) {
					return
				}
				for {
					url, err := s.Recv()
					if errors.Is(err, io.EOF) {
						break
					}
					if !assert.NoError(t, err) {
						return
					}
					a.put(fetch(url))
				}
				time.Sleep(poll)
			}
		})
	}
	workers.Wait()
	t.Logf("%d contacts, %d early, %d late, in %v", began, early, late, time.Since(start).Round(time.Second))
	assert.Zero(t, early)
	assert.Zero(t, late)
}
