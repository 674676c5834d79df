// This file tests what clients do that mean no good, or that died in the middle.

package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// begin sends the head of a request and the beginning of its body.
func (x *served) begin(request string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	require.NoError(x.t, err)
	x.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, strings.ReplaceAll(request, "\n", "\r\n"))
	require.NoError(x.t, err)
	return conn, bufio.NewReader(conn)
}

func TestAClientThatSendsNoBodyIsCutOff(t *testing.T) {
	tokens, err := ReadTokens(strings.NewReader("look " + strings.Repeat("00", 32) + " nobody\n"))
	require.NoError(t, err)
	for _, x := range []struct {
		o    Options
		path string
		want int
	}{
		{Options{Tokens: tokens}, "/v1/urls", http.StatusUnauthorized},
		{Options{}, "/v1/nowhere", http.StatusNotFound},
		{Options{}, "/v1/urls", http.StatusRequestTimeout},
		{Options{}, "/v1/leases", http.StatusRequestTimeout},
		{Options{}, "/v1/leases/x/done", http.StatusRequestTimeout},
	} {
		t.Run(fmt.Sprint(x.path, x.want), func(t *testing.T) {
			t.Parallel()
			x.o.Idle = time.Second
			_, in := serve(t, x.o).begin("POST " + x.path + " HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\n{")
			res, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			assert.Equal(t, x.want, res.StatusCode)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			_, err = in.ReadByte()
			assert.Error(t, err, "the connection is not used again")
		})
	}
}

// An answer that ends before the body of its request, which the client still sends, comes whole. Then the
// connection is used again, unless the body stops.
func TestAnAnswerBeforeTheEndOfTheBody(t *testing.T) {
	x := serve(t, Options{Idle: time.Second})
	tail := strings.Repeat("x", maxLine+2*readAhead) + "\n"
	for _, path := range []string{"/v1/urls", "/v1/done"} {
		for name, size := range map[string]int{"long": len(tail), "stops": len(tail) + 100} {
			conn, in := x.begin(fmt.Sprintf("POST %s HTTP/1.1\nHost: localhost\nAccept: application/x-ndjson\nContent-Length: %d\n\n%s", path, size, strings.Repeat("x", maxLine+readAhead)))
			res, err := http.ReadResponse(in, nil)
			require.NoError(t, err)
			time.AfterFunc(10*time.Millisecond, func() { _, _ = io.WriteString(conn, tail[maxLine+readAhead:]) })
			b, err := io.ReadAll(res.Body)
			require.Equal(t, name == "long", err == nil, "%s %s %v", path, name, err)
			require.Contains(t, string(b), "problems/too-large")
			_, _ = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
			_, err = http.ReadResponse(in, nil)
			require.Equal(t, name == "long", err == nil, "%s %s %v", path, name, err)
		}
	}
}

// Bodies of one object are counted, also those that are not at their end, and given back.
func TestBodiesOfOneObjectHaveABound(t *testing.T) {
	x := serve(t, Options{MaxBuffered: 1 << 20})
	half := strings.Repeat(" ", 300<<10)
	for _, path := range []string{"/v1/leases", "/v1/leases/x/done"} {
		conn, _ := x.begin(fmt.Sprintf("POST %s HTTP/1.1\nHost: localhost\nContent-Length: %d\n\n%s", path, 1<<20, half))
		require.Eventually(t, func() bool { return x.s.room.used.Load() > 2*int64(len(half))-1 }, 10*time.Second, time.Millisecond, path)
		_, text, h := x.full("POST", path, strings.NewReader(half+half+"{}"))
		assert.Contains(t, text, "problems/busy", path)
		assert.Equal(t, "1", h.Get("Retry-After"))
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return x.s.room.used.Load() == 0 }, 10*time.Second, time.Millisecond, path)
	}
}

// What small elements become is counted, not only their bytes.
func TestManySmallOutlinksHaveABound(t *testing.T) {
	x := serve(t, Options{MaxBuffered: 1 << 20})
	line := `{"lease":"x","add":[{}` + strings.Repeat(",{}", 10_000) + `]}`
	for _, path := range []string{"/v1/done", "/v1/leases/x/done"} { // it never fits: to come again is of no use
		assert.Contains(t, x.problem(http.StatusRequestEntityTooLarge, "too-large", "POST", path, line), "-max-buffered")
	}
	x.problem(http.StatusRequestEntityTooLarge, "too-large", "POST", "/v1/leases", strings.Repeat(" ", 600<<10)+"{}")
	for _, path := range []string{"/v1/leases", "/v1/leases/x/done", "/v1/do"} {
		big := serve(t, Options{}).problem(http.StatusRequestEntityTooLarge, "too-large", "POST", path, strings.Repeat(" ", 1<<20)+"{}", "Idempotency-Key", "k")
		assert.Contains(t, big, "1048576 bytes", path)
	}
	assert.Zero(t, x.s.room.used.Load())
	require.NoError(t, x.s.room.take(0, 900<<10)) // others have it
	x.problem(http.StatusServiceUnavailable, "busy", "POST", "/v1/done", `{"lease":"x","add":[{}`+strings.Repeat(",{}", 1000)+`]}`)
	x.s.room.used.Add(-900 << 10)
	x.problem(http.StatusConflict, "not-leased", "POST", "/v1/leases/x/done", `{"add":[{},{}]}`)
	assert.Zero(t, x.s.room.used.Load())
}

// The buffer of a giant line is not kept once it is counted no more.
func TestAGiantLineLeavesNothing(t *testing.T) {
	l := &lines{c: &call{s: &Service{}}, buf: make([]byte, 1<<20), held: 1 << 20}
	l.shrink(2 * readAhead)
	assert.Nil(t, l.buf)
	assert.EqualValues(t, 2*readAhead, l.held)
}

// A URL is not added if the client sends only its beginning.
func TestALineThatBreaksOffIsNotTaken(t *testing.T) {
	x := serve(t, Options{})
	conn, _ := x.begin("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Type: text/plain\nContent-Length: 1000\n\nhttp://a.exam")
	require.Eventually(t, func() bool { return x.s.room.used.Load() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return x.s.room.used.Load() == 0 }, 10*time.Second, time.Millisecond)
	assert.Zero(t, x.s.f.Stats().Waiting)
}

// A client that falls silent in the middle of an array, or behind a line, gets 408.
func TestASilentBody(t *testing.T) {
	for _, body := range []string{`[{"url":"http://a`, `{"url":"http://a.example/"}` + "\n"} {
		_, in := serve(t, Options{Idle: waited}).begin("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\n" + body)
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		assert.Equal(t, http.StatusRequestTimeout, res.StatusCode, body)
	}
}

// Short lines are more in memory than on the wire.
func TestShortLinesHaveABound(t *testing.T) {
	const lines = batchURLs - 1
	room := int64(2*readAhead + lines*2*(len("{}")+parsed))
	x := serve(t, Options{MaxBuffered: room + 2*readAhead - 1})
	conn, in := x.begin("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Length: 100000\n\n" + strings.Repeat("{}\n", lines))
	require.Eventually(t, func() bool { return x.s.room.used.Load() == room }, 100*waited, waited/10)
	x.problem(503, "busy", "POST", "/v1/urls", "{}")
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return x.s.room.used.Load() == 0 }, 100*waited, waited/10)
}

// The server remembers how leases ended, within a bound.
func TestRememberedEndsHaveABound(t *testing.T) {
	var e ended
	now := time.Now()
	end := func(token uint64, size int, at time.Time) {
		assert.Nil(t, e.claim(token))
		e.settle(token, &endedLease{token: token, at: at, answer: strings.Repeat("x", size)})
	}
	for i := range uint64(100) {
		end(i, 1<<20, now)
	}
	assert.LessOrEqual(t, e.size, endedSize)
	assert.Len(t, e.by, endedSize>>20)
	_, ok := e.find(99, 0)
	assert.True(t, ok)
	end(100, 1, now.Add(endedFor+time.Second))
	assert.Len(t, e.by, 1, "the others are too old")
	assert.Len(t, e.queue, 1)
	assert.Equal(t, 1, e.size)
}

// A client that reads slowly may be fetching what it has read.
func TestAStreamThatIsReadSlowly(t *testing.T) {
	x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(0), LeaseTime: time.Hour}, Options{Idle: waited})
	pad := strings.Repeat("m", 60<<10)
	for i := range 200 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/","meta":{"k":["%s"]}}`, i, pad))
	}
	_, in := x.begin("POST /v1/stream HTTP/1.1\nHost: localhost\nContent-Length: 11\n\n{\"max\":200}")
	res, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	var mine struct{ Lease, Host string }
	require.NoError(t, json.NewDecoder(res.Body).Decode(&mine))
	require.Eventually(t, func() bool {
		x.s.mu.Lock()
		defer x.s.mu.Unlock()
		x.s.streams.mu.Lock()
		defer x.s.streams.mu.Unlock()
		return len(x.s.streams.by) == 0
	}, 100*waited, waited, "it is cut off")
	assert.Empty(t, x.ok("POST", "/v1/leases", `{"host":"`+mine.Host+`"}`)["leases"])
	x.ok("POST", "/v1/leases/"+mine.Lease+"/done", `{}`)
}

// The place of a lease that is replaced is not free meanwhile.
func TestAPlaceThatIsTaken(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", "{\"url\":\"http://a.example/\"}\n{\"url\":\"http://b.example/\"}")
	l, err := x.s.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 2})
	require.NoError(t, err)
	st := &stream{leases: map[uint64]time.Time{}, wake: make(chan struct{}, 1)}
	x.s.streams.set(l[0].Token(), st)
	st.out(l[0])
	over := make(chan struct{})
	free := make(chan int)
	go func() {
		for n := 0; ; {
			select {
			case <-st.wake:
				if out, _, _ := st.expire(time.Now()); out == 0 {
					n++
				}
			case <-over:
				free <- n
				return
			}
		}
	}()
	for i := range 20_000 {
		x.s.streams.update(l[i%2], l[1-i%2])
	}
	close(over)
	assert.Zero(t, <-free)
	x.s.streams.drop(l[0].Token())
	x.s.streams.update(l[0], l[0])
	out, _, _ := st.expire(time.Now())
	assert.Zero(t, out, "a lease that has ended takes no place")
}
