// This file reads bodies within limits: of bytes, as sent and as decoded, of the
// ratio between the two, and of time.

package fetch

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/crawler/spool"
)

// small is the size of a decoded body up to which Request.Large is not called.
const small = 256 << 10

// ratioFrom is the size of a decoded body up to which its compression ratio does not matter.
const ratioFrom = 2 << 20

// reading is one body on its way from the wire to its store.
type reading struct {
	opts   *Options
	limit  int64 // of bytes, as sent and as decoded
	wire   wireReader
	conn   *timedConn
	body   *spool.Body
	larger func() int64 // the limit for a larger body, called when limit is reached; nil if none
	large  func()       // called when the body is no longer small; nil after that, or without a callback
	ended  bool         // a limit was met
	bomb   bool         // the limit was the one on the compression ratio
}

// readBody reads a body into res. It reports whether the server's answer was read to its end.
func (f *Fetcher) readBody(resp *http.Response, c *conn, limit int64, q Request, res *Result) (done bool, err error) {
	r := &reading{opts: &f.opts, limit: limit, conn: c.wire, large: q.Large, body: spool.New(spool.Options{Memory: f.opts.BodyMemory, Dir: f.opts.TempDir})}
	if q.Larger != nil {
		r.larger = func() int64 { return q.Larger(resp.Header, r.body.Head(headSize)) }
	}
	r.wire = wireReader{r: resp.Body, left: limit + 1, more: r.extend}
	res.Body = r.body
	stop := watch(c, &r.wire, &f.opts)
	done, err = r.read(resp)
	if stop() && err != nil {
		err = errTooSlow
	}
	res.Bytes = r.limit + 1 - r.wire.left
	res.Truncated, res.Bomb = r.ended, r.bomb
	return done, err
}

func (r *reading) read(resp *http.Response) (done bool, err error) {
	var src io.Reader = &r.wire
	words, supported := codings(resp.Header)
	if supported > 0 && supported <= maxCodings {
		d, err := newDecoder(src, words)
		if err != nil {
			return false, r.wire.explain(decodeError{err})
		}
		defer d.close()
		src = d
		if len(d.left) < len(words) || supported == len(words) {
			resp.Header.Del("Content-Encoding")
			resp.Header.Del("Content-Length")
		}
		if len(d.left) > 0 && supported < len(words) {
			resp.Header.Set("Content-Encoding", strings.Join(d.left, ", "))
		}
	} else if n := resp.ContentLength; n > 0 {
		r.body.Grow(int(min(n, r.limit, small))) // a server may declare much, and send little
	}
	buf := copyBuffers.Get().(*[]byte)
	_, err = io.CopyBuffer(writerOnly{r}, readerOnly{src}, *buf)
	copyBuffers.Put(buf)
	switch {
	case errors.Is(err, errLimit) || r.wire.left <= 0 && !r.wire.ended:
		r.ended = true
		return false, notStored(r.body.Truncate(r.limit))
	case err != nil && r.wire.err == nil && !errors.Is(err, errStore):
		return false, decodeError{err}
	case err != nil:
		return false, r.wire.explain(err)
	}
	if !r.wire.ended { // a decoder may stop where its stream ends
		_, _ = io.CopyN(io.Discard, &r.wire, 4<<10)
	}
	return r.wire.ended, nil
}

// copyBuffers are buffers for reading bodies.
var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

var (
	errLimit   = errors.New("a limit was met")
	errStore   = errors.New("the body cannot be stored")
	errTooSlow = slowError{}
)

// notStored adds that an error is one of the store, not of the network.
func notStored(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(errStore, err)
}

// slowError reports that a server sends too slowly.
type slowError struct{}

func (slowError) Error() string   { return "the server sends less than the least rate" }
func (slowError) Timeout() bool   { return true }
func (slowError) Temporary() bool { return true }

// writerOnly hides ReaderFrom, so that each piece is judged.
type writerOnly struct{ r *reading }

// readerOnly hides WriterTo, which would allocate buffers.
type readerOnly struct{ io.Reader }

// Write stores decoded bytes, as far as the limits allow.
func (w writerOnly) Write(p []byte) (int, error) {
	r := w.r
	n, err := r.body.Write(p)
	if err != nil {
		return n, notStored(err)
	}
	size := r.body.Size()
	if size > small && r.large != nil {
		r.large()
		r.large = nil
	}
	if size > r.limit && !r.extend() {
		return n, errLimit
	}
	sent := r.limit + 1 - r.wire.left
	if size > ratioFrom && size/int64(r.opts.MaxRatio) > sent {
		r.bomb = true
		return n, errLimit
	}
	return n, nil
}

// headSize is how much of a body is passed to Request.Larger.
const headSize = 4 << 10

// extend raises the limit once for a body that may be larger than others. It reports whether the
// body is now below the limit.
func (r *reading) extend() bool {
	if r.larger == nil {
		return false
	}
	limit := r.larger()
	r.larger = nil
	if limit <= r.limit {
		return false
	}
	r.wire.left += limit - r.limit
	r.limit = limit
	r.conn.allow(limit, r.opts.MaxHeader)
	return r.body.Size() <= limit
}

// wireReader counts what the server sent and records how it ended.
type wireReader struct {
	r     io.Reader
	left  int64
	more  func() bool // raises left
	total atomic.Int64
	ended bool  // the server's end was reached
	err   error // the network's error
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.left <= 0 && !w.more() {
		return 0, io.EOF
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	w.total.Add(int64(n))
	if err == io.EOF {
		w.ended = true
	} else if err != nil {
		w.err = err
	}
	return n, err
}

// explain prefers the error of the network to its consequences.
func (w *wireReader) explain(err error) error { return cmp.Or(w.err, err) }

// least returns how many bytes must come in a RateWindow after others have passed. It grows, so that
// a server cannot hold a connection for long with a few bytes.
func (o *Options) least(passed int) int64 {
	return int64(float64(o.MinRate) * o.RateWindow.Seconds() * float64(int(1)<<(2*min(passed, 2))))
}

// watch closes a connection that receives too little in a RateWindow. The returned function stops
// watching, and reports whether the connection was closed.
func watch(c *conn, w *wireReader, o *Options) (stop func() bool) {
	var mu sync.Mutex
	var last int64
	slow, stopped, passed := false, false, 0
	var t *time.Timer
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(o.RateWindow, func() {
		mu.Lock()
		defer mu.Unlock()
		now := w.total.Load()
		switch {
		case stopped:
		case now-last < o.least(passed):
			slow = true
			c.close()
		default:
			last = now
			passed++
			t.Reset(o.RateWindow)
		}
	})
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		t.Stop()
		return slow
	}
}
