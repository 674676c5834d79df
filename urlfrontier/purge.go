// This file implements PurgeURLs. The frontier cannot delete a single URL. So a purged URL is a completed
// one with a mark in its metadata, and no call of the API shows it. All purged URLs are also in a set in
// memory, which New reads if anything was ever purged.

package urlfrontier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// purgedKey is a key whose value exists once a URL was purged.
const purgedKey = "urlfrontier/purged"

// purgedMeta is the Meta of a purged URL.
var purgedMeta = (&serve.Envelope{Meta: map[string][]string{"urlfrontier.purged": {"1"}}}).Append(nil)

// isPurged reports whether a URL is purged.
func isPurged(e *frontier.Entry) bool { return e.Finished && bytes.Equal(e.Meta, purgedMeta) }

// queueName names a queue.
type queueName struct {
	crawl uint32
	key   string
}

// mark is a 16-byte hash of a URL.
type mark struct{ a, b uint64 }

// purged is the set of purged URLs, by queue. It is safe for concurrent use.
type purged struct {
	seedA, seedB maphash.Seed
	running      chan struct{} // holds a value while a purge runs

	mu        sync.Mutex
	by        map[queueName]map[mark]struct{} // guarded by mu
	deletions int                             // guarded by mu; calls of dropAll
}

func openPurged(ctx context.Context, f *frontier.Frontier) (*purged, error) {
	x := &purged{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed(), running: make(chan struct{}, 1), by: map[queueName]map[mark]struct{}{}}
	_, any, err := f.Value(purgedKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: purged URLs: %w", err)
	}
	if !any {
		return x, nil
	}
	for u, err := range inspect.New(f).Scan(ctx, scope.All()) {
		if err != nil {
			return nil, fmt.Errorf("urlfrontier: purged URLs: %w", err)
		}
		if isPurged(&u.Entry) {
			x.add(queueName{u.Entry.Crawl, u.Host}, u.Entry.URL)
		}
	}
	return x, nil
}

func (x *purged) markOf(url string) mark {
	return mark{maphash.String(x.seedA, url), maphash.String(x.seedB, url)}
}

func (x *purged) add(q queueName, url string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.by[q] == nil {
		x.by[q] = map[mark]struct{}{}
	}
	x.by[q][x.markOf(url)] = struct{}{}
}

// has reports whether a URL of a queue is purged.
func (x *purged) has(q queueName, url string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.by[q]) == 0 {
		return false
	}
	_, ok := x.by[q][x.markOf(url)]
	return ok
}

// drop removes a URL that was added again.
func (x *purged) drop(q queueName, url string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if delete(x.by[q], x.markOf(url)); len(x.by[q]) == 0 {
		delete(x.by, q)
	}
}

// dropAll removes a queue, or all queues of a crawl.
func (x *purged) dropAll(crawl uint32, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deletions++
	if key != "" {
		delete(x.by, queueName{crawl, key})
		return
	}
	maps.DeleteFunc(x.by, func(q queueName, _ map[mark]struct{}) bool { return q.crawl == crawl })
}

// deleted returns the number of calls of dropAll.
func (x *purged) deleted() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.deletions
}

// without subtracts purged URLs from a queue's counts.
func (x *purged) without(q queueName, n inspect.Counts) inspect.Counts {
	x.mu.Lock()
	defer x.mu.Unlock()
	n.Finished = max(0, n.Finished-int64(len(x.by[q])))
	return n
}

// keys returns the keys of a crawl's queues that have purged URLs.
func (x *purged) keys(crawl uint32) (keys []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for q := range x.by {
		if q.crawl == crawl {
			keys = append(keys, q.key)
		}
	}
	return keys
}

// withoutAll subtracts purged URLs from a crawl's counts.
func (x *purged) withoutAll(crawl uint32, n inspect.Counts) inspect.Counts {
	x.mu.Lock()
	defer x.mu.Unlock()
	for q, urls := range x.by {
		if q.crawl == crawl {
			n.Finished -= int64(len(urls))
		}
	}
	n.Finished = max(0, n.Finished)
	return n
}

// purgeAtOnce is how many URLs are purged under one lock.
const purgeAtOnce = 500

// PurgeURLs implements URLFrontier. Other calls put and get URLs meanwhile; another PurgeURLs waits.
func (s *Server) PurgeURLs(ctx context.Context, p *pb.PurgeUrlParams) (*pb.Long, error) {
	select {
	case s.purged.running <- struct{}{}:
		defer func() { <-s.purged.running }()
	case <-ctx.Done():
		return nil, statusOf(ctx.Err())
	case <-s.closing:
		return nil, statusOf(frontier.ErrClosed)
	}
	x := &purge{s: s, name: p.GetCrawlID(), key: p.GetKey(), before: s.svc.Frontier().Now().Unix() - int64(p.GetDays())*24*60*60}
	err := errDeleted
	for errors.Is(err, errDeleted) {
		err = x.run(ctx)
	}
	if err != nil && s.isClosing() {
		err = frontier.ErrClosed
	}
	if x.n > 0 {
		s.changing("")() // limits may leave room again
	}
	return &pb.Long{Value: x.n}, statusOf(err)
}

// purge is a PurgeURLs that runs.
type purge struct {
	s      *Server
	name   string // of the crawl
	key    string
	before int64 // URLs created from then on stay

	id        uint32 // the crawl's number
	deletions int    // purged.deleted when the scan began
	marked    bool   // purgedKey is stored
	adds      []frontier.Entry
	n         uint64
}

// errDeleted reports a deletion since the scan began: the URLs found may have been added anew.
var errDeleted = errors.New("urlfrontier: URLs were deleted meanwhile")

// run scans the frontier and purges what matches.
func (x *purge) run(ctx context.Context) error {
	x.adds, x.deletions = x.adds[:0], x.s.purged.deleted()
	var ok bool
	if x.id, ok = x.s.svc.Crawl(x.name); !ok || len(x.key) > maxKey {
		return nil
	}
	of := scope.Crawl(x.id)
	if x.key != "" {
		of = scope.Host(x.key)
	}
	for u, err := range x.s.svc.Inspector().Scan(ctx, of) {
		if err == nil && x.s.isClosing() {
			err = frontier.ErrClosed
		}
		if err != nil {
			return err
		}
		if u.Entry.Crawl != x.id || isPurged(&u.Entry) {
			continue
		}
		if created := envelopeOf(u.Entry.Meta).Created; created.IsZero() || created.Unix() >= x.before {
			continue
		}
		x.adds = append(x.adds, frontier.Entry{URL: u.Entry.URL, Host: u.Host, Crawl: x.id, Force: true, Finished: true, Meta: purgedMeta})
		if len(x.adds) == purgeAtOnce {
			if err := x.flush(); err != nil {
				return err
			}
		}
	}
	return x.flush()
}

// flush purges the URLs found so far.
func (x *purge) flush() error {
	s, f := x.s, x.s.svc.Frontier()
	if len(x.adds) == 0 {
		return nil
	}
	s.write.Lock()
	defer s.write.Unlock()
	s.hand.Lock()
	defer s.hand.Unlock()
	defer s.svc.Adding()()
	if id, ok := s.svc.Crawl(x.name); !ok || id != x.id || s.purged.deleted() != x.deletions {
		return errDeleted
	}
	if !x.marked {
		if err := f.SetValue(s.life, purgedKey, []byte{1}); err != nil {
			return err
		}
		x.marked = true
	}
	verdicts, err := f.AddVerdicts(s.life, x.adds...)
	var out []frontier.Lease
	now := time.Now()
	for i, v := range verdicts {
		if v == frontier.EntryRefused || v == frontier.EntryBad {
			continue
		}
		e := &x.adds[i]
		x.n++
		s.purged.add(queueName{x.id, e.Host}, e.URL)
		if l, ok := s.holds.take(urlName{x.id, e.URL}, now); ok && l.Deadline.After(f.Now()) {
			out = append(out, l)
		}
	}
	x.adds = x.adds[:0]
	s.endAll(out)
	return err
}
