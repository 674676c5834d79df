// This file sends requests to a part: to one of its addresses after the other, until one answers.

package route

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/serve"
)

const (
	patience  = 30 * time.Second // how long a part may be silent
	long      = 10 * time.Minute // the same, while it reads or changes all that it has
	restFor   = 2 * time.Second  // how long a part that did not answer is asked last
	maxAnswer = 64 << 20         // bytes of an answer that is read into memory
)

// part has some of the hosts.
type part struct {
	name, tail string
	bases      []string
	at         atomic.Int32 // the address to ask: each failure of it moves on to the next
	rests      atomic.Int64 // until then, in Unix nanoseconds, since it did not answer
}

// mark is what the servers of the part know it by.
func (p *part) mark() string { return p.name + "/" + p.tail[1:] }

// resting reports whether the part has failed lately.
func (p *part) resting() bool { return time.Now().UnixNano() < p.rests.Load() }

// asking is a request to a part.
type asking struct {
	method, path string
	body         []byte
	stream       io.Reader     // or this, which is read once
	kind, accept string        // of the body and of the answer; empty: JSON
	wait         time.Duration // how long the part may take, beyond patience
}

// passed are the headers of a client's request that go to a part.
var passed = []string{"Authorization", "Idempotency-Key"}

// open sends a request and returns an answer that is no error. The caller must close its body.
func (c *call) open(ctx context.Context, p *part, a asking) (*http.Response, error) {
	var err error
	for i := range p.bases {
		if i > 0 && a.stream != nil {
			break
		}
		at := p.at.Load()
		var res *http.Response
		if res, err = c.once(ctx, p, p.bases[at], a); err == nil && res.StatusCode < 400 {
			p.rests.Store(0)
			return res, nil
		}
		switch {
		case err == nil:
			b, _ := io.ReadAll(io.LimitReader(res.Body, maxLine))
			_ = res.Body.Close()
			if err = refusal(p, res, b); !passes(res.StatusCode) {
				p.rests.Store(0)
				return nil, err
			}
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			err = busy("part %s does not answer: %v", p.name, err)
		}
		known := c.r.o.Fleet && res != nil // a fleet says itself that no machine has a partition
		if p.at.CompareAndSwap(at, (at+1)%int32(len(p.bases))) && !p.resting() && !known {
			c.r.o.Logger.Warn("a part does not answer", "partition", p.name, "address", p.bases[at], "error", err)
		}
	}
	p.rests.Store(time.Now().Add(restFor).UnixNano())
	return nil, err
}

// once sends a request to one address.
func (c *call) once(ctx context.Context, p *part, base string, a asking) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	watch := time.AfterFunc(patience+a.wait, func() { cancel(errSilent) })
	defer time.AfterFunc(a.wait+restFor, func() { p.rests.Store(time.Now().Add(patience).UnixNano()) }).Stop() // others pass it by meanwhile
	var body io.Reader = bytes.NewReader(a.body)
	if a.stream != nil {
		body = &sent{a.stream, watch, patience + a.wait}
	}
	q, err := http.NewRequestWithContext(ctx, a.method, base+a.path, body)
	if err == nil {
		for _, name := range passed {
			if v := c.q.Header.Get(name); v != "" {
				q.Header.Set(name, v)
			}
		}
		if len(a.body) > 0 || a.stream != nil {
			q.Header.Set("Content-Type", cmp.Or(a.kind, jsonType))
		}
		q.Host = cmp.Or(c.host, q.Host)
		q.Header.Set("Accept", cmp.Or(a.accept, jsonType))
		q.Header.Set(serve.PartHeader, p.mark())
		var res *http.Response
		if res, err = c.client.Do(q); err == nil {
			watch.Stop()
			res.Body = &watched{res.Body, watch, patience + a.wait, cancel}
			return res, nil
		}
	}
	watch.Stop()
	cancel(nil)
	return nil, err
}

const (
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

var errSilent = errors.New("it says nothing")

// sent is a body that the part has time to read.
type sent struct {
	io.Reader
	watch *time.Timer
	most  time.Duration
}

func (s *sent) Read(b []byte) (int, error) {
	s.watch.Reset(s.most)
	return s.Reader.Read(b)
}

// watched cuts an answer that comes to a stop.
type watched struct {
	io.ReadCloser
	watch  *time.Timer
	most   time.Duration
	cancel context.CancelCauseFunc
}

func (w *watched) Read(b []byte) (int, error) {
	w.watch.Reset(w.most)
	defer w.watch.Stop()
	return w.ReadCloser.Read(b)
}

func (w *watched) Close() error {
	err := w.ReadCloser.Close()
	w.cancel(nil)
	return err
}

// ask returns the whole answer of a part.
func (c *call) ask(ctx context.Context, p *part, a asking) ([]byte, error) {
	res, err := c.open(ctx, p, a)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(b) > maxAnswer {
		return nil, &problem{kind: "internal", Status: http.StatusBadGateway, Detail: "part " + p.name + ": its answer is longer than 64 MiB: ask for less"}
	}
	if err != nil && ctx.Err() == nil {
		err = busy("part %s: its answer broke off: %v", p.name, err)
	}
	return b, err
}

// asks asks several parts at once. The answers and errors are in the order of the parts.
func (c *call) asks(parts []*part, of func(*part) asking) (all [][]byte, errs []error) {
	all, errs = make([][]byte, len(parts)), make([]error, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() { all[i], errs[i] = c.ask(c.q.Context(), p, of(p)) })
	}
	wg.Wait()
	for _, b := range all {
		c.hold(len(b))
	}
	return all, errs
}

// pass lets a part answer the request itself.
func (c *call) pass(p *part) error { return c.passTo(p, c.q.URL.RequestURI()) }

// passTo lets a part answer what it has at a path.
func (c *call) passTo(p *part, path string) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	res, err := c.open(c.q.Context(), p, asking{method: c.q.Method, path: path, body: body, kind: c.q.Header.Get("Content-Type"), accept: c.q.Header.Get("Accept"), wait: long})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_ = c.send(res.StatusCode, res.Header.Get("Content-Type"), nil)
	_, err = io.Copy(&unhurried{c}, res.Body)
	return err
}

// unhurried writes to a client that reads in time.
type unhurried struct{ c *call }

func (u *unhurried) Write(b []byte) (int, error) { return len(b), u.c.write(b) }
