// This file lists URLs: waiting ones, host by host in domain order and within a host in
// the order of their admission, and all URLs, in no particular order.
//
// The order of admission never changes, whatever moves between memory and disk, queues and priorities.
// So a place in it, the cursor, is a host and a sequence number, and stays valid, even after a restart.
// Records in memory are found by a walk; those on disk are read outside the lock, and their range of
// numbers is remembered, so that the next page of a large host reads only what it needs.

package frontier

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

// WaitingURL is a URL that waits to be handed out.
type WaitingURL struct {
	Entry    Entry
	Host     string
	Priority int // with which it is served
	Attempt  int // that its next hand-out will be, from 1
	History  History
	seq      uint64
}

// Cursor names the URL's place in the listing: URLs goes on behind it. It is
// printable, fit for a query string, and valid as long as the store is.
func (u WaitingURL) Cursor() string { return view.Cursor(u.Host, u.seq) }

// URLs yields the waiting URLs of a scope: hosts in domain order, their URLs in the order in which they
// were admitted. It begins behind the URL whose Cursor is after, which need not wait any more; if after
// is empty, with the first. A URL that waits from the first call to the end of the listing is yielded
// exactly once, over any number of calls and restarts; one that comes, goes, or is moved by a Force
// meanwhile, at most once per record.
//
// No lock is held while the loop body runs. URLs on disk are read as the listing reaches
// them; the first call reads all URLs of a host on disk, later ones only those that they
// list. A *CorruptError reports damaged ones, and the listing continues; after any other
// error (a bad scope, a malformed cursor, ctx's, ErrClosed, the Spill's) it ends.
func (f *Frontier) URLs(ctx context.Context, s Scope, after string) iter.Seq2[WaitingURL, error] {
	return func(yield func(WaitingURL, error) bool) {
		l := urlListing{f: f, ctx: ctx, yield: yield, bad: map[uint64]bool{}}
		s, err := f.spelled(s)
		if err != nil {
			yield(WaitingURL{}, fmt.Errorf("frontier: URLs: %w", err))
			return
		}
		behind := ""
		if after != "" {
			host, seq, ok := view.ParseCursor(after)
			if !ok {
				yield(WaitingURL{}, fmt.Errorf("frontier: URLs: malformed cursor %q; want one from an earlier listing", shortened(after)))
				return
			}
			if s.stored().Contains(host) && !l.host(host, seq) {
				return
			}
			behind = host
		}
		look := func(id uint32) (host string) {
			if f.core.WaitingOf(id) > 0 {
				host = string(f.core.NameOf(id))
			}
			return host
		}
		for host := range eachHost(f, s, behind, mercator.InfosAtOnce, look) {
			if host != "" && !l.host(host, 0) {
				return
			}
		}
		if f.isClosed() {
			yield(WaitingURL{}, ErrClosed)
		}
	}
}

// urlListing is a listing under way.
type urlListing struct {
	f     *Frontier
	ctx   context.Context
	yield func(WaitingURL, error) bool
	bad   map[uint64]bool // parts that are damaged
}

// host yields the URLs of one host behind a number. It reports false when the listing is over.
func (l *urlListing) host(name string, after uint64) bool {
	for {
		w, err := l.fill(name, after)
		switch {
		case err == errStop:
			return false
		case err != nil:
			l.yield(WaitingURL{}, err)
			return false
		case w == nil:
			return true
		}
		for i := range w.Items {
			x := &w.Items[i]
			after = x.Seq
			u := WaitingURL{Host: name, Priority: x.Priority, seq: x.Seq}
			if u.Entry, u.Attempt, u.History = described(x.Body, name, x.Crawl); !l.yield(u, nil) {
				return false
			}
		}
		if !w.More {
			return true
		}
		after = max(after, w.UpTo())
	}
}

var errStop = errors.New("the caller has seen enough")

// fill collects the next URLs of a host behind a number; nil if the host is not in memory.
func (l *urlListing) fill(host string, after uint64) (*view.Window, error) {
	f := l.f
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	if err := f.lockAdvancedOpen(); err != nil {
		return nil, err
	}
	w := view.Begin(f.core, host, after)
	if w == nil {
		f.mu.Unlock()
		return nil, nil
	}
	f.walkHostAndUnlock(w.Walk, w.MakeRoom)
	if err := w.Read(&f.urlRanges, l.load); err != nil {
		return nil, err
	}
	w.Cut()
	return w, l.drop(w)
}

// drop removes from a window what does not wait any more.
func (l *urlListing) drop(w *view.Window) error {
	for more := len(w.Items) > 0; more; {
		if err := l.f.lockOpen(); err != nil {
			return err
		}
		more = w.DropSome()
		l.f.mu.Unlock()
	}
	return nil
}

// load reads records of a part. One that is damaged is reported, once.
func (l *urlListing) load(p *view.Part, want uint32) ([]fifo.Loaded, error) {
	if l.bad[view.Key(p.Part)] {
		return nil, nil
	}
	records, err := l.f.readPart(l.ctx, p.Part, want)
	if !isCorrupt(err) {
		return records, err
	}
	l.bad[view.Key(p.Part)] = true
	if !l.yield(WaitingURL{}, err) {
		return nil, errStop
	}
	return nil, nil
}

// readPart reads records of a part that the caller noted. It returns none if the last of its block has
// been finished since.
func (s *shard) readPart(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, err := s.readFor(ctx, p, want)
	if err == nil {
		return records, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case !s.core.Blocks.Has(p.Block):
		return nil, nil
	}
	return nil, err
}

// described is what a body says of a URL of a host and crawl, with the number of its next attempt.
func described(body []byte, host string, crawl uint32) (Entry, int, History) {
	b := record.Must(body)
	e := entryOf(&b, host)
	e.Crawl = crawl
	return e, b.Fails + 1, historyOf(&b.History)
}

// walkAtOnce is how many parts and records are visited under one lock.
const walkAtOnce = view.AtOnce

// walkHostAndUnlock walks a host in steps of walkAtOnce, and calls rest without the lock between them.
func (s *shard) walkHostAndUnlock(w *fifo.Walk, rest func()) {
	for s.core.Fifo.Step(w, walkAtOnce) && !s.closed {
		s.mu.Unlock()
		rest()
		s.mu.Lock()
	}
	s.core.EndWalk(w)
	s.mu.Unlock()
}

const scannedAtOnce = 256 // URLs that Scan hands to its caller at once

// StoredURL is a URL in the frontier, as Scan yields it.
type StoredURL struct {
	Entry    Entry // NotBefore is the time for which it waits
	Host     string
	Priority int // as admitted; rules do not change it
	Attempt  int // that its next hand-out will be, from 1
	History  History
}

// Scan yields every URL of a scope once, in no particular order: waiting, leased and
// scheduled ones, and those that are finished if Options.Keep kept them. Others that are
// done for good have left the frontier.
//
// With a Spill it shows what was committed at one moment, while other calls go on, and reads the store
// from end to end: a URL outside of the scope takes about half as long as one inside. Without one the
// lock is held while everything of the scope is copied to memory, about a second for ten million URLs.
// It may end with an error: a bad scope, ctx's, ErrClosed, or the Spill's.
func (f *Frontier) Scan(ctx context.Context, s Scope) iter.Seq2[StoredURL, error] {
	return func(yield func(StoredURL, error) bool) {
		if !s.ofCrawl {
			var err error
			if s, err = f.spelled(s); err != nil {
				yield(StoredURL{}, fmt.Errorf("frontier: scan: %w", err))
				return
			}
		}
		ctx, stop := context.WithCancel(ctx)
		some, ended := make(chan []StoredURL), make(chan error, 1)
		defer func() { stop(); <-ended }()
		go func() {
			defer close(ended)
			_, err := patience.InTime(ctx, f.abandoned, func() (none struct{}, err error) { return none, f.scan(ctx, s, some) })
			ended <- err
		}()
		for {
			select {
			case us := <-some:
				for _, u := range us {
					if !yield(u, nil) {
						return
					}
				}
			case err := <-ended:
				if err != nil {
					yield(StoredURL{}, err)
				}
				return
			}
		}
	}
}

// scan sends all URLs of a scope, some at a time.
func (f *Frontier) scan(ctx context.Context, s Scope, to chan<- []StoredURL) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	x := &exporter{Writer: dump.NewWriter("", 0), f: f, ctx: ctx, scope: s}
	x.Source, x.NoMarks = x, true
	var some []StoredURL
	send := func() error {
		if err := ctx.Err(); err != nil { // select picks at random when both are ready
			return err
		}
		select {
		case to <- some:
			some = nil
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	take := func(q *storage.Queue, due int64, body []byte) error {
		if _, err := record.Decode(body); err != nil {
			return &storage.CorruptError{Err: err}
		}
		u := StoredURL{Host: q.Host, Priority: int(q.Priority)}
		u.Entry, u.Attempt, u.History = described(body, q.Host, q.Crawl)
		if u.Entry.Finished = due == instant.KeptMillis; !u.Entry.Finished {
			u.Entry.NotBefore = instant.FromMillis(due)
		}
		if some = append(some, u); len(some) < scannedAtOnce {
			return nil
		}
		return send()
	}
	if f.opts.Spill == nil {
		err = x.scanMemory(take)
	} else {
		err = x.scanStore(take)
	}
	switch {
	case err == nil:
		return send()
	case f.isClosed():
		return ErrClosed
	}
	return err
}

func (x *exporter) scanStore(take func(q *storage.Queue, due int64, body []byte) error) error {
	s, err := x.f.opts.Spill.Snapshot()
	if err != nil {
		return err
	}
	defer s.Release()
	return dump.EachURL(s, x, x.AddMark, func(q *storage.Queue, due int64, body []byte) error {
		return take(&storage.Queue{Host: strings.Clone(q.Host), Crawl: q.Crawl, Priority: q.Priority}, due, body)
	})
}

// scanMemory copies all URLs under the lock, and takes them then.
func (x *exporter) scanMemory(take func(q *storage.Queue, due int64, body []byte) error) error {
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
	f := x.f
	f.mu.Lock()
	closed := f.closed
	if !closed {
		_ = x.copyURLsLocked() // it cannot fail
	}
	f.mu.Unlock()
	if closed {
		return ErrClosed
	}
	from := 0
	for _, u := range urls {
		if err := take(&queues[u.queue], u.due, bodies[from:u.end]); err != nil {
			return err
		}
		from = u.end
	}
	return nil
}
