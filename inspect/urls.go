// This file lists URLs: waiting ones, host by host in domain order and within a host in
// the order of their admission, and all URLs, in no particular order.
//
// The order of admission never changes, whatever moves between memory and disk, queues and priorities.
// So a place in it, the cursor, is a host and a sequence number, and stays valid, even after a restart.
// Records in memory are found by a walk; those on disk are read outside the lock, and their range of
// numbers is remembered, so that the next page of a large host reads only what it needs.

package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/gather"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// WaitingURL is a URL that waits to be handed out.
type WaitingURL struct {
	Entry    frontier.Entry
	Host     string
	Priority int // with which it is served
	Attempt  int // that its next hand-out will be, from 1
	History  frontier.History
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
func (v *Inspector) URLs(ctx context.Context, s scope.Scope, after string) iter.Seq2[WaitingURL, error] {
	return func(yield func(WaitingURL, error) bool) {
		l := listing{f: v.f, ctx: ctx, yield: yield, bad: map[uint64]bool{}}
		of, err := v.f.Spelled(s)
		if err != nil {
			yield(WaitingURL{}, fmt.Errorf("frontier: URLs: %w", err))
			return
		}
		behind := ""
		if after != "" {
			host, seq, ok := view.ParseCursor(after)
			if !ok {
				yield(WaitingURL{}, fmt.Errorf("frontier: URLs: malformed cursor %.200q; want one from an earlier listing", after))
				return
			}
			if of.Contains(host) && !l.host(host, seq) {
				return
			}
			behind = host
		}
		look := func(id uint32) (host string) {
			if v.f.Core().WaitingOf(id) > 0 {
				host = string(v.f.Core().NameOf(id))
			}
			return host
		}
		for host := range eachHost(v, of, behind, mercator.InfosAtOnce, look) {
			if host != "" && !l.host(host, 0) {
				return
			}
		}
		v.f.Lock()
		closed := v.f.Closed()
		v.f.Unlock()
		if closed {
			yield(WaitingURL{}, frontier.ErrClosed)
		}
	}
}

// listing is a listing under way.
type listing struct {
	f     source
	ctx   context.Context
	yield func(WaitingURL, error) bool
	bad   map[uint64]bool // parts that are damaged
}

// host yields the URLs of one host behind a number. It reports false when the listing is over.
func (l *listing) host(name string, after uint64) bool {
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
			if u.Entry, u.Attempt, u.History = l.f.Described(x.Body, name, x.Crawl); !l.yield(u, nil) {
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
func (l *listing) fill(host string, after uint64) (*view.Window, error) {
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.f.LockAdvancedOpen(); err != nil {
		return nil, err
	}
	w := view.Begin(l.f.Core(), host, after)
	if w == nil {
		l.f.Unlock()
		return nil, nil
	}
	l.f.WalkAndUnlock(w.Walk, w.MakeRoom)
	if err := w.Read(l.f.Ranges(), l.load); err != nil {
		return nil, err
	}
	w.Cut()
	return w, l.drop(w)
}

// drop removes from a window what does not wait any more.
func (l *listing) drop(w *view.Window) error {
	for more := len(w.Items) > 0; more; {
		if err := l.f.LockOpen(); err != nil {
			return err
		}
		more = w.DropSome()
		l.f.Unlock()
	}
	return nil
}

// load reads records of a part. One that is damaged is reported, once.
func (l *listing) load(p *view.Part, want uint32) ([]fifo.Loaded, error) {
	if l.bad[view.Key(p.Part)] {
		return nil, nil
	}
	records, err := l.f.ReadPart(l.ctx, p.Part, want)
	if !isCorrupt(err) {
		return records, err
	}
	l.bad[view.Key(p.Part)] = true
	if !l.yield(WaitingURL{}, err) {
		return nil, errStop
	}
	return nil, nil
}

const scannedAtOnce = 256 // URLs that Scan hands to its caller at once

// StoredURL is a URL in the frontier, as Scan yields it.
type StoredURL struct {
	Entry    frontier.Entry // NotBefore is the time for which it waits
	Host     string
	Priority int // as admitted; rules do not change it
	Attempt  int // that its next hand-out will be, from 1
	History  frontier.History
}

// Scan yields every URL of a scope once, in no particular order: waiting, leased and
// scheduled ones, and those that are finished if Options.Keep kept them. Others that are
// done for good have left the frontier.
//
// With a Spill it shows what was committed at one moment, while other calls go on, and reads the store
// from end to end: a URL outside of the scope takes about half as long as one inside. Without one the
// lock is held while everything of the scope is copied to memory, about a second for ten million URLs.
// It may end with an error: a bad scope, ctx's, ErrClosed, or the Spill's.
func (v *Inspector) Scan(ctx context.Context, s scope.Scope) iter.Seq2[StoredURL, error] {
	return func(yield func(StoredURL, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		some, ended := make(chan []StoredURL), make(chan error, 1)
		defer func() { stop(); <-ended }()
		go func() {
			defer close(ended)
			ended <- v.scan(ctx, s, some)
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
func (v *Inspector) scan(ctx context.Context, s scope.Scope, to chan<- []StoredURL) error {
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
	if _, ok := s.Crawl(); !ok {
		of, err := v.f.Spelled(s)
		if err != nil {
			return fmt.Errorf("frontier: scan: %w", err)
		}
		s = scope.Of(of)
	}
	take := func(q *storage.Queue, due int64, body []byte) error {
		if _, err := record.Decode(body); err != nil {
			return &frontier.CorruptError{Err: err}
		}
		u := StoredURL{Host: q.Host, Priority: int(q.Priority)}
		u.Entry, u.Attempt, u.History = v.f.Described(body, q.Host, q.Crawl)
		if u.Entry.Finished = due == instant.KeptMillis; !u.Entry.Finished {
			u.Entry.NotBefore = instant.FromMillis(due)
		}
		if some = append(some, u); len(some) < scannedAtOnce {
			return nil
		}
		return send()
	}
	_, err := patience.InTime(ctx, v.f.Abandoned(), func() (none struct{}, err error) { return none, gather.Scan(ctx, v.f.Gather(), s, take) })
	if err != nil {
		return err
	}
	return send()
}
