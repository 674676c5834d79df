package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/test/verbs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ crawler.Frontier = (*client.Client)(nil)
	_ polite.Frontier  = (*client.Client)(nil)
	_ verbs.Leases     = (*client.Client)(nil)
	_ verbs.Loops      = (*client.Client)(nil)
	_ verbs.Stander    = (*client.Client)(nil)
)

// TestServed is the suite over HTTP: each verb of a Client is a request to package serve.
func TestServed(t *testing.T) {
	verbs.Run(t, func(t *testing.T, o frontier.Options) verbs.Frontier {
		w := newWire(t, o)
		return w.client(t, client.Options{})
	})
}

// wire is a served frontier whose connections are pipes, so that a bubble of synctest holds both
// ends. It can lose requests and answers.
type wire struct {
	f        *frontier.Frontier
	conns    chan net.Conn
	mu       sync.Mutex
	theirs   []net.Conn // guarded by mu; all there were
	ended    chan struct{}
	once     sync.Once
	requests atomic.Int64
	down     atomic.Bool                                        // the server is away
	deaf     atomic.Int64                                       // answers to be lost
	instead  func(to http.ResponseWriter, r *http.Request) bool // answers in the server's place, or not
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.ended:
		return nil, net.ErrClosed
	}
}
func (w *wire) Close() error {
	w.once.Do(func() { close(w.ended) })
	return nil
}
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if w.down.Load() {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	w.mu.Lock()
	w.theirs = append(w.theirs, theirs)
	w.mu.Unlock()
	select {
	case w.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill ends the server as kill -9 does.
func (w *wire) kill() {
	w.down.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.theirs {
		c.Close()
	}
}

// answered stands between the server and its answers.
func (w *wire) ServeHTTP(to http.ResponseWriter, r *http.Request, h http.Handler) {
	w.requests.Add(1)
	if w.down.Load() {
		panic(http.ErrAbortHandler)
	}
	if w.instead != nil && w.instead(to, r) {
		return
	}
	if strings.HasPrefix(r.URL.Path, "/v1/do") && w.deaf.Add(-1) >= 0 {
		h.ServeHTTP(unheard{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	}
	h.ServeHTTP(to, r)
}

// unheard is an answer that is lost.
type unheard struct{ header http.Header }

func (u unheard) Header() http.Header         { return u.header }
func (u unheard) Write(b []byte) (int, error) { return len(b), nil }
func (u unheard) WriteHeader(int)             {}

func newWire(t *testing.T, o frontier.Options) *wire {
	o = serve.Frontier(o)
	o.KeepOpen = false // so that the suite sees what is exhausted
	return wireTo(t, o)
}

func wireTo(t *testing.T, o frontier.Options) *wire {
	f := opened(t, o)
	return wireOf(t, f, serverOf(t, f))
}

func opened(t *testing.T, o frontier.Options) *frontier.Frontier {
	f, err := frontier.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	return f
}

func wireOf(t *testing.T, f *frontier.Frontier, h http.Handler) *wire {
	w := &wire{f: f, conns: make(chan net.Conn), ended: make(chan struct{})}
	s := &http.Server{Handler: http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) { w.ServeHTTP(to, r, h) })}
	var running sync.WaitGroup
	running.Go(func() { assert.ErrorIs(t, s.Serve(w), http.ErrServerClosed) })
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		running.Wait()
	})
	return w
}

func (w *wire) client(t *testing.T, o client.Options) *client.Client {
	o.Dial = w.dial
	c, err := client.New("http://frontier.invalid", o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func bubble(t *testing.T, test func(t *testing.T, w *wire, c *client.Client)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, frontier.Options{Delay: frontier.FixedDelay(time.Second), LeaseTime: time.Minute})
		test(t, w, w.client(t, client.Options{}))
	})
}

func added(t *testing.T, c *client.Client, urls ...string) {
	t.Helper()
	for _, u := range urls {
		_, err := c.Add(t.Context(), frontier.Entry{URL: u})
		require.NoError(t, err)
	}
}

// Calls are repeated until the server is back.
func TestServerComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		w.down.Store(true)
		time.AfterFunc(3*time.Minute, func() { w.down.Store(false) })
		added(t, c, "http://a.example/")
		assert.EqualValues(t, 1, w.f.Stats().Waiting)
		w.down.Store(true)
		time.AfterFunc(3*time.Minute, func() { w.down.Store(false) })
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		w.down.Store(true)
		time.AfterFunc(30*time.Second, func() { w.down.Store(false) })
		require.NoError(t, c.Done(l, frontier.Outcome{}))
	})
}

// A call ends with its context while the server is away.
func TestContextEndsWhileAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		w.down.Store(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = c.Next(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.Add(ctx, frontier.Entry{URL: "http://b.example/"})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = c.DoneContext(ctx, l, frontier.Outcome{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, stop = context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err = c.DoneContext(ctx, l, frontier.Outcome{})
		assert.ErrorIs(t, err, frontier.ErrUnsettled)
	})
}

// A lease that cannot be ended stays out until its deadline.
func TestLeaseStaysOutUntilItsDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		w.down.Store(true)
		assert.ErrorIs(t, c.Done(l, frontier.Outcome{}), frontier.ErrNotLeased)
		assert.False(t, time.Now().Before(l.Deadline))
		w.down.Store(false)
		again, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 2, again.Attempt)
		assert.False(t, time.Now().Before(l.Deadline.Add(time.Second)), "its host was left alone from the deadline on")
		require.NoError(t, c.Done(again, frontier.Outcome{}))
	})
}

// An answer that is lost does no harm: the same end is sent again.
func TestDoneWhoseAnswerIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		w.deaf.Store(1)
		require.NoError(t, c.Done(l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://b.example/"}}}))
		assert.EqualValues(t, 1, w.f.Stats().Waiting)
		assert.EqualValues(t, 1, w.f.Stats().Done[frontier.Visited])
	})
}

// A Delete counts what it deleted, although its answer was lost or it was under way.
func TestDeleteWhoseAnswerIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/1", "http://a.example/2")
		w.deaf.Store(1)
		busy := true
		w.instead = func(to http.ResponseWriter, r *http.Request) bool {
			answers := busy && w.deaf.Load() < 1
			if answers {
				busy = false
				to.WriteHeader(http.StatusConflict)
				problem(to, "conflict", http.StatusConflict)
			}
			return answers
		}
		n, err := c.Delete(t.Context(), scope.Host("a.example"))
		require.NoError(t, err)
		assert.EqualValues(t, 2, n)
		assert.False(t, busy)
	})
}

// Calls that come together share requests.
func TestBatches(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		var entries []frontier.Entry
		for i := range 200 {
			entries = append(entries, frontier.Entry{URL: "http://h" + string(rune('a'+i%20)) + string(rune('a'+i/20)) + ".example/"})
		}
		n, err := c.Add(t.Context(), entries...)
		require.NoError(t, err)
		require.Equal(t, len(entries), n)
		w.requests.Store(0)
		var workers, leased sync.WaitGroup
		leased.Add(len(entries))
		for range len(entries) {
			workers.Go(func() {
				l, err := c.Next(t.Context())
				leased.Done()
				leased.Wait() // so that the ends come together, however busy the machine is
				if assert.NoError(t, err) {
					assert.NoError(t, c.Done(l, frontier.Outcome{}))
				}
			})
		}
		workers.Wait()
		assert.Less(t, w.requests.Load(), int64(100), "requests for 200 leases and 200 ends")
	})
}

// Answers begin to come while a large request is still being sent.
func TestLargeRequests(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		big := func(host string) (entries []frontier.Entry) {
			for i := range 1500 {
				entries = append(entries, frontier.Entry{URL: fmt.Sprintf("http://%s.example/%d", host, i), Meta: bytes.Repeat([]byte{byte(i)}, 3000)})
			}
			return entries
		}
		n, err := c.Add(t.Context(), big("a")...)
		require.NoError(t, err)
		assert.Equal(t, 1500, n)
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		refused, err := c.DoneContext(t.Context(), l, frontier.Outcome{Add: big("b")[:200]})
		require.NoError(t, err)
		assert.Empty(t, refused)
		assert.EqualValues(t, 1500+200-1, w.f.Stats().Waiting)
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		added(t, c, "http://a.example/")
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { assert.NoError(t, c.Close()) })
		_, err = c.Next(t.Context())
		assert.ErrorIs(t, err, frontier.ErrClosed)
		_, _, err = c.TryNext()
		assert.ErrorIs(t, err, frontier.ErrClosed)
		_, err = c.Add(t.Context(), frontier.Entry{URL: "http://b.example/"})
		assert.ErrorIs(t, err, frontier.ErrClosed)
		_, err = c.Contact(t.Context(), "a.example")
		assert.ErrorIs(t, err, frontier.ErrClosed)
		_, err = c.Host(t.Context(), "a.example")
		assert.ErrorIs(t, err, frontier.ErrClosed)
		assert.ErrorIs(t, c.Done(l, frontier.Outcome{}), frontier.ErrClosed)
		require.NoError(t, w.f.Done(l, frontier.Outcome{}), "it is out as before")
	})
}

func TestWhatAClientHasNot(t *testing.T) {
	bubble(t, func(t *testing.T, w *wire, c *client.Client) {
		_, err := c.Add(t.Context(), frontier.Entry{URL: "http://a.example/"}, frontier.Entry{URL: "http://b.example/", Crawl: 3})
		bad := frontier.EntryErrors(err)
		require.Len(t, bad, 1)
		assert.Equal(t, 1, bad[0].Index)
		l, err := c.Next(t.Context())
		require.NoError(t, err)
		assert.ErrorContains(t, c.Done(l, frontier.Outcome{Result: frontier.PutOff, Next: time.Now(), Move: true, Crawl: 3}), "one crawl")
		assert.ErrorContains(t, c.Pause(scope.Crawl(3)), "want a host, a domain or all hosts")
		require.NoError(t, c.Done(l, frontier.Outcome{}))
	})
}

func TestNewRefuses(t *testing.T) {
	for _, address := range []string{"", "localhost:8348", "ftp://a.example", "http://", "http://user@a.example", "unix:", "http://a.example?x"} {
		_, err := client.New(address, client.Options{})
		assert.Error(t, err, address)
	}
	for _, o := range []client.Options{{Wait: time.Millisecond}, {Wait: time.Hour}, {LeaseTime: 5}, {Timeout: -1}, {Token: "secret\n"}, {Token: "a b"}, {Crawl: "\xff"}, {Crawl: strings.Repeat("x", serve.MaxName+1)}} {
		_, err := client.New("http://127.0.0.1:1", o)
		assert.Error(t, err, "%+v", o)
	}
	c, err := client.New("http://127.0.0.1:1", client.Options{Crawl: strings.Repeat("x", serve.MaxName)})
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

// A server on a Unix socket, which answers to local names only, is an address, too.
func TestUnixSocket(t *testing.T) {
	f, err := frontier.Open(t.Context(), serve.Frontier(frontier.Options{}))
	require.NoError(t, err)
	defer f.Close()
	path := t.TempDir() + "/s"
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := &http.Server{Handler: serverOf(t, f)}
	var running sync.WaitGroup
	running.Go(func() { assert.ErrorIs(t, s.Serve(l), http.ErrServerClosed) })
	defer running.Wait()
	defer s.Close()
	c, err := client.New("unix:"+path, client.Options{})
	require.NoError(t, err)
	defer c.Close()
	added(t, c, "http://a.example/")
	assert.EqualValues(t, 1, f.Stats().Waiting)
}

// A request carries the token.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", dir+"/s")
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, `{"type":"https://frontier.invalid/problems/unauthorized","status":401,"detail":"who are you"}`)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"waiting": 7, "done": map[string]int{"put_off": 2}})
	})}
	var running sync.WaitGroup
	running.Go(func() { assert.ErrorIs(t, s.Serve(l), http.ErrServerClosed) })
	defer running.Wait()
	defer s.Close()
	c, err := client.New("unix:"+dir+"/s", client.Options{Token: "secret"})
	require.NoError(t, err)
	defer c.Close()
	assert.EqualValues(t, []int64{7, 2}, []int64{c.Stats().Waiting, c.Stats().Done[frontier.PutOff]})
	stranger, err := client.New("unix:"+dir+"/s", client.Options{})
	require.NoError(t, err)
	defer stranger.Close()
	_, err = stranger.Next(t.Context())
	var p *client.ProblemError
	require.ErrorAs(t, err, &p)
	assert.Equal(t, []any{401, "unauthorized", "who are you"}, []any{p.Status, p.Type, p.Detail})
	_, err = stranger.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	assert.ErrorAs(t, err, &p)
}
