// These tests meet the limits: of ratio, rate, header fields and body memory.

package fetch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func br(s string) []byte {
	var b bytes.Buffer
	z := brotli.NewWriterLevel(&b, 1)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.Bytes()
}

func zst(s string) []byte {
	z, _ := zstd.NewWriter(nil)
	defer z.Close()
	return z.EncodeAll([]byte(s), nil)
}

func zl(s string) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.Bytes()
}

func TestBombsAreCutOffByTheirRatio(t *testing.T) {
	bomb := strings.Repeat("<p></p> ", (5<<19)/8)
	for encoding, sent := range map[string][]byte{"gzip": gz(bomb), "br": br(bomb), "zstd": zst(bomb), "deflate": zl(bomb), "gzip, gzip": gz(string(gz(bomb)))} {
		addr := web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(sent)
		})
		res, err := get(t, newFetcher(t, Options{}), "http://"+addr+"/")
		require.NoError(t, err, encoding)
		assert.True(t, res.Bomb, encoding)
		assert.True(t, res.Truncated, encoding)
		assert.Less(t, res.Body.Size(), int64(2<<20+1<<18), encoding)
		require.NoError(t, res.Close())
		res, err = get(t, newFetcher(t, Options{MaxRatio: 1 << 30}), "http://"+addr+"/")
		require.NoError(t, err, encoding)
		assert.False(t, res.Truncated, encoding)
		assert.EqualValues(t, len(bomb), res.Body.Size(), encoding)
		require.NoError(t, res.Close())
	}
}

// A stream says how much memory its decoder needs, and how many codings there are; more
// than is allowed is not given.
func TestDecodersMemoryIsBounded(t *testing.T) {
	window := byte(13 << 3) // 8 MiB (RFC 8878, section 3.1.1.1.2)
	stream := func() []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window, 1<<3 | 1, 0, 0, 'x'} }
	encoding, sent := "zstd", stream()
	addr := web(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", encoding)
		_, _ = w.Write(sent)
	})
	f := newFetcher(t, Options{NoKeepAlive: true})
	res, err := get(t, f, "http://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, "x", body(t, res))
	for _, more := range []byte{1, 1 << 3, 10 << 3} {
		window = 13<<3 + more
		sent = stream()
		_, err = get(t, f, "http://"+addr+"/")
		assert.Equal(t, Decode, ClassOf(err), "a window of %#x: %v", window, err)
	}
	encoding, sent = "gzip, gzip, gzip", gz(string(gz(string(gz("x")))))
	res, err = get(t, f, "http://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, "x", body(t, res))
	encoding, sent = "gzip, gzip, gzip, gzip", gz(string(sent))
	res, err = get(t, f, "http://"+addr+"/")
	require.NoError(t, err)
	assert.Equal(t, string(sent), body(t, res), "as it was sent")
	assert.Equal(t, encoding, res.Header.Get("Content-Encoding"))
}

// What decodes to nothing is not read without end either.
func TestNothingIsNotReadForEver(t *testing.T) {
	for encoding, piece := range map[string][]byte{"gzip": gz(""), "zstd": {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}} {
		sent := bytes.Repeat(piece, 50_000)
		addr := web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write(sent)
		})
		res, err := get(t, newFetcher(t, Options{MaxBody: 10_000}), "http://"+addr+"/")
		require.NoError(t, err, encoding)
		assert.True(t, res.Truncated, encoding)
		assert.EqualValues(t, 10_001, res.Bytes, encoding)
		assert.Zero(t, res.Body.Size(), encoding)
	}
}

func TestLeastRate(t *testing.T) {
	closed := make(chan struct{})
	addr, _ := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		for {
			if _, err := io.WriteString(c, "x"); err != nil {
				close(closed)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	f := newFetcher(t, Options{MinRate: 1 << 20, RateWindow: 20 * time.Millisecond})
	res, err := get(t, f, "http://"+addr+"/")
	assert.Equal(t, Timeout, ClassOf(err), "%v", err)
	assert.ErrorContains(t, err, "least rate")
	assert.GreaterOrEqual(t, res.Duration(), 20*time.Millisecond)
	<-closed

	addr = web(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 80 {
			_, _ = w.Write(make([]byte, 1<<10))
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	f = newFetcher(t, Options{MinRate: 100, RateWindow: 300 * time.Millisecond})
	for i := range 2 { // on a kept connection, too
		res, err = get(t, f, "http://"+addr+"/")
		require.NoError(t, err)
		assert.EqualValues(t, 80<<10, res.Body.Size())
		assert.Equal(t, i > 0, res.Timing.Reused)
	}
}

// The longer a body takes, the faster it must come.
func TestLeastRateGrows(t *testing.T) {
	o := Options{}.withDefaults()
	var least []int64
	for passed := range 5 {
		least = append(least, o.least(passed))
	}
	assert.Equal(t, []int64{1280, 5120, 20480, 20480, 20480}, least, "bytes in 20 s")
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<10))
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	})
	f := newFetcher(t, Options{MinRate: 32 << 10, RateWindow: 500 * time.Millisecond}) // at most 100 KiB a second come
	_, err := get(t, f, "http://"+addr+"/")
	assert.ErrorContains(t, err, "least rate")
}

func TestHeaderFields(t *testing.T) {
	addr := web(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Add(fmt.Sprintf("X-%d", i%10), "y")
		}
	})
	_, err := get(t, newFetcher(t, Options{MaxHeaderFields: 101}), "http://"+addr+"/")
	assert.Equal(t, Protocol, ClassOf(err), "with Date and Content-Length it has 102")
	_, err = get(t, newFetcher(t, Options{MaxHeaderFields: 102}), "http://"+addr+"/")
	assert.NoError(t, err)
}

func TestAdmit(t *testing.T) {
	addr := web(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = io.WriteString(w, "film")
	})
	f := newFetcher(t, Options{})
	no := errors.New("no films")
	q := Request{URL: "http://" + addr + "/", Admit: func(status int, h http.Header) error {
		assert.Equal(t, 200, status)
		if h.Get("Content-Type") == "video/mp4" {
			return no
		}
		return nil
	}}
	res, err := f.Fetch(t.Context(), q)
	assert.Equal(t, Unwanted, ClassOf(err))
	assert.ErrorIs(t, err, no)
	assert.Equal(t, 200, res.Status)
	assert.Nil(t, res.Body)
	q.Admit = func(int, http.Header) error { return nil }
	res, err = f.Fetch(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, "film", body(t, res))
	assert.False(t, res.Timing.Reused)
}

func TestLongBodiesAreInFiles(t *testing.T) {
	text := strings.Repeat("0123456789", 500)
	addr := web(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	res, err := get(t, newFetcher(t, Options{BodyMemory: 1000, TempDir: t.TempDir()}), "http://"+addr+"/")
	require.NoError(t, err)
	assert.False(t, res.Body.InMemory())
	assert.Equal(t, text, body(t, res))
	assert.Equal(t, text, body(t, res), "again")
	require.NoError(t, res.Close())
	res, err = get(t, newFetcher(t, Options{BodyMemory: 1000, TempDir: t.TempDir() + "/none"}), "http://"+addr+"/")
	assert.Error(t, err, "the folder is missing")
	assert.Equal(t, 200, res.Status)
	assert.Equal(t, Store, ClassOf(err), "%v", err)
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"http://me:pw@a.example/x@y": "http://a.example/x@y", "http://a@b@c.example?@": "http://c.example?@",
		"//me:pw@a.example": "//a.example", "http://a.example/": "http://a.example/", "": "", "mailto:x@y": "mailto:x@y",
	} {
		assert.Equal(t, want, Redact(in), in)
	}
	assert.NotContains(t, (&Error{URL: "http://me:pw@a.example/\n"}).Error(), "pw")
	assert.NotContains(t, (&Error{URL: "http://me:pw@a.example/\n"}).Error(), "\n")
}

func TestSomeBodiesMayBeLarger(t *testing.T) {
	long := "<urlset>" + strings.Repeat("0123456789abcdef", 20_000) // 320 kB
	for encoding, sent := range map[string][]byte{"": []byte(long), "gzip": gz(long)} {
		addr := web(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "text/xml")
			_, _ = w.Write(sent)
		})
		f := newFetcher(t, Options{MaxBody: 100_000, BodyMemory: 10_000})
		for larger, want := range map[int64]int{0: 100_000, 99_999: 100_000, 200_000: 200_000, int64(len(long)): len(long), 1 << 30: len(long)} {
			asked := 0
			res, err := f.Fetch(t.Context(), Request{URL: "http://" + addr + "/", Larger: func(h http.Header, head []byte) int64 {
				asked++
				assert.Equal(t, "text/xml", h.Get("Content-Type"))
				assert.Equal(t, long[:4096], string(head))
				return larger
			}})
			require.NoError(t, err)
			assert.Equal(t, 1, asked)
			assert.EqualValues(t, want, res.Body.Size(), "%q, %d", encoding, larger)
			assert.Equal(t, want < len(long), res.Truncated, "%q, %d", encoding, larger)
			assert.False(t, res.Body.InMemory())
			if encoding == "" {
				assert.EqualValues(t, min(want+1, len(long)), res.Bytes)
			}
			require.NoError(t, res.Close())
		}
		res, err := newFetcher(t, Options{}).Fetch(t.Context(), Request{URL: "http://" + addr + "/", Larger: func(http.Header, []byte) int64 {
			t.Error("it is no larger than others")
			return 0
		}})
		require.NoError(t, err)
		require.NoError(t, res.Close())
	}
}

// What is no body has a limit, too: here the padding of HTTP/2's frames, which comes without a byte of one.
func TestPaddingHasALimit(t *testing.T) {
	var sent atomic.Int64
	addr, o := secure(t, []string{"h2"}, func(c *tls.Conn) {
		_, _ = io.ReadFull(c, make([]byte, len(http2.ClientPreface)))
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			x, err := f.ReadFrame()
			if err != nil {
				return
			}
			h, ok := x.(*http2.HeadersFrame)
			if !ok {
				continue
			}
			var head bytes.Buffer
			_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: head.Bytes(), EndHeaders: true})
			go func() { _, _ = io.Copy(io.Discard, c) }()
			for f.WriteDataPadded(h.StreamID, false, nil, make([]byte, 255)) == nil && sent.Load() < 3<<20 { // below the window
				sent.Add(255)
			}
		}
	})
	o.MaxBody, o.MaxHeader, o.Timeout = 1000, 4096, 10*time.Second
	_, err := get(t, newFetcher(t, o), "https://"+addr+"/")
	assert.Equal(t, Protocol, ClassOf(err), "%v", err)
	assert.ErrorContains(t, err, errWaste.Error())
}

// With HTTP/2 net/http reads as much of a body as the window allows while the fetcher looks at the header.
func TestTheLimitOfAnAnswerEndsWithIt(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	go func() { _, _ = there.Write(make([]byte, 3<<20)) }()
	c := &timedConn{Conn: here}
	c.setLimit(time.Minute)
	c.allow(1, 1)
	c.begin()
	_, err := io.ReadFull(c, make([]byte, 2<<20))
	require.NoError(t, err)
	c.allow(1, 1)
	_, err = c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, errWaste)
}
