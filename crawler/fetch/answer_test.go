// These tests read answers that are not to the letter.

package fetch

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// oddAnswers are answers with the body "hello" that browsers, or at least curl and wget, read. The
// server does not close the connection if the end of the body is known.
var oddAnswers = map[string]string{
	"line without a colon":          "HTTP/1.1 200 OK\r\nContent-Disposition = inline\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"first line is folded":          "HTTP/1.1 200 OK\r\n folded\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"bad line is folded":            "HTTP/1.1 200 OK\r\nbad\r\n folded\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"no name":                       "HTTP/1.1 200 OK\r\n: z\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"blank in a name":               "HTTP/1.1 200 OK\r\nA B: z\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"not ASCII in a name":           "HTTP/1.1 200 OK\r\nGr\xf6\xdfe: z\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"blank before a colon":          "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length : 5\r\n\r\nhello",
	"control character":             "HTTP/1.1 200 OK\r\nA: a\x01b\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"CR in a value":                 "HTTP/1.1 200 OK\r\nA: a\rContent-Length: 2\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"chunked twice":                 "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"chunked in a list":             "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: identity, Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"chunked with a length":         "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"chunked with two lengths":      "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 3, 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
	"identity":                      "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
	"transfer coding gzip":          "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1d\r\n" + string(gz("hello")) + "\r\n0\r\n\r\n",
	"chunks end in LF":              "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
	"blanks about the size":         "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n 5  \r\nhello\r\n0  \r\n\r\n",
	"last chunk has no end":         "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nCLOSE",
	"last trailer has no end":       "HTTP/1.1 200 OK\r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: bCLOSE",
	"lengths as a list":             "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5, 5\r\n\r\nhello",
	"length given twice":            "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"length with a sign":            "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: +5\r\n\r\nhello",
	"length with a unit":            "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5 bytes\r\n\r\nhello",
	"length is no number":           "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: unknown\r\n\r\nhelloCLOSE",
	"negative length":               "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: -5\r\n\r\nhelloCLOSE",
	"empty length":                  "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length:\r\n\r\nhelloCLOSE",
	"length beyond numbers":         "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 99999999999999999999\r\n\r\nhelloCLOSE",
	"empty lines before the status": "\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"mark before the status":        "\xef\xbb\xbfHTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"blanks in the status line":     "HTTP/1.1   200   OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"tab in the status line":        "HTTP/1.1\t200\tOK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"no status":                     "HTTP/1.1 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"no version":                    "HTTP 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"another version":               "HTTP/2 200\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"lower case":                    "http/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"status glued to its reason":    "HTTP/1.1 200: OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
	"behind a note":                 "HTTP/1.1 103 Early Hints\r\nbad line\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello",
}

// odd serves an answer of oddAnswers to each request of a connection.
func odd(answer string) func(net.Conn, int) bool {
	return func(c net.Conn, _ int) bool {
		text, closes := strings.CutSuffix(answer, "CLOSE")
		_, err := io.WriteString(c, text)
		return err == nil && !closes
	}
}

func TestOddAnswersAreRead(t *testing.T) {
	for name, answer := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetcher(t, Options{})
			addr := perConn(t, odd(answer))
			for range 2 {
				res, err := get(t, f, "http://"+addr+"/")
				require.NoError(t, err)
				assert.Equal(t, 200, res.Status)
				assert.Equal(t, "hello", body(t, res))
				assert.Equal(t, "y", res.Header.Get("X"))
				assert.False(t, res.Timing.Reused, "the connection of an odd answer is not used again")
			}
		})
	}
}

// secure serves connections over TLS. It returns the address, and options that trust it.
func secure(t *testing.T, protocols []string, serve func(*tls.Conn)) (addr string, o Options) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: s.TLS.Certificates, NextProtos: protocols})
	require.NoError(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				if err := c.(*tls.Conn).Handshake(); err == nil {
					serve(c.(*tls.Conn))
				}
			})
		}
	})
	return l.Addr().String(), Options{TLS: &tls.Config{RootCAs: roots}}
}

// answerOnce reads a request, and answers as oddAnswers says.
func answerOnce(t *testing.T, c net.Conn) {
	_, err := http.ReadRequest(bufio.NewReader(c))
	assert.NoError(t, err)
	_, _ = io.WriteString(c, oddAnswers["line without a colon"])
}

func TestOddAnswersAreReadOverTLS(t *testing.T) {
	addr, o := secure(t, nil, func(c *tls.Conn) { answerOnce(t, c) })
	res, err := get(t, newFetcher(t, o), "https://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, "hello", body(t, res))
	assert.Equal(t, "HTTP/1.1", res.Proto)
}

func TestOddAnswersAreReadThroughProxies(t *testing.T) {
	plain := &relay{to: perConn(t, odd(oddAnswers["chunked twice"]))}
	addr, o := secure(t, nil, func(c *tls.Conn) { answerOnce(t, c) })
	cert, _ := certificate(t, "proxy.example", time.Now().Add(time.Hour))
	inside := &relay{to: addr}
	for name, x := range map[string]struct {
		url   string
		proxy url.URL
		tls   *tls.Config
	}{
		"CONNECT":             {"https://" + addr + "/", url.URL{Scheme: "http", Host: web(t, inside.ServeHTTP)}, o.TLS},
		"CONNECT over TLS":    {"https://" + addr + "/", url.URL{Scheme: "https", Host: secureWeb(t, cert, inside.ServeHTTP)}, &tls.Config{InsecureSkipVerify: true}},
		"SOCKS and TLS":       {"https://name.example/", url.URL{Scheme: "socks5", Host: inside.socks(t)}, &tls.Config{InsecureSkipVerify: true}},
		"SOCKS":               {"http://name.example/", url.URL{Scheme: "socks5", Host: plain.socks(t)}, nil},
		"forwarded, over TLS": {"http://name.example/", url.URL{Scheme: "https", Host: secureWeb(t, cert, plain.ServeHTTP)}, &tls.Config{InsecureSkipVerify: true}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFetcher(t, Options{TLS: x.tls, Proxy: &x.proxy})
			for range 2 {
				res, err := get(t, f, x.url)
				require.NoError(t, err)
				if name != "forwarded, over TLS" {
					assert.Equal(t, "hello", body(t, res))
					assert.False(t, res.Timing.Reused, "the connection of an odd answer is not used again")
				}
			}
		})
	}
}

// What a proxy answers in place of a tunnel is an error that has its words.
func TestProxiesThatRefuse(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n":  "answers 407",
		"HTTP/1.1 100 Wait\r\n\r\nHTTP/1.0 503 No\r\n\r\n": "answers 503",
		"SSH-2.0-x\r\n\r\n": "not HTTP", "\x05": "EOF", "": "EOF",
	} {
		f := newFetcher(t, Options{Proxy: &url.URL{Scheme: "http", Host: perConn(t, odd(answer+"CLOSE"))}})
		_, err := get(t, f, "https://name.example/")
		assert.ErrorContains(t, err, want, answer)
	}
	silent := perConn(t, func(net.Conn, int) bool { return true })
	for _, scheme := range []string{"http", "socks5"} {
		f := newFetcher(t, Options{Proxy: &url.URL{Scheme: scheme, Host: silent}, Timeout: 100 * time.Millisecond})
		_, err := get(t, f, "https://name.example/")
		assert.Equal(t, Timeout, ClassOf(err), "%v", err)
	}
}

// A call sends one request; the next one uses the older protocol.
func TestFailedHTTP2IsFollowedByHTTP1(t *testing.T) {
	for _, goAway := range []bool{false, true} {
		addr, o := secure(t, []string{"h2", "http/1.1"}, func(c *tls.Conn) {
			if c.ConnectionState().NegotiatedProtocol != "h2" {
				answerOnce(t, c)
				return
			}
			_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
			f := http2.NewFramer(c, c)
			_ = f.WriteSettings()
			for {
				switch x, err := f.ReadFrame(); h := x.(type) {
				case *http2.HeadersFrame:
					if goAway {
						_ = f.WriteGoAway(h.StreamID, http2.ErrCodeHTTP11Required, nil)
						return
					}
					_ = f.WriteRSTStream(h.StreamID, http2.ErrCodeProtocol)
				default:
					if err != nil {
						return
					}
				}
			}
		})
		f := newFetcher(t, o)
		_, err := get(t, f, "https://"+addr+"/")
		require.Error(t, err)
		res, err := get(t, f, "https://"+addr+"/")
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1", res.Proto)
		assert.Equal(t, "hello", body(t, res))
	}
}

func TestAnswersThatContradictThemselvesAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"two lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 2\r\n\r\nhello",
		"two in a list":       "HTTP/1.1 200 OK\r\nContent-Length: 5, 2\r\n\r\nhello",
		"NUL":                 "HTTP/1.1 200 OK\r\nA: a\x00b\r\nContent-Length: 5\r\n\r\nhello",
		"four digits":         "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello",
		"another protocol":    "ICY 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"much before":         "\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"chunk without size":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n\r\n0\r\n\r\n",
		"chunk longer":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
		"size beyond numbers": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, newFetcher(t, Options{}), "http://"+perConn(t, odd(answer))+"/")
			assert.Equal(t, Protocol, ClassOf(err), "%v", err)
		})
	}
}
