package lenient

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// At the last byte of an answer the connection is known to be unfit, before anybody may use it again.
func TestMoreBehindAnAnswerIsSeenAtItsEnd(t *testing.T) {
	for _, answer := range []string{okAnswer, "HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"} {
		here, there := net.Pipe()
		go func() { _, _ = io.WriteString(there, answer+okAnswer) }()
		c := NewConn(here, 1000)
		_, err := io.ReadFull(c, make([]byte, len(answer)))
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		assert.Equal(t, io.EOF, err, answer)
		_ = here.Close()
	}
}

// sent returns a Conn with answers of a server.
func sent(t *testing.T, answers ...string) *Conn {
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	go func() {
		for _, a := range answers {
			_, _ = io.ReadFull(there, make([]byte, 5))
			_, _ = io.WriteString(there, a)
		}
	}()
	return NewConn(here, 1<<16)
}

func TestFieldsBehindABody(t *testing.T) {
	for fields, want := range map[string]string{"X: y\r\n": "y", "bad\r\n X : y\nX:y\x01\r\n": "y", "X: " + strings.Repeat("y", 5000) + "\r\n": ""} {
		c := sent(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2\r\nok\r\n0\r\n"+fields+"\r\n")
		_, _ = io.WriteString(c, "GET /")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "ok", string(b))
		assert.Equal(t, want, resp.Trailer.Get("X"))
	}
}

// The body of an answer depends on its request.
func TestAnswersWithoutABody(t *testing.T) {
	head := strings.TrimSuffix(okAnswer, "ok")
	c := sent(t, head, strings.Replace(okAnswer, " 2", "2", 1), "never")
	r := bufio.NewReader(c)
	_, _ = io.WriteString(c, "HEAD ")
	_, err := http.ReadResponse(r, &http.Request{Method: http.MethodHead})
	require.NoError(t, err)
	_, _ = io.WriteString(c, "GET /")
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "ok", string(b))
	_, err = r.ReadByte()
	assert.Equal(t, io.EOF, err, "the length was odd")
}

func FuzzRewrite(f *testing.F) {
	for _, answer := range []string{okAnswer, "http 200: OK\n bad\nA : b\x01\nTransfer-Encoding: gzip\nTransfer-Encoding: chunked\nContent-Length: +5, 6\n\n"} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, read []byte) {
		h, ok := rewrite(read)
		if !ok || bytes.IndexByte(read, 0) >= 0 {
			return
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(h.text)), nil)
		require.NoError(t, err, "net/http reads what was rewritten")
		assert.Equal(t, h.status, resp.StatusCode)
		assert.Equal(t, h.chunked, len(resp.TransferEncoding) > 0)
		again, ok := rewrite(h.text)
		assert.True(t, ok)
		assert.False(t, again.odd)
		assert.Equal(t, string(h.text), string(again.text))
	})
}

// A head of 64 KiB would have room for 20,000 lines of one field: joining them copies each only a few times.
func TestAFieldOfManyLines(t *testing.T) {
	read := []byte("HTTP/1.1 200 OK\r\nX: y\r\n" + strings.Repeat(" y\n", 1000) + "\r\n")
	assert.Less(t, testing.AllocsPerRun(10, func() { rewrite(read) }), 50.0)
	h, ok := rewrite(read)
	assert.True(t, ok)
	assert.Contains(t, string(h.text), "\r\nX: y"+strings.Repeat(" y", 1000)+"\r\n")
}
