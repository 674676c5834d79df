package polite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// web is a Base that answers itself, and notes when it did.
type web struct {
	t      testing.TB
	answer func(*http.Request) (*http.Response, error)
	took   time.Duration // of a body

	mu    sync.Mutex
	begun time.Time
	open  map[string]int
	log   []string // "12s http://a.example/"
}

func newWeb(t testing.TB, answer func(*http.Request) (*http.Response, error)) *web {
	return &web{t: t, answer: answer, begun: time.Now(), open: map[string]int{}}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		req.Body.Close()
	}
	host := req.URL.Hostname()
	w.mu.Lock()
	w.log = append(w.log, fmt.Sprintf("%v %v", time.Since(w.begun).Round(time.Millisecond), req.URL))
	w.open[host]++
	assert.Equal(w.t, 1, w.open[host], "contacts of %s at once", host)
	w.mu.Unlock()
	left := sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open[host]--
	})
	resp, err := w.answer(req)
	if err != nil {
		left()
		return nil, err
	}
	resp.Request = req
	resp.Body = &slowBody{Reader: resp.Body, left: left, ctx: req.Context(), took: w.took}
	return resp, nil
}

func (w *web) requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.log...)
}

// slowBody takes its time before it ends.
type slowBody struct {
	io.Reader
	ctx  context.Context
	took time.Duration
	left func()
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.took > 0 {
		select {
		case <-time.After(b.took):
		case <-b.ctx.Done():
			err = b.ctx.Err()
		}
		b.took = 0
	}
	if err != nil {
		b.left()
	}
	return n, err
}

func (b *slowBody) Close() error { b.left(); return nil }

// says is an answer.
func says(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func always(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return says(status, body, header...), nil }
}

// newTransport has a frontier with a delay of 10 s.
func newTransport(t testing.TB, w http.RoundTripper, o frontier.Options) *Transport {
	t.Helper()
	if o.Delay == nil {
		o.Delay = frontier.FixedDelay(10 * time.Second)
	}
	o.KeepOpen = true
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.Zero(t, f.Stats().Leased, "leases are out")
		require.NoError(t, f.Close())
	})
	return &Transport{Frontier: f, Base: w}
}

// get reads a page to its end.
func get(t testing.TB, c *http.Client, url string) (status int, err error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(new(bytes.Buffer), resp.Body)
	return resp.StatusCode, err
}
