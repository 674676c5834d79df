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
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/hostkey"
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
func (u WaitingURL) Cursor() string {
	b := append(binary.AppendUvarint(nil, u.seq), u.Host...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func parseCursor(s string) (host string, seq uint64, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	end := max(0, len(b)-4)
	seq, n := binary.Uvarint(b[:end])
	if err != nil || n <= 0 || binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) || hostkey.Check(string(b[n:end])) != nil {
		return "", 0, fmt.Errorf("frontier: URLs: malformed cursor %q; want one from an earlier listing", shortened(s))
	}
	return string(b[n:end]), seq, nil
}

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
		l := urlListing{f: f, ctx: ctx, yield: yield}
		s, err := f.spelled(s)
		if err != nil {
			yield(WaitingURL{}, fmt.Errorf("frontier: URLs: %w", err))
			return
		}
		behind := ""
		if after != "" {
			host, seq, err := parseCursor(after)
			if err != nil {
				yield(WaitingURL{}, err)
				return
			}
			if s.stored().Contains(host) && !l.host(host, seq) {
				return
			}
			behind = host
		}
		type listed struct {
			host  string
			waits bool
		}
		look := func(id uint32) listed { return listed{string(f.core.NameOf(id)), f.core.Hosts.At(id).Waiting > 0} }
		for x := range eachHost(f, s, behind, mercator.InfosAtOnce, look, func(x listed) string { return x.host }) {
			if x.waits && !l.host(x.host, 0) {
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
		w := urlWindow{listing: l, host: name}
		switch err := w.fill(after); {
		case err == errStop:
			return false
		case err != nil:
			l.yield(WaitingURL{}, err)
			return false
		case len(w.Items) == 0 && !w.More:
			return true
		}
		for i := range w.Items {
			x := &w.Items[i]
			after = x.Seq
			b := record.Must(x.Body)
			u := WaitingURL{
				Entry: entryOf(&b, name), Host: name, Priority: x.Priority, Attempt: b.Fails + 1, History: historyOf(&b.History), seq: x.Seq,
			}
			u.Entry.Crawl = x.Crawl
			if !l.yield(u, nil) {
				return false
			}
		}
		if !w.More {
			return true
		}
		after = max(after, w.UpTo())
	}
}

// damaged reports a part that cannot be read, once.
func (l *urlListing) damaged(p storage.Part, err error) (more bool) {
	if l.bad == nil {
		l.bad = map[uint64]bool{}
	}
	l.bad[view.Key(p)] = true
	return l.yield(WaitingURL{}, err)
}

var errStop = errors.New("the caller has seen enough")

// urlWindow is the next URLs of a host behind a number.
type urlWindow struct {
	view.Window
	listing *urlListing
	host    string
}

// fill collects the window of what comes behind a number.
func (w *urlWindow) fill(after uint64) error {
	f := w.listing.f
	if err := w.listing.ctx.Err(); err != nil {
		return err
	}
	f.lockAdvanced()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	id := f.core.Lookup(f.core.HashOf(w.host), w.host)
	if id == 0 {
		f.mu.Unlock()
		return nil
	}
	w.Window = view.Begin(after, int(f.core.Hosts.At(id).Waiting))
	walk := f.core.BeginWalk(id, nil)
	walk.Part, walk.Record = w.visitPart, w.visit
	f.walkHostAndUnlock(walk, w.MakeRoom)
	if err := w.Read(&f.urlRanges, w.load); err != nil {
		return err
	}
	w.Cut()
	return w.drop()
}

// visit takes a record in memory into the window.
func (w *urlWindow) visit(queue uint32, ref arena.Ref) bool {
	c := w.listing.f.core
	q := c.Queues.At(queue)
	if r := c.Records.At(ref); w.Accepts(r.Seq()) {
		w.Items = append(w.Items, view.Item{Seq: r.Seq(), Body: append([]byte(nil), r.Body()...), Crawl: c.CrawlNumber(q), Priority: c.PriorityOf(q)})
	}
	return true
}

// visitPart notes a part on disk.
func (w *urlWindow) visitPart(queue, id uint32) {
	if p := w.listing.f.core.UnreadPart(queue, id); p.Want != 0 {
		w.Parts = append(w.Parts, p)
	}
}

// load reads records of a part, if it is not damaged.
func (w *urlWindow) load(p *view.Part, want uint32) ([]fifo.Loaded, error) {
	l := w.listing
	if l.bad[view.Key(p.Part)] {
		return nil, nil
	}
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	records, err := l.f.readFor(l.ctx, p.Part, want)
	if err != nil {
		return nil, w.unreadable(p, err)
	}
	return records, nil
}

// unreadable judges an error: if the part's last record is finished there is nothing to read.
func (w *urlWindow) unreadable(p *view.Part, err error) error {
	f := w.listing.f
	f.mu.Lock()
	closed, gone := f.closed, !f.core.Blocks.Has(p.Block)
	f.mu.Unlock()
	var corrupt *CorruptError
	switch {
	case closed:
		return ErrClosed
	case gone:
		return nil
	case !errors.As(err, &corrupt):
		return err
	case !w.listing.damaged(p.Part, err):
		return errStop
	}
	return nil
}

// drop removes what is leased, finished or deleted by now.
func (w *urlWindow) drop() error {
	f := w.listing.f
	kept := w.Items[:0]
	for chunk := range slices.Chunk(w.Items, walkAtOnce) {
		if err := f.lockOpen(); err != nil {
			return err
		}
		c := f.core
		var out []uint64
		if id := c.Lookup(f.core.HashOf(w.host), w.host); id != 0 {
			for l := range c.LeasesOf(id) {
				if ref := c.Leases.At(l).Record; ref != 0 {
					out = append(out, c.Records.At(ref).Seq())
				}
			}
		}
		for _, x := range chunk {
			gone := x.Block != 0 && c.Blocks.IsDead(x.Block, x.Pos) || c.Deleted(w.host, x.Crawl, x.Seq)
			if !gone && !slices.Contains(out, x.Seq) {
				kept = append(kept, x)
			}
		}
		f.mu.Unlock()
	}
	w.Items = kept
	return nil
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
		b, err := record.Decode(body)
		if err != nil {
			return &storage.CorruptError{Err: err}
		}
		u := StoredURL{
			Entry: entryOf(&b, q.Host), Host: q.Host, Priority: int(q.Priority), Attempt: b.Fails + 1, History: historyOf(&b.History),
		}
		u.Entry.Crawl = q.Crawl
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
