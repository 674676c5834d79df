// This file lists all URLs, or those of a queue, from a snapshot in a temporary file. Connections share a
// snapshot of all URLs until something is written. Each keeps its own for a while to read it in pages.

package urlfrontier

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/tempfile"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// mostListings is the most snapshots that connections keep. Each uses a file and 16 bytes of memory per
// URL.
const mostListings = 4

// mostQueues is the most snapshots of single queues that connections keep.
const mostQueues = 64

// mostReads is how many calls at once may read listings or walk over all queues.
const mostReads = 4

// readWait is how long a further call waits for its turn.
const readWait = 10 * time.Second

// listing is a snapshot of all URLs, or of a queue's.
type listing struct {
	only  queueName // zero: all
	file  *tempfile.File
	at    []listed // ordered by queue
	of    version
	made  time.Time
	users int // guarded by listings.mu
}

// listed locates a URL in the file.
type listed struct {
	crawl  uint32
	hash   uint32 // of its queue's key
	offset int64
}

// hashSeed seeds listed.hash.
var hashSeed = maphash.MakeSeed()

func hashOf(key string) uint32 { return uint32(maphash.String(hashSeed, key)) }

// compare orders URLs by queue.
func (a listed) compare(b listed) int {
	return cmp.Or(cmp.Compare(a.crawl, b.crawl), cmp.Compare(a.hash, b.hash))
}

// within returns the URLs of a crawl; with a key, those whose queue has the key's hash.
func (l *listing) within(q queueName) []listed {
	order := listed.compare
	if q.key == "" {
		order = func(a, b listed) int { return cmp.Compare(a.crawl, b.crawl) }
	}
	want := listed{crawl: q.crawl, hash: hashOf(q.key)}
	from, _ := slices.BinarySearchFunc(l.at, want, order)
	n, _ := slices.BinarySearchFunc(l.at[from:], want, func(a, b listed) int {
		if order(a, b) == 0 {
			return -1
		}
		return 1
	})
	return l.at[from : from+n]
}

// version changes whenever URLs change.
type version struct {
	added, deleted, expired, known, finished, scheduled int64
	done                                                [8]int64
}

func (s *Server) version() version {
	x := s.svc.Frontier().Stats()
	return version{x.Added, x.Deleted, x.Expired, x.Known, x.Finished, x.Scheduled, x.Done}
}

// listings holds the snapshots in use.
type listings struct {
	age    time.Duration
	log    *slog.Logger
	making chan struct{} // full while a snapshot of all URLs is made

	mu      sync.Mutex
	current *listing                 // guarded by mu
	kept    map[net.Addr]keptListing // guarded by mu; by connection: each address is a distinct pointer
	expiry  *time.Timer              // guarded by mu; nil: none is kept
	closed  bool                     // guarded by mu
}

type keptListing struct {
	*listing
	used time.Time
}

// leaveLocked ends one use of a listing. After the last it removes the file.
func (x *listings) leaveLocked(l *listing) {
	if l.users--; l.users > 0 {
		return
	}
	if err := l.file.Close(); err != nil {
		x.log.Error("urlfrontier: the file of a listing stays", "error", err)
	}
}

// setLocked makes a listing, or nil, the current one.
func (x *listings) setLocked(l *listing) {
	if x.current != nil {
		x.leaveLocked(x.current)
	}
	if x.current = l; l != nil {
		l.users++
	}
}

// keepLocked keeps a listing, or nil, for a connection.
func (x *listings) keepLocked(who net.Addr, l *listing) {
	old := x.kept[who].listing
	delete(x.kept, who)
	if l != nil {
		l.users++
		x.kept[who] = keptListing{l, time.Now()}
	}
	if old != nil {
		x.leaveLocked(old)
	}
	if l == nil {
		return
	}
	different, most, oldest := map[*listing]bool{}, mostListings, net.Addr(nil)
	if l.only.key != "" {
		most = mostQueues
	}
	for other, k := range x.kept {
		if (k.only.key == "") != (l.only.key == "") {
			continue
		}
		if different[k.listing] = true; oldest == nil || k.used.Before(x.kept[oldest].used) {
			oldest = other
		}
	}
	if len(different) > most { // a client between pages then continues with another snapshot
		x.leaveLocked(x.kept[oldest].listing)
		delete(x.kept, oldest)
	}
}

// expire drops listings that were not used for a while.
func (x *listings) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for who, k := range x.kept {
		if time.Since(k.used) >= x.age {
			x.keepLocked(who, nil)
		}
	}
	if x.current != nil && time.Since(x.current.made) >= x.age {
		x.setLocked(nil)
	}
	if x.expiry = nil; x.current != nil || len(x.kept) > 0 {
		x.expiry = time.AfterFunc(x.age, x.expire)
	}
}

func (x *listings) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	for who := range x.kept {
		x.keepLocked(who, nil)
	}
	x.setLocked(nil)
	if x.expiry != nil {
		x.expiry.Stop()
	}
}

// use returns the kept or current snapshot that serves a connection, or nil. With start it is up to date.
func (x *listings) use(who net.Addr, only queueName, start bool, now version) *listing {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.kept[who].listing
	if l != nil && l.only.key != "" && l.only != only {
		l = nil
	}
	if l == nil || start && l.of != now {
		if l = x.current; l != nil && l.of != now {
			l = nil
		}
	}
	if l != nil {
		l.users++
	}
	return l
}

// listing returns the snapshot that a connection reads, and leave to release it. It takes a kept or
// current one, or makes one, of one queue or of all. With start it replaces one that is out of date. It waits
// for another call only to share a snapshot of all.
func (s *Server) listing(ctx context.Context, only queueName, start bool) (l *listing, leave func(), err error) {
	x := &s.listings
	var who net.Addr
	if p, ok := peer.FromContext(ctx); ok {
		who = p.Addr
	}
	now := s.version()
	l = x.use(who, only, start, now)
	all := s.svc.Inspector().Scan(ctx, scope.All())
	switch {
	case l != nil:
	case only.key != "":
		all = s.svc.QueueURLs(ctx, only.crawl, only.key)
	default:
		select {
		case x.making <- struct{}{}:
			defer func() { <-x.making }()
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		now = s.version()
		l = x.use(who, only, start, now)
	}
	fresh := l == nil
	if fresh {
		if l, err = s.newListing(now, only, all); err != nil {
			return nil, nil, err
		}
		l.users++
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		x.leaveLocked(l)
		return nil, nil, frontier.ErrClosed
	}
	if fresh && l.only.key == "" {
		x.setLocked(l)
	}
	x.keepLocked(who, l)
	if x.expiry == nil {
		x.expiry = time.AfterFunc(x.age, x.expire)
	}
	return l, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.leaveLocked(l)
	}, nil
}

// newListing makes a snapshot of all URLs, or of a queue's in the frontier's order.
func (s *Server) newListing(of version, only queueName, all iter.Seq2[inspect.StoredURL, error]) (l *listing, err error) {
	file, err := tempfile.Create(s.o.TempDir, "frontier-listing-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("urlfrontier: listing: %w", errors.Join(err, file.Close()))
		}
	}()
	l = &listing{only: only, file: file, of: of, made: time.Now()}
	w := bufio.NewWriterSize(file, 1<<16)
	var b []byte
	var offset int64
	for u, err := range all {
		if err != nil {
			return nil, err
		}
		if isPurged(&u.Entry) {
			continue
		}
		item := itemOf(u.Entry, u.Host, s.svc.CrawlName(u.Entry.Crawl))
		b = binary.AppendUvarint(b[:0], uint64(proto.Size(item)))
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, item); err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
		l.at = append(l.at, listed{u.Entry.Crawl, hashOf(u.Host), offset})
		offset += int64(len(b))
	}
	slices.SortStableFunc(l.at, listed.compare)
	return l, w.Flush()
}

// read reads one URL.
func (l *listing) read(at listed, item *pb.URLItem) error {
	r := bufio.NewReader(io.NewSectionReader(l.file, at.offset, 1<<31))
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return proto.Unmarshal(b, item)
}
