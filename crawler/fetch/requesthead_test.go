// These tests compare what a Result says of its request with what came.

package fetch

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheRequestIsToldAsItWasSent(t *testing.T) {
	var got string
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for range 2 { // the second on the kept connection
			b := make([]byte, 4096)
			n, err := c.Read(b)
			if err != nil {
				return
			}
			got = string(b[:n])
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok"))
		}
	}()
	f := newFetcher(t, Options{UserAgent: "mybot/1", Jar: NewJar()})
	for range 2 {
		res, err := f.Fetch(t.Context(), Request{URL: "http://" + l.Addr().String() + "/a b?c=%zz#d", Header: http.Header{"If-None-Match": {`"v1"`}}})
		require.NoError(t, err)
		assert.Equal(t, got, string(res.Request))
		assert.Contains(t, got, "If-None-Match: \"v1\"\r\n")
	}
	assert.Contains(t, got, "Cookie: a=b\r\n")
	<-done

	res, err := get(t, newFetcher(t, Options{}), "http://"+l.Addr().String()+":1/")
	require.Error(t, err)
	assert.Nil(t, res.Request, "nothing was sent")

	cert, roots := certificate(t, "a.example", time.Now().Add(time.Hour))
	var header http.Header
	addr := secureWeb(t, cert, func(_ http.ResponseWriter, r *http.Request) { header = r.Header })
	f = newFetcher(t, Options{UserAgent: "mybot/1", TLS: &tls.Config{RootCAs: roots}, Resolve: map[string]string{"*": addr}})
	res, err = f.Fetch(t.Context(), Request{URL: "https://a.example/x?y", Header: http.Header{"If-None-Match": {`"v1"`}}})
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", res.Proto)
	head := string(res.Request)
	assert.True(t, strings.HasPrefix(head, "GET /x?y HTTP/1.1\r\nHost: a.example\r\n"), head)
	for name, values := range header {
		assert.Contains(t, strings.ToLower(head), strings.ToLower(name+": "+values[0]+"\r\n"))
	}
}
