// This file ends leases: calls of Done share requests.

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
)

const (
	maxSenders  = 2 // requests under way
	maxEnds     = 1000
	maxEndBytes = 4 << 20
)

// ending is a call of Done.
type ending struct {
	lease frontier.Lease
	add   []frontier.Entry
	line  []byte
	got   chan ended // room for one
}

type ended struct {
	refused []*frontier.EntryError
	err     error
}

// Done ends a lease, as frontier.Frontier.Done does. While the server is away it is repeated until
// the lease's deadline.
func (c *Client) Done(l frontier.Lease, o frontier.Outcome) error {
	_, err := c.DoneContext(context.Background(), l, o)
	return err
}

// DoneContext is Done with a context, and returns the outlinks that were refused. If ctx ends first,
// the error wraps frontier.ErrUnsettled.
func (c *Client) DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	line, err := c.doneLine(l, &o)
	if err != nil {
		return nil, err
	}
	e := &ending{l, o.Add, line, make(chan ended, 1)}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, frontier.ErrClosed
	}
	c.ends = append(c.ends, e)
	c.sendLocked()
	c.mu.Unlock()
	select {
	case x := <-e.got:
		return x.refused, x.err
	case <-ctx.Done():
		return nil, fmt.Errorf("client: done: %w: %w", frontier.ErrUnsettled, ctx.Err())
	}
}

// returnLocked gives a lease back that nobody waits for any more.
func (c *Client) returnLocked(l frontier.Lease) {
	line, err := c.doneLine(l, &frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	if err != nil || c.closed { // it ends by its deadline
		return
	}
	c.ends = append(c.ends, &ending{l, nil, line, make(chan ended, 1)})
	c.sendLocked()
}

// sendLocked sends the ends that wait, unless enough requests are under way: then they follow.
func (c *Client) sendLocked() {
	if len(c.ends) == 0 || c.senders == maxSenders || c.closed {
		return
	}
	n, size := 0, 0
	for n < len(c.ends) && n < maxEnds && (n == 0 || size+len(c.ends[n].line) <= maxEndBytes) {
		size += len(c.ends[n].line)
		n++
	}
	batch := c.ends[:n:n]
	c.ends = c.ends[n:]
	c.senders++
	c.requests.Go(func() {
		c.send(batch)
		c.mu.Lock()
		c.senders--
		c.sendLocked()
		c.mu.Unlock()
	})
}

// send sends a batch until each lease has been answered for, or has ended.
func (c *Client) send(batch []*ending) {
	for tries := 0; ; tries++ {
		n, err := c.post(batch)
		batch = batch[n:]
		if len(batch) == 0 {
			return
		}
		if _, away := errors.AsType[*awayError](err); !away {
			for _, e := range batch {
				e.got <- ended{err: err}
			}
			return
		}
		now := time.Now()
		left := batch[:0:0]
		for _, e := range batch {
			if e.lease.Deadline.After(now) {
				left = append(left, e)
				continue
			}
			e.got <- ended{err: fmt.Errorf("%w: its deadline has passed; %w", frontier.ErrNotLeased, err)}
		}
		if batch = left; len(batch) == 0 {
			return
		}
		if !c.pause(c.ctx, tries, err) {
			for _, e := range batch {
				e.got <- ended{err: frontier.ErrClosed}
			}
			return
		}
	}
}

// post sends a batch once, and returns how many of its calls were answered, in their order.
func (c *Client) post(batch []*ending) (n int, err error) {
	var body bytes.Buffer
	for _, e := range batch {
		body.Write(e.line)
	}
	q := &request{method: http.MethodPost, path: "/v1/done", contentType: linesType, accept: linesType, body: body.Bytes()}
	err = c.once(c.ctx, q, 0, func(r io.Reader) error {
		d := json.NewDecoder(r)
		for n < len(batch) {
			var a doneAnswer
			if err := d.Decode(&a); err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			e := batch[n]
			if a.Lease != "" && a.Lease != e.lease.ID() {
				return fmt.Errorf("an answer for the lease %q; want %q", a.Lease, e.lease.ID())
			}
			n++
			e.got <- a.ended(e)
		}
		return nil
	})
	return n, err
}

// ended is what an answer says to its call.
func (a *doneAnswer) ended(e *ending) ended {
	if err := a.err(); err != nil {
		return ended{err: err}
	}
	var x ended
	for i, v := range a.Add {
		if i < len(e.add) && (v.Status == "bad" || v.Status == "refused") {
			x.refused = append(x.refused, v.fault(i, e.add[i].URL))
		}
	}
	return x
}
