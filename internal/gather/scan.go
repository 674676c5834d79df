// This file gives every URL of a scope to a function, for scans.

package gather

import (
	"context"
	"strings"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// Scan calls take with every record of a scope, in no particular order.
func Scan(ctx context.Context, f Frontier, s scope.Scope, take func(q *storage.Queue, due int64, body []byte) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x := &copier{Frontier: f, Writer: dump.NewWriter("", 0), ctx: ctx, scope: s}
	x.Source, x.NoMarks = x, true
	if x.Spill == nil {
		err = x.scanMemory(take)
	} else {
		err = x.scanStore(take)
	}
	if closed := f.Alive(); err != nil && closed != nil {
		return closed
	}
	return err
}

func (x *copier) scanStore(take func(q *storage.Queue, due int64, body []byte) error) error {
	s, err := x.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return dump.EachURL(s, x, x.AddMark, func(q *storage.Queue, due int64, body []byte) error {
		return take(&storage.Queue{Host: strings.Clone(q.Host), Crawl: q.Crawl, Priority: q.Priority}, due, body)
	})
}

// scanMemory copies all URLs under the lock, and takes them then.
func (x *copier) scanMemory(take func(q *storage.Queue, due int64, body []byte) error) error {
	type copied struct {
		queue int
		due   int64
		end   int // of its body
	}
	var (
		queues []storage.Queue
		urls   []copied
		bodies []byte
	)
	x.url = func(q *storage.Queue, due int64, body []byte) error {
		if n := len(queues); n == 0 || queues[n-1] != *q {
			c := *q
			c.Host = strings.Clone(q.Host)
			queues = append(queues, c)
		}
		bodies = append(bodies, body...)
		urls = append(urls, copied{len(queues) - 1, due, len(bodies)})
		return nil
	}
	if err := x.LockOpen(); err != nil {
		return err
	}
	_ = x.copyURLsLocked() // it cannot fail
	x.Unlock()
	from := 0
	for _, u := range urls {
		if err := take(&queues[u.queue], u.due, bodies[from:u.end]); err != nil {
			return err
		}
		from = u.end
	}
	return nil
}
