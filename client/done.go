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
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

const (
	maxSenders  = 2 // concurrent requests
	maxEnds     = 1000
	maxEndBytes = 4 << 20
)

// ending is a call of Done.
type ending struct {
	lease frontier.Lease
	add   []frontier.Entry
	line  []byte
	got   chan ended // buffer of one
}

type ended struct {
	refused []*frontier.EntryError
	err     error
}

// Done ends a lease, as frontier.Frontier.Done does, and reports the same mistakes of the program: an
// EntryError for each relative link. The lease has ended all the same. While the server is unreachable,
// Done repeats the request until the lease's deadline.
func (c *Client) Done(l frontier.Lease, o frontier.Outcome) error {
	refused, err := c.DoneContext(context.Background(), l, o)
	errs := []error{err}
	for _, e := range refused {
		if a := &o.Add[e.Index]; a.Depth < 0 || a.Host == "" && !hostkey.HasScheme(a.URL) {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// DoneContext is Done with a context, and returns the refused outlinks. If ctx ends first, the error
// wraps frontier.ErrUnsettled, unless outlinks were still being added before the end: then the lease is
// outstanding.
func (c *Client) DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	add := o.Add
	o.Add = nil
	line, err := c.doneLine(l, &o)
	if err != nil {
		return nil, err
	}
	var refused []*frontier.EntryError
	if len(add) > 0 {
		o.Add = add
		if whole, err := c.doneLine(l, &o); err == nil {
			line = whole
		} else if refused, err = c.addFirst(ctx, l, add); err != nil {
			return refused, err
		}
	}
	e := &ending{l, add, line, make(chan ended, 1)}
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
		return append(refused, x.refused...), x.err
	case <-ctx.Done():
		return refused, fmt.Errorf("client: done: %w: %w", frontier.ErrUnsettled, ctx.Err())
	}
}

// addFirst adds the outlinks of a lease that cannot be sent with its end: they are too many, or one of
// them cannot be written as JSON. They are stored before the lease ends. It returns the refused ones; an
// error means that the lease is outstanding.
func (c *Client) addFirst(ctx context.Context, l frontier.Lease, add []frontier.Entry) (refused []*frontier.EntryError, err error) {
	until, cancel := context.WithDeadline(ctx, l.Deadline)
	defer cancel()
	crawl := c.o.Crawl
	if crawl == "" { // they belong to their page's crawl, as with an end
		var w lease
		q, _ := jsonRequest(http.MethodGet, "/v1/leases/"+l.ID(), nil)
		if err := c.do(until, q, into(&w)); err != nil {
			if until.Err() != nil && ctx.Err() == nil {
				err = late(err)
			}
			return nil, err
		}
		crawl = w.Crawl
	}
	links := slices.Clone(add)
	for i := range links {
		if e := &links[i]; e.Depth == 0 && !e.AsIs && l.Entry.URL != "" {
			e.Depth = l.Entry.Depth + 1
		}
	}
	answered, err := c.verdicts(until, links, crawl, func(i int, v *verdict) {
		if v.isFault() {
			refused = append(refused, v.fault(i, add[i].URL))
		}
	})
	switch {
	case errors.Is(err, frontier.ErrFull): // the rest is lost, as with an end
		for i := answered; i < len(add); i++ {
			refused = append(refused, fault(i, add[i].URL, err))
		}
		return refused, nil
	case err != nil && until.Err() != nil && ctx.Err() == nil:
		err = late(err)
	}
	return refused, err
}

// late returns the error of an end that did not reach the server by its lease's deadline.
func late(err error) error {
	return fmt.Errorf("%w: its deadline has passed; %w", frontier.ErrNotLeased, err)
}

// returnLocked gives a lease back if no caller waits for it.
func (c *Client) returnLocked(l frontier.Lease) {
	line, err := c.doneLine(l, &frontier.Outcome{Result: frontier.Requeue, Uncontacted: true})
	if err != nil || c.closed { // it ends at its deadline
		return
	}
	c.ends = append(c.ends, &ending{l, nil, line, make(chan ended, 1)})
	c.sendLocked()
}

// sendLocked sends waiting ends, unless enough requests are under way: those continue with them.
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

// send sends a batch until the server has answered each end, or its lease has expired.
func (c *Client) send(batch []*ending) {
	for tries := 0; ; tries++ {
		var err error
		if batch, err = c.post(batch); len(batch) == 0 {
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
			e.got <- ended{err: late(err)}
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

// post sends a batch once. It returns the unanswered calls, and why they are.
func (c *Client) post(batch []*ending) (left []*ending, err error) {
	var body bytes.Buffer
	for _, e := range batch {
		body.Write(e.line)
	}
	q := &request{method: http.MethodPost, path: "/v1/done", contentType: linesType, accept: linesType, body: body.Bytes()}
	err = c.once(c.ctx, q, 0, func(r io.Reader) error {
		d := json.NewDecoder(r)
		var busy error
		for len(batch) > 0 {
			var a doneAnswer
			if err := decode(d, &a); err != nil {
				return err
			}
			if a.Type != "" || a.Status >= 400 {
				return a.problem.err() // it ends the response
			}
			e := batch[0]
			if a.Lease != "" && a.Lease != e.lease.ID() {
				return fmt.Errorf("an answer for the lease %q; want %q", a.Lease, e.lease.ID())
			}
			batch = batch[1:]
			if a.Error != nil && a.Error.err().passes() {
				left, busy = append(left, e), a.Error.err()
				continue
			}
			e.got <- a.ended(e)
		}
		return busy
	})
	return append(left, batch...), err
}

// ended converts an answer for its call.
func (a *doneAnswer) ended(e *ending) ended {
	if a.Error != nil {
		return ended{err: a.Error.err()}
	}
	var x ended
	for i, v := range a.Add {
		if i < len(e.add) && v.isFault() {
			x.refused = append(x.refused, v.fault(i, e.add[i].URL))
		}
	}
	return x
}
