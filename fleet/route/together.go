// This file sends lines of several clients to a part in one request: what comes while two are under way goes with
// the next. A request costs a part as much as many lines, and a commit for each is dear.

package route

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
)

const (
	sendsAtOnce = 2
	togetherMax = 256 << 10 // bytes of a request of several clients
)

// lane is where lines of one kind go to a part, with the same headers of their clients.
type lane struct {
	part   *part
	path   string
	header [2]string // the values of passed
}

// load is some lines of one client.
type load struct {
	lines   [][]byte
	size    int
	answers []json.RawMessage
	sent    chan error
}

// lanes holds the loads that wait.
type lanes struct {
	mu    sync.Mutex
	waits map[lane][]*load // guarded by mu
	sends map[lane]int     // guarded by mu; under way
}

// together sends lines, and returns the answer to each. After an error there may be fewer.
func (c *call) together(p *part, path string, lines [][]byte) ([]json.RawMessage, error) {
	at := lane{part: p, path: path}
	for i, name := range passed {
		at.header[i] = c.q.Header.Get(name)
	}
	l := &load{lines: lines, sent: make(chan error, 1)}
	for _, b := range lines {
		l.size += len(b) + 1
	}
	x := &c.r.lanes
	x.mu.Lock()
	x.waits[at] = append(x.waits[at], l)
	if x.sends[at] < sendsAtOnce {
		x.sends[at]++
		on := &call{r: c.r, client: c.client, q: c.q.WithContext(context.WithoutCancel(c.q.Context()))}
		c.r.going.Go(func() { on.sendAll(at) })
	}
	x.mu.Unlock()
	select {
	case err := <-l.sent:
		return l.answers, err
	case <-c.q.Context().Done():
		x.drop(at, func(w *load) bool { return w == l })
		return nil, context.Cause(c.q.Context())
	}
}

// drop takes loads out that wait.
func (x *lanes) drop(at lane, which func(*load) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.waits[at] = slices.DeleteFunc(x.waits[at], which); len(x.waits[at]) == 0 {
		delete(x.waits, at)
	}
}

// sendAll sends until nothing waits.
func (c *call) sendAll(at lane) {
	for all := c.r.lanes.next(at); len(all) > 0; all = c.r.lanes.next(at) {
		err := c.sendSome(at, all)
		if away(err) { // none waits as long again
			c.r.lanes.drop(at, func(l *load) bool { l.sent <- err; return true })
		}
		for _, l := range all {
			if len(l.answers) == len(l.lines) {
				l.sent <- nil
			} else {
				l.sent <- err
			}
		}
	}
}

// next returns the loads of the next request. Without any, the caller sends no more.
func (x *lanes) next(at lane) []*load {
	x.mu.Lock()
	defer x.mu.Unlock()
	waits, n := x.waits[at], 0
	for size := 0; n < len(waits) && (n == 0 || size+waits[n].size <= togetherMax); n++ {
		size += waits[n].size
	}
	if x.waits[at] = waits[n:]; n == len(waits) {
		delete(x.waits, at)
	}
	if n == 0 {
		if x.sends[at]--; x.sends[at] == 0 {
			delete(x.sends, at)
		}
	}
	return waits[:n:n]
}

// sendSome sends loads in one request, and sets their answers.
func (c *call) sendSome(at lane, all []*load) error {
	var body bytes.Buffer
	for _, l := range all {
		for _, b := range l.lines {
			body.Write(b)
			body.WriteByte('\n')
		}
	}
	res, err := c.open(c.q.Context(), at.part, asking{method: http.MethodPost, path: at.path, body: body.Bytes(), kind: linesType, accept: linesType})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := bufio.NewReaderSize(res.Body, readAhead)
	for _, l := range all {
		for range l.lines {
			switch b, err := in.ReadBytes('\n'); {
			case err != nil:
				return busy("part %s: its answer broke off: %v", at.part.name, err)
			case bytes.HasPrefix(b, []byte(`{"type":`)): // a problem, which ends the answer
				x := problem{Status: http.StatusInternalServerError}
				_ = json.Unmarshal(b, &x)
				return refusal(at.part, &http.Response{StatusCode: x.Status}, b)
			default:
				l.answers = append(l.answers, b[:len(b)-1])
			}
		}
	}
	if n, _ := io.Copy(io.Discard, in); n > 0 { // also so that the connection can be used again
		for _, l := range all {
			l.answers = nil
		}
		return busy("part %s: it has answered more than it was asked", at.part.name)
	}
	return nil
}
