// This file tests what clients do that mean no good, or that died in the middle.

package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	x.problem(http.StatusServiceUnavailable, "busy", "POST", "/v1/done", line)
	x.problem(http.StatusServiceUnavailable, "busy", "POST", "/v1/leases/x/done", line)
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

// A URL of which the client sent only the beginning is not added.
func TestALineThatBreaksOffIsNotTaken(t *testing.T) {
	x := serve(t, Options{})
	conn, _ := x.begin("POST /v1/urls HTTP/1.1\nHost: localhost\nContent-Type: text/plain\nContent-Length: 1000\n\nhttp://a.exam")
	require.Eventually(t, func() bool { return x.s.room.used.Load() > 0 }, 10*time.Second, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return x.s.room.used.Load() == 0 }, 10*time.Second, time.Millisecond)
	assert.Zero(t, x.s.f.Stats().Waiting)
}
