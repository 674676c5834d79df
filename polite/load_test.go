package polite

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// ledger is a server's log of when it was contacted, by group of hosts.
type ledger struct {
	t    *testing.T
	gaps time.Duration // that it wants between contacts

	mu       sync.Mutex
	busy     map[string]bool
	free     map[string]time.Time // not before
	contacts int
	early    int
}

// begin notes the begin of a contact.
func (l *ledger) begin(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contacts++
	if l.busy[who] || time.Now().Before(l.free[who]) {
		l.early++
		l.t.Errorf("%s: a contact is early by %v, another is under way: %v", who, time.Until(l.free[who]), l.busy[who])
	}
	l.busy[who] = true
}

// end notes the end of a contact, and the pause that it asked for.
func (l *ledger) end(who string, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[who], l.free[who] = false, time.Now().Add(max(pause, l.gaps))
}

// TestManyHostsAtOnce has 64 goroutines contact 50 hosts at 40 addresses, by the log of the server.
func TestManyHostsAtOnce(t *testing.T) {
	const hosts, addresses, goroutines, requests = 50, 40, 64, 600
	log := &ledger{t: t, gaps: 30 * time.Millisecond, busy: map[string]bool{}, free: map[string]time.Time{}}
	machine := func(host string) string {
		var n int
		fmt.Sscanf(host, "h%d.", &n)
		return fmt.Sprintf("192.0.2.%d", 1+n%addresses)
	}
	var angry sync.Map
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, pause := machine(r.Host), time.Duration(0)
		log.begin(who)
		defer func() { log.end(who, pause) }()
		switch {
		case r.URL.Path == "/robots.txt" && strings.HasPrefix(r.Host, "h1"):
			io.WriteString(w, "User-agent: *\nDisallow: /private\n")
			return
		case r.URL.Path == "/robots.txt":
			http.NotFound(w, r)
			return
		case strings.HasSuffix(r.Host, "7.example"):
			if _, again := angry.LoadOrStore(r.Host, true); !again {
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusTooManyRequests)
				if who == "192.0.2.8" || who == "192.0.2.48" { // h7 and h47: the address has one host more
					return // Retry-After is of the host, not of the address
				}
				pause = time.Second
				return
			}
		case strings.HasSuffix(r.URL.Path, "0"):
			http.Redirect(w, r, "/there", http.StatusFound)
			return
		}
		io.WriteString(w, strings.Repeat("page ", 2000))
	}))
	defer server.Close()
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}
	base := &http.Transport{DialContext: dial}
	defer base.CloseIdleConnections()
	tr := newTransport(t, base, frontier.Options{Delay: frontier.FixedDelay(log.gaps), Backoff: frontier.Backoff{Disabled: true}})
	tr.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(machine(host))}, nil
	}
	tr.Robots = &Robots{Agent: "examplebot/1.0"}
	todo := make(chan string)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			c := &http.Client{Transport: tr}
			for u := range todo {
				_, err := get(t, c, u)
				assert.NoError(t, err)
			}
		})
	}
	for i := range requests {
		todo <- fmt.Sprintf("http://h%d.example/page%d", i*7%hosts, i/10)
	}
	close(todo)
	all.Wait()
	assert.Greater(t, log.contacts, requests+hosts)
	t.Logf("%d contacts, %d early", log.contacts, log.early)
}

func TestBlockedRequestsTakeLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 10_000
		w := newWeb(t, always(200, "hello"))
		tr := newTransport(t, w, frontier.Options{Delay: frontier.FixedDelay(24 * time.Hour)})
		c := &http.Client{Transport: tr}
		_, err := get(t, c, "http://a.example/")
		require.NoError(t, err)
		before := inUse()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				req, err := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
				assert.NoError(t, err)
				_, err = c.Do(req)
				assert.ErrorIs(t, err, context.Canceled)
			})
		}
		synctest.Wait()
		took := inUse() - before
		cancel()
		all.Wait()
		t.Logf("%d blocked requests take %.1f MB", requests, float64(took)/1e6)
		assert.Less(t, took, int64(400<<20), "about 110 MB; the race detector makes stacks larger")
		assert.Len(t, w.requests(), 1)
	})
}

// inUse is the memory of the heap and of stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// What does politeness cost for each request, over that of the client?
func BenchmarkRequest(b *testing.B) {
	host := &url.URL{Scheme: "http", Host: "a.example", Path: "/"}
	for _, name := range []string{"plain", "polite", "robots"} {
		b.Run("transport="+name, func(b *testing.B) {
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				resp := says(200, "hello")
				resp.Request = r
				return resp, nil
			})
			tr := newTransport(b, base, frontier.Options{Delay: frontier.FixedDelay(0)})
			c := &http.Client{Transport: tr}
			switch name {
			case "plain":
				c.Transport = base
			case "robots":
				tr.Robots = &Robots{Agent: "examplebot"}
			}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.Do(&http.Request{Method: "GET", URL: host, Header: http.Header{}})
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
