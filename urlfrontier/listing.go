// This file lists URLs: from a temporary file with all of them, of one moment, that connections share
// while nothing is written, and that a connection keeps for a while to read it in pages.

package urlfrontier

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// listing are all URLs of one moment.
type listing struct {
	file    *os.File
	at      []listed // in the order of queues
	changes int64    // that were made when it began
	made    time.Time
	users   int // guarded by listings.mu
}

// listed is where a URL is in the file.
type listed struct {
	name   uint32 // of queue
	crawl  uint32
	offset int64
}

// listings are those that are in use.
type listings struct {
	making sync.Mutex

	mu      sync.Mutex
	current *listing                // guarded by mu
	kept    map[string]*keptListing // guarded by mu; by connection
}

type keptListing struct {
	*listing
	used time.Time
}

// connection names the connection of a call.
func connection(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// forget makes the next listing of a connection a new one.
func (x *listings) forget(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k := x.kept[connection(ctx)]; k != nil {
		delete(x.kept, connection(ctx))
		_ = x.leaveLocked(k.listing)
	}
}

func (x *listings) leaveLocked(l *listing) error {
	if l.users--; l.users > 0 {
		return nil
	}
	return errors.Join(l.file.Close(), os.Remove(l.file.Name()))
}

func (x *listings) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for _, k := range x.kept {
		errs = append(errs, x.leaveLocked(k.listing))
	}
	x.kept = nil
	if x.current != nil {
		errs = append(errs, x.leaveLocked(x.current))
		x.current = nil
	}
	return errors.Join(errs...)
}

// listing returns the listing that a connection reads, to be given back with leave.
func (s *Server) listing(ctx context.Context) (l *listing, leave func(), err error) {
	x := &s.listings
	x.making.Lock()
	defer x.making.Unlock()
	who, now := connection(ctx), time.Now()
	x.mu.Lock()
	for other, k := range x.kept {
		if now.Sub(k.used) > s.o.ListingAge {
			delete(x.kept, other)
			err = errors.Join(err, x.leaveLocked(k.listing))
		}
	}
	k := x.kept[who]
	if k == nil && x.current != nil && x.current.changes == s.changes.Load() && now.Sub(x.current.made) <= s.o.ListingAge {
		k = &keptListing{listing: x.current}
		k.users++
	}
	x.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if k == nil {
		if l, err = s.newListing(ctx); err != nil {
			return nil, nil, err
		}
		k = &keptListing{listing: l}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if l != nil { // a new one
		l.users = 2
		if x.current != nil {
			err = x.leaveLocked(x.current)
		}
		x.current = l
	}
	if x.kept == nil {
		x.kept = map[string]*keptListing{}
	}
	k.used = now
	x.kept[who] = k
	k.users++
	return k.listing, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		_ = x.leaveLocked(k.listing)
	}, err
}

// newListing reads all URLs. Those of a queue are in the order in which the frontier yields them.
func (s *Server) newListing(ctx context.Context) (l *listing, err error) {
	l = &listing{changes: s.changes.Load(), made: time.Now()}
	if l.file, err = os.CreateTemp(s.o.TempDir, "frontier-listing-*"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("urlfrontier: listing: %w", errors.Join(err, l.file.Close(), os.Remove(l.file.Name())))
		}
	}()
	w := bufio.NewWriterSize(l.file, 1<<16)
	names := map[queueName]uint32{}
	var b []byte
	var offset int64
	for u, err := range s.svc.Frontier().Scan(ctx) {
		if err != nil {
			return nil, err
		}
		if isPurged(&u.Entry) {
			continue
		}
		q := queueName{u.Entry.Crawl, u.Host}
		if _, ok := names[q]; !ok {
			names[q] = uint32(len(names))
		}
		item := itemOf(u.Entry, u.Host, s.svc.CrawlName(u.Entry.Crawl))
		b = binary.AppendUvarint(b[:0], uint64(proto.Size(item)))
		if b, err = (proto.MarshalOptions{}).MarshalAppend(b, item); err != nil {
			return nil, err
		}
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
		l.at = append(l.at, listed{names[q], q.crawl, offset})
		offset += int64(len(b))
	}
	slices.SortStableFunc(l.at, func(a, b listed) int { return cmp.Or(cmp.Compare(a.crawl, b.crawl), cmp.Compare(a.name, b.name)) })
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
