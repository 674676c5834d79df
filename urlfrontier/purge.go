// This file purges URLs. The frontier cannot take a single URL out, so a purged one is a completed
// URL with a mark in its metadata, which no call of the API shows. A set of them is in memory, and
// read at the start if anything was ever purged.

package urlfrontier

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// purgedKey is the key of the value that is there once something was purged.
const purgedKey = "urlfrontier/purged"

// purgedMeta is the Meta of URLs that were purged.
var purgedMeta = (&serve.Envelope{Meta: map[string][]string{"urlfrontier.purged": {"1"}}}).Append(nil)

// isPurged reports whether a URL was purged.
func isPurged(e *frontier.Entry) bool { return e.Finished && bytes.Equal(e.Meta, purgedMeta) }

// queueName names a queue.
type queueName struct {
	crawl uint32
	key   string
}

// mark stands for a URL, in 16 bytes.
type mark struct{ a, b uint64 }

// purged are the URLs that were purged, by queue. It is safe for concurrent use.
type purged struct {
	seedA, seedB maphash.Seed

	mu sync.Mutex
	by map[queueName]map[mark]struct{} // guarded by mu
}

func openPurged(ctx context.Context, f *frontier.Frontier) (*purged, error) {
	x := &purged{seedA: maphash.MakeSeed(), seedB: maphash.MakeSeed(), by: map[queueName]map[mark]struct{}{}}
	_, any, err := f.Value(purgedKey)
	if err != nil {
		return nil, fmt.Errorf("urlfrontier: purged URLs: %w", err)
	}
	if !any {
		return x, nil
	}
	for u, err := range f.Scan(ctx) {
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

// has reports whether a URL of a queue was purged.
func (x *purged) has(q queueName, url string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.by[q]) == 0 {
		return false
	}
	_, ok := x.by[q][x.markOf(url)]
	return ok
}

// drop notes that a URL is back.
func (x *purged) drop(q queueName, url string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if delete(x.by[q], x.markOf(url)); len(x.by[q]) == 0 {
		delete(x.by, q)
	}
}

// dropAll forgets a queue, or all queues of a crawl.
func (x *purged) dropAll(crawl uint32, key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for q := range x.by {
		if q.crawl == crawl && (key == "" || q.key == key) {
			delete(x.by, q)
		}
	}
}

// without takes those that were purged out of the numbers of a queue.
func (x *purged) without(q queueName, n frontier.QueueStats) frontier.QueueStats {
	x.mu.Lock()
	defer x.mu.Unlock()
	n.Finished = max(0, n.Finished-int64(len(x.by[q])))
	return n
}

// withoutAll is without for a crawl.
func (x *purged) withoutAll(crawl uint32, n frontier.QueueStats) frontier.QueueStats {
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

// purgeAtOnce is the number of URLs that are purged in one Add.
const purgeAtOnce = 10_000

// PurgeURLs implements the call.
func (s *Server) PurgeURLs(ctx context.Context, p *pb.PurgeUrlParams) (*pb.Long, error) {
	id, ok := s.svc.Crawl(p.GetCrawlID())
	if !ok {
		return &pb.Long{}, nil
	}
	defer s.changing(ctx)()
	f := s.svc.Frontier()
	if err := f.SetValue(ctx, purgedKey, []byte{1}); err != nil {
		return nil, statusOf(err)
	}
	before := time.Now().Unix() - int64(p.GetDays())*24*60*60
	var n uint64
	var adds []frontier.Entry
	flush := func() error {
		verdicts, err := f.AddVerdicts(ctx, adds...)
		var out []frontier.Lease
		for i, v := range verdicts {
			if v == frontier.EntryRefused || v == frontier.EntryBad {
				continue
			}
			e := &adds[i]
			n++
			s.purged.add(queueName{id, e.Host}, e.URL)
			if l, ok := s.holds.take(urlName{id, e.URL}, time.Now()); ok {
				out = append(out, l)
			}
		}
		adds = adds[:0]
		s.endAll(out)
		return err
	}
	for u, err := range f.Scan(ctx) {
		if err != nil {
			return &pb.Long{Value: n}, statusOf(err)
		}
		if u.Entry.Crawl != id || p.GetKey() != "" && u.Host != p.GetKey() || isPurged(&u.Entry) || envelopeOf(u.Entry.Meta).Created.Unix() >= before {
			continue
		}
		adds = append(adds, frontier.Entry{URL: u.Entry.URL, Host: u.Host, Crawl: id, Force: true, Finished: true, Meta: purgedMeta})
		if len(adds) == purgeAtOnce {
			if err := flush(); err != nil {
				return &pb.Long{Value: n}, statusOf(err)
			}
		}
	}
	return &pb.Long{Value: n}, statusOf(flush())
}
