// These tests keep connections, and see when they must not be kept.

package fetch

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// perConn answers each request of a connection with what fn writes for it, until
// fn returns false.
func perConn(t *testing.T, fn func(c net.Conn, n int) bool) string {
	addr, _ := raw(t, func(c net.Conn) {
		buf := make([]byte, 4096)
		for n := 1; fn(c, n); n++ {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
	return addr
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestConnectionsAreKeptAfterAWholeAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		o      Options
		kept   bool
	}{
		"whole":            {okAnswer, Options{}, true},
		"chunked":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Options{}, true},
		"without a body":   {"HTTP/1.1 304 Not Modified\r\n\r\n", Options{}, true},
		"closed by server": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", Options{}, false},
		"HTTP/1.0":         {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", Options{}, false},
		"cut off":          {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789", Options{MaxBody: 5}, false},
		"not wanted":       {okAnswer, Options{NoKeepAlive: true}, false},
		"idle for long":    {okAnswer, Options{KeepAlive: time.Millisecond}, false},
		"with more behind": {okAnswer + okAnswer, Options{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			addr := perConn(t, func(nc net.Conn, _ int) bool {
				_, err := io.WriteString(nc, c.answer)
				return err == nil
			})
			f := newFetcher(t, c.o)
			for i := range 3 {
				res, err := get(t, f, "http://"+addr+"/")
				require.NoError(t, err)
				assert.Equal(t, c.kept && i > 0, res.Timing.Reused)
				assert.Equal(t, res.Timing.Reused, res.Timing.Connect == 0)
				if c.o.KeepAlive > 0 {
					require.Eventually(t, func() bool {
						f.kept.mu.Lock()
						defer f.kept.mu.Unlock()
						return f.kept.order.Len() == 0
					}, time.Minute, time.Millisecond)
				}
				if strings.HasSuffix(c.answer, okAnswer+okAnswer) { // until the second answer has ended the connection
					require.Eventually(t, func() bool {
						f.kept.mu.Lock()
						defer f.kept.mu.Unlock()
						return f.kept.order.Len() == 0 || !f.kept.order.Front().Value.(*conn).usable()
					}, time.Minute, time.Millisecond)
				}
			}
			assert.True(t, f.kept.check())
		})
	}
}

// A server may close a kept connection just when it is asked: nothing is repeated,
// the error says so, and no connection of that host is kept any more.
func TestAKeptConnectionThatIsClosedInsteadOfAnAnswer(t *testing.T) {
	var mu sync.Mutex
	requests := 0
	addr := perConn(t, func(c net.Conn, n int) bool {
		mu.Lock()
		requests++
		mu.Unlock()
		if n > 1 {
			return false
		}
		_, err := io.WriteString(c, okAnswer)
		return err == nil
	})
	f := newFetcher(t, Options{})
	u := "http://" + addr + "/"
	_, err := get(t, f, u)
	require.NoError(t, err)
	res, err := get(t, f, u)
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.True(t, e.Stale)
	assert.Equal(t, Cut, e.Class)
	assert.True(t, res.Timing.Reused)
	for range 3 {
		res, err = get(t, f, u)
		require.NoError(t, err)
		assert.False(t, res.Timing.Reused)
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, 5, requests, "one for each Fetch")
}

func TestSoManyConnectionsAreKeptInAll(t *testing.T) {
	addr := web(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
	f := newFetcher(t, Options{MaxIdle: 2, Resolve: map[string]string{"*": addr}})
	first := map[string]string{}
	for _, host := range []string{"a", "b", "c"} {
		res, err := get(t, f, "http://"+host+".example/")
		require.NoError(t, err)
		first[host] = body(t, res)
	}
	assert.Equal(t, 2, f.kept.order.Len())
	for _, host := range []string{"c", "b", "a"} {
		res, err := get(t, f, "http://"+host+".example/")
		require.NoError(t, err)
		assert.Equal(t, host != "a", res.Timing.Reused, host)
		assert.Equal(t, host != "a", first[host] == body(t, res), "hosts do not share connections")
	}
	f.CloseIdle()
	assert.Zero(t, f.kept.order.Len())
	assert.True(t, f.kept.check())
}

// As many connections are kept for a host as were in use at once; when one of them
// turns out to be closed, none is.
func TestAsManyConnectionsAreKeptAsWereInUse(t *testing.T) {
	var rounds [2]sync.WaitGroup // in each, three requests are answered when all have come
	rounds[0].Add(3)
	rounds[1].Add(3)
	addr := perConn(t, func(c net.Conn, n int) bool {
		if n > len(rounds) {
			return false // to the third request of a connection there is no answer
		}
		rounds[n-1].Done()
		rounds[n-1].Wait()
		_, err := io.WriteString(c, okAnswer)
		return err == nil
	})
	f := newFetcher(t, Options{})
	u := "http://" + addr + "/"
	round := func() (reused int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				res, err := get(t, f, u)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				if res.Timing.Reused {
					reused++
				}
			})
		}
		all.Wait()
		return reused
	}
	for i := range rounds {
		assert.Equal(t, 3*i, round())
		assert.Equal(t, 3, f.kept.order.Len())
		assert.True(t, f.kept.check())
	}
	_, err := get(t, f, u)
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.True(t, e.Stale)
	assert.Zero(t, f.kept.order.Len())
	assert.True(t, f.kept.check())
}

func TestKeptConnectionsThroughAProxy(t *testing.T) {
	proxy := web(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) })
	f := newFetcher(t, Options{Proxy: &url.URL{Scheme: "http", Host: proxy}})
	for i := range 3 {
		u := fmt.Sprintf("http://a.example/%d", i)
		res, err := get(t, f, u)
		require.NoError(t, err)
		assert.Equal(t, u, body(t, res))
		assert.Equal(t, i > 0, res.Timing.Reused)
	}
}

// check verifies that map and list agree.
func (k *keeper) check() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := 0
	for key, all := range k.idle {
		if n += len(all); len(all) == 0 {
			return false
		}
		for _, e := range all {
			if e.Value.(*conn).key != key {
				return false
			}
		}
	}
	return n == k.order.Len()
}
