package urlfrontier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// openUndelayed opens a frontier in memory whose hosts may be contacted at any time.
func openUndelayed(t *testing.T) *frontier.Frontier {
	t.Helper()
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{Delay: frontier.FixedDelay(0)}))
	require.NoError(t, err)
	return f
}

// beside starts a server of a frontier that the test uses, too.
func beside(t *testing.T) (*api, *frontier.Frontier) {
	t.Helper()
	if *address != "" {
		t.Skip("the frontier is not ours")
	}
	f := openUndelayed(t)
	at, _, stop := startOf(t, f, serve.Options{}, urlfrontier.Options{}, urlfrontier.GRPCOptions{})
	t.Cleanup(stop)
	return dial(t, at), f
}

func (a *api) limit(key string, n uint32) {
	a.Helper()
	_, err := a.SetCrawlLimit(a.Context(), &pb.CrawlLimitParams{Key: key, Limit: n})
	require.NoError(a, err)
}

// ancient is the metadata of a URL that was created long ago.
var ancient = (&serve.Envelope{Created: time.Unix(1, 0)}).Append(nil)

func TestALimitLeavesThePauseOfAnOperator(t *testing.T) {
	a, f := beside(t)
	a.put(discovered("", "", "http://a.example/"))
	a.limit("a.example", 2)
	require.NoError(t, f.Pause(scope.Host("a.example")))
	for _, url := range []string{"http://a.example/1", "http://a.example/2"} {
		a.put(known("", "", url, 0))
		require.Equal(t, scope.On, f.RuleOf("a.example").Paused)
	}
	a.limit("a.example", 3)
	require.Equal(t, scope.On, f.RuleOf("a.example").Paused)
	require.NoError(t, f.Resume(scope.Host("a.example")))
	a.limit("a.example", 2)
	require.Empty(t, a.get(byKey("", "a.example", 600)))
	a.limit("a.example", 0)
	require.Len(t, a.due(byKey("", "a.example", 600)), 1)
}

func TestALimitLeavesRoomAgainWhenURLsGo(t *testing.T) {
	for name, remove := range map[string]func(*api) error{
		"DeleteCrawl": func(a *api) error {
			_, err := a.DeleteCrawl(a.Context(), &pb.DeleteCrawlMessage{})
			return err
		},
		"DeleteQueue": func(a *api) error {
			_, err := a.DeleteQueue(a.Context(), &pb.QueueWithinCrawlParams{Key: "a.example"})
			return err
		},
		"PurgeURLs": func(a *api) error {
			_, err := a.PurgeURLs(a.Context(), &pb.PurgeUrlParams{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, f := beside(t)
			_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/done", Finished: true, Meta: ancient})
			require.NoError(t, err)
			a.limit("a.example", 1)
			require.NoError(t, remove(a))
			a.put(discovered("", "", "http://a.example/1"))
			require.Len(t, a.get(byKey("", "a.example", 600)), 1)
		})
	}
}

func TestALimitCountsWhatOtherAPIsComplete(t *testing.T) {
	a, f := beside(t)
	a.put(discovered("", "", "http://a.example/1"), discovered("", "", "http://a.example/2"))
	a.limit("a.example", 1)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, f.Done(l, frontier.Outcome{}))
	require.Empty(t, a.get(byKey("", "a.example", 600)))
	a.put(discovered("", "", "http://b.example/"))
	require.Equal(t, []string{"http://b.example/"}, a.get(&pb.GetParams{Item: anyCrawl}))
	require.Zero(t, a.stats("", "a.example").GetInProcess())
}

// An operator may pause a host before its limit is reached or after, and the server may start again
// between: the pause lasts until the operator ends it.
func TestALimitThatLiftsLeavesThePause(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("after=%v/restarts=%v", after, restarts), func(t *testing.T) {
				f := openUndelayed(t)
				defer func() { require.NoError(t, f.Close()) }()
				began := func() (*urlfrontier.Server, func()) {
					svc, err := serve.New(f, serve.Options{})
					require.NoError(t, err)
					s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
					require.NoError(t, err)
					return s, func() { require.NoError(t, s.Close()); require.NoError(t, svc.Close()) }
				}
				s, end := began()
				limit := func(n uint32) {
					_, err := s.SetCrawlLimit(t.Context(), &pb.CrawlLimitParams{Key: "a.example", Limit: n})
					require.NoError(t, err)
				}
				restart := func() {
					if restarts {
						end()
						s, end = began()
					}
				}
				host := scope.Host("a.example")
				_, err := f.Add(t.Context(), frontier.Entry{URL: "http://a.example/done", Finished: true}, frontier.Entry{URL: "http://a.example/"})
				require.NoError(t, err)
				if after {
					limit(1)
					restart()
				}
				require.NoError(t, f.Pause(host))
				if !after {
					restart()
					limit(1)
				}
				restart()
				require.Equal(t, frontier.Rule{Paused: scope.On, Held: true}, f.RuleOf("a.example"))
				limit(0)
				restart()
				require.Equal(t, frontier.Rule{Paused: scope.On}, f.RuleOf("a.example"))
				_, _, err = f.TryNext()
				require.Error(t, err)
				limit(1)
				require.NoError(t, f.Resume(host))
				_, _, err = f.TryNext()
				require.Error(t, err, "the limit is reached")
				limit(0)
				l, _, err := f.TryNext()
				require.NoError(t, err)
				require.NoError(t, f.Done(l, frontier.Outcome{}))
				end()
			})
		}
	}
}

// A server that was killed may have missed that a limit was reached, or that there is room again.
func TestALimitIsCheckedAtTheStart(t *testing.T) {
	f := openUndelayed(t)
	defer func() { require.NoError(t, f.Close()) }()
	host := scope.Host("a.example")
	require.NoError(t, f.UpdateRule(host, func(r *frontier.Rule) { r.Paused = scope.Off }))
	started := func(do func(*urlfrontier.Server)) {
		t.Helper()
		svc, err := serve.New(f, serve.Options{})
		require.NoError(t, err)
		s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
		require.NoError(t, err)
		do(s)
		require.NoError(t, s.Close())
		require.NoError(t, svc.Close())
	}
	add := func(e frontier.Entry) {
		_, err := f.Add(t.Context(), e)
		require.NoError(t, err)
	}
	add(frontier.Entry{URL: "http://a.example/"})
	started(func(s *urlfrontier.Server) {
		_, err := s.SetCrawlLimit(t.Context(), &pb.CrawlLimitParams{Key: "a.example", Limit: 1})
		require.NoError(t, err)
	})
	add(frontier.Entry{URL: "http://a.example/done", Finished: true})
	started(func(*urlfrontier.Server) { require.True(t, f.RuleOf("a.example").Held) })
	_, err := f.Delete(t.Context(), host)
	require.NoError(t, err)
	started(func(*urlfrontier.Server) {
		require.Equal(t, frontier.Rule{Paused: scope.Off}, f.RuleOf("a.example"))
	})
}

func TestLongKeysAreUnknown(t *testing.T) {
	a := start(t)
	const url = "http://a.example/"
	a.put(discovered("", "", url))
	key := string(make([]byte, 256))
	require.Empty(t, a.get(byKey("", key, 600)))
	_, err := a.BlockQueueUntil(t.Context(), &pb.BlockQueueParams{Key: key, Time: 4e9})
	require.NoError(t, err)
	a.delay(key, 1)
	n, err := a.DeleteQueue(t.Context(), &pb.QueueWithinCrawlParams{Key: key})
	require.NoError(t, err)
	require.Zero(t, n.GetValue())
	for _, x := range [][2]string{{key, url}, {"a.example", ""}, {"a.example", string(make([]byte, frontier.MaxURL+1))}} {
		_, err = a.status("", x[0], x[1])
		require.Equal(t, codes.NotFound, status.Code(err))
	}
	_, err = a.SetCrawlLimit(t.Context(), &pb.CrawlLimitParams{Key: key, Limit: 1})
	require.Equal(t, codes.NotFound, status.Code(err))
	a.put(discovered("", key[:255], url+"1"))
	_, err = a.SetCrawlLimit(t.Context(), &pb.CrawlLimitParams{Key: key[:255], Limit: 1})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
}

func TestTheLongestDelayIs30Days(t *testing.T) {
	a, f := beside(t)
	a.delay("a.example", 1<<32-1)
	require.Equal(t, frontier.FixedDelay(720*time.Hour), f.RuleOf("a.example").Delay)
}

func TestAClosedFrontierIsUnavailable(t *testing.T) {
	f := openUndelayed(t)
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"SetDelay":      func() error { _, err := s.SetDelay(ctx, &pb.QueueDelayParams{Key: "a.example"}); return err },
		"SetCrawlLimit": func() error { _, err := s.SetCrawlLimit(ctx, &pb.CrawlLimitParams{Key: "a.example"}); return err },
		"GetStats":      func() error { _, err := s.GetStats(ctx, &pb.QueueWithinCrawlParams{}); return err },
		"ListQueues":    func() error { _, err := s.ListQueues(ctx, &pb.Pagination{}); return err },
		"CountURLs":     func() error { _, err := s.CountURLs(ctx, &pb.CountUrlParams{}); return err },
		"DeleteQueue":   func() error { _, err := s.DeleteQueue(ctx, &pb.QueueWithinCrawlParams{Key: "a.example"}); return err },
		"DeleteCrawl":   func() error { _, err := s.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{}); return err },
	} {
		require.Equal(t, codes.Unavailable, status.Code(call()), name)
	}
	require.NoError(t, s.Close())
	require.NoError(t, svc.Close())
}

func TestValuesOfLimitsAreChecked(t *testing.T) {
	for value, ok := range map[string]bool{"5": true, "0": false, "0 1": false, "xx": false, "-5": false, "5 x": false, "5 9": false, "": false} {
		require.Equal(t, ok, urlfrontier.CheckValue("urlfrontier/limit/a.example", []byte(value)) == nil, value)
	}
	require.Error(t, urlfrontier.CheckValue("urlfrontier/limit/", []byte("5")))
	require.NoError(t, urlfrontier.CheckValue("urlfrontier/inactive", []byte("xx")))
	require.NoError(t, urlfrontier.CheckValue("other", nil))
}
