// This file makes requests idempotent: a repeated Idempotency-Key gets the first request's answer.

package serve

import (
	"bytes"
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	onceFor    = 10 * time.Minute
	onceAtMost = 1024 // keys
)

// once holds the answers to requests with a key.
type once struct {
	mu   sync.Mutex
	by   map[string]*answered // guarded by mu
	keys []string             // guarded by mu; the oldest first
}

type answered struct {
	body   uint64
	at     time.Time
	done   bool
	code   int
	kind   string
	answer []byte
}

// do answers a request. A repeated key with the same body gets the first answer; with another body, an
// error.
func (o *once) do(c *call, key string, body []byte, answer func() error) error {
	if len(key) > 255 {
		return badRequest("Idempotency-Key has %d bytes; want at most 255", len(key))
	}
	key = c.who + "\x00" + c.r.URL.Path + "\x00" + key
	x := &answered{body: maphash.Bytes(bodySeed, body), at: time.Now()}
	o.mu.Lock()
	if o.by == nil {
		o.by = map[string]*answered{}
	}
	if old := o.by[key]; old != nil && time.Since(old.at) < onceFor {
		defer o.mu.Unlock()
		switch {
		case old.body != x.body:
			return &problem{kind: "conflict", status: http.StatusConflict, detail: "another request had this Idempotency-Key"}
		case !old.done:
			return &problem{kind: "conflict", status: http.StatusConflict, detail: "the request with this Idempotency-Key is under way"}
		}
		c.send(old.code, old.kind, old.answer)
		return nil
	}
	o.dropLocked(key)
	if len(o.keys) == onceAtMost {
		o.dropLocked(o.keys[0])
	}
	o.keys = append(o.keys, key)
	o.by[key] = x
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !x.done && o.by[key] == x {
			o.dropLocked(key) // the client may retry
		}
	}()

	w := &recorded{ResponseWriter: c.w}
	c.w = w
	err := answer()
	if err != nil {
		c.fail(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	x.done, x.code, x.kind, x.answer = c.code < 500, c.code, w.Header().Get("Content-Type"), w.b.Bytes()
	return nil
}

// dropLocked drops a key.
func (o *once) dropLocked(key string) {
	if o.by[key] != nil {
		delete(o.by, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
}

// recorded keeps a copy of what is written.
type recorded struct {
	http.ResponseWriter
	b bytes.Buffer
}

func (w *recorded) Write(b []byte) (int, error) {
	w.b.Write(b)
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *recorded) Unwrap() http.ResponseWriter { return w.ResponseWriter }
