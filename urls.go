// This file lists the URLs that wait, host by host in domain order, and within a
// host in the order of their admission.
//
// That order never changes, whatever moves between memory and disk, queues and
// priorities. So a place in it, the cursor, is a host and a sequence number, and
// means the same later and after a restart. Records in memory are found by a walk;
// those on disk are read outside the lock, and their range of numbers is
// remembered, so that the next page of a large host reads only what it needs.

package frontier

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/seed-7440039f/frontier/internal/arena"
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
func (u WaitingURL) Cursor() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.AppendUvarint(nil, u.seq), u.Host...))
}

func parseCursor(s string) (host string, seq uint64, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	seq, n := binary.Uvarint(b)
	if err != nil || n <= 0 || checkHost(string(b[max(0, n):])) != nil {
		return "", 0, fmt.Errorf("frontier: URLs: malformed cursor %q", shortened(s))
	}
	return string(b[n:]), seq, nil
}

// URLs yields the waiting URLs of a scope: hosts in domain order, their URLs in the
// order in which they were admitted. It begins behind the URL of which after is the
// Cursor, which need not wait any more; empty: at the first. A URL that waits from
// the first call to the end of the listing is yielded exactly once, in however many
// calls, across restarts too; one that comes, goes, or is moved by a Force
// meanwhile, at most once as each record.
//
// No lock is held while the caller looks at a URL. URLs on disk are read as the
// listing gets there; the first call reads all that a host has there, later ones
// only what they list. A *CorruptError tells of damaged ones, and the listing goes
// on; after any other error (a bad scope, a malformed cursor, ctx's, ErrClosed, the Spill's) it
// ends.
func (f *Frontier) URLs(ctx context.Context, s Scope, after string) iter.Seq2[WaitingURL, error] {
	return func(yield func(WaitingURL, error) bool) {
		l := urlListing{f: f, ctx: ctx, yield: yield}
		s, err := f.spelled(s)
		if err != nil {
			yield(WaitingURL{}, fmt.Errorf("frontier: URLs: %w", err))
			return
		}
		key := ""
		if after != "" {
			host, seq, err := parseCursor(after)
			if err != nil {
				yield(WaitingURL{}, err)
				return
			}
			if s.contains(host) && !l.host(host, seq) {
				return
			}
			key = reversed(host)
		}
		if s.domain || s == All() {
			f.orderHosts()
		}
		var ids []uint32
		for more := true; more; {
			f.lookLocked()
			if f.closed {
				f.mu.Unlock()
				yield(WaitingURL{}, ErrClosed)
				return
			}
			c := f.core
			ids = c.hostsIn(ids[:0], s, key, infosAtOnce)
			more = len(ids) == infosAtOnce
			var names []string
			for _, id := range ids {
				name := string(c.name(c.hosts.at(id)))
				if key = reversed(name); c.hosts.at(id).waiting > 0 {
					names = append(names, name)
				}
			}
			f.mu.Unlock()
			for _, name := range names {
				if !l.host(name, 0) {
					return
				}
			}
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

// host yields the URLs of one host behind a number. It reports false when the
// listing is over.
func (l *urlListing) host(name string, after uint64) bool {
	for {
		w := urlWindow{listing: l, host: name, after: after}
		switch err := w.fill(); {
		case err == errStop:
			return false
		case err != nil:
			l.yield(WaitingURL{}, err)
			return false
		case len(w.items) == 0 && !w.more:
			return true
		}
		for i := range w.items {
			x := &w.items[i]
			after = x.seq
			b, err := decodeBody(x.body)
			if err != nil {
				panic("frontier: a record in memory is malformed") // we encoded it, or checked it
			}
			u := WaitingURL{
				Entry: b.entry(), Host: name, Priority: x.priority, Attempt: b.fails + 1, History: b.history, seq: x.seq,
			}
			u.Entry.Crawl = x.crawl
			if !l.yield(u, nil) {
				return false
			}
		}
		if !w.more {
			return true
		}
		after = max(after, w.upTo)
	}
}

// damaged tells of a part that cannot be read, once.
func (l *urlListing) damaged(p Part, err error) (more bool) {
	if l.bad == nil {
		l.bad = map[uint64]bool{}
	}
	l.bad[p.key()] = true
	return l.yield(WaitingURL{}, err)
}

// key names a part among all that ever were.
func (p Part) key() uint64 { return uint64(p.Block)<<16 | uint64(p.First) }

var errStop = errors.New("the caller has seen enough")

// listed is a waiting record in a window.
type listed struct {
	seq      uint64
	body     []byte
	crawl    uint32
	priority int
	block    uint32 // 0: it was in memory
	pos      int
}

// visit takes a record in memory into the window.
func (w *urlWindow) visit(q *queue, ref arena.Ref) bool {
	c := w.listing.f.core
	if r := c.record(ref); w.accepts(r.seq()) {
		w.add(listed{seq: r.seq(), body: append([]byte(nil), r.body()...), crawl: c.crawlNumber(q), priority: c.priorityOf(q)})
	}
	return true
}

// visitPart notes a part on disk.
func (w *urlWindow) visitPart(q *queue, id uint32) {
	c := w.listing.f.core
	p := c.parts.at(id)
	want := c.unread(p)
	if want == 0 {
		return
	}
	t := c.detail(p)
	w.parts = append(w.parts, listedPart{
		Part: Part{Block: p.block, First: t.first, Count: t.count}, want: want,
		crawl: c.crawlNumber(q), priority: c.priorityOf(q),
	})
}
