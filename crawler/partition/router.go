// This file sends URLs to the nodes that own their hosts, as decided in splitter.go.

package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/faults"
)

// Options configure a Router. The zero value is for a crawl on one node.
type Options struct {
	// Self is the name of this node.
	Self string
	// Splitter decides which node owns a host. Nil means that this node owns all hosts.
	Splitter Splitter
	// HostKey must be the same as in the frontiers' Options. Nil means frontier.HostName.
	HostKey func(url string) (string, error)
	// Send sends entries to the node that owns them, and returns when the Add of its frontier has
	// returned: until then no other node has stored them. Entries that this Add refuses are not an
	// error of Send. It is called from any goroutine, and required with a Splitter.
	Send func(ctx context.Context, node string, entries []frontier.Entry) error
	// Remember is the number of sent URLs that are remembered and not sent again, at about 20 bytes
	// each. Mercator found that most of the traffic is popular URLs. Zero means 100,000.
	Remember int
}

// Router keeps the URLs of this node and sends the others. It is safe for concurrent use.
type Router struct {
	opts Options // read-only
	seed maphash.Seed

	mu  sync.Mutex
	new map[uint64]struct{} // guarded by mu; URLs that were sent
	old map[uint64]struct{} // guarded by mu; the previous generation
}

// New returns a Router, or an error that names a missing option.
func New(o Options) (*Router, error) {
	if o.HostKey == nil {
		o.HostKey = frontier.HostName
	}
	o.Remember = cmp.Or(o.Remember, 100_000)
	var wrong faults.List
	wrong.If(o.Splitter != nil && o.Send == nil, "a Splitter without Send")
	wrong.If(o.Remember < 0, "Remember is %d; want >= 0", o.Remember)
	if err := wrong.Of("partition: options"); err != nil {
		return nil, err
	}
	return &Router{opts: o, seed: maphash.MakeSeed(), new: map[uint64]struct{}{}}, nil
}

// Keep returns the entries whose hosts this node owns, in their order, after the other nodes have
// stored theirs. Entries whose URL has no host are returned, for the frontier to refuse. The error
// names all nodes that could not be reached; after an error the same call may be repeated. The
// slice entries is not changed.
func (r *Router) Keep(ctx context.Context, entries []frontier.Entry) ([]frontier.Entry, error) {
	if r.opts.Splitter == nil {
		return entries, nil
	}
	var mine []frontier.Entry
	others := map[string][]frontier.Entry{}
	for _, e := range entries {
		host := e.Host
		if host == "" {
			var err error
			if host, err = r.opts.HostKey(e.URL); err != nil {
				mine = append(mine, e)
				continue
			}
		}
		if node := r.opts.Splitter.Owner(host); node == r.opts.Self {
			mine = append(mine, e)
		} else if !r.sent(e) {
			others[node] = append(others[node], e)
		}
	}
	return mine, r.send(ctx, others)
}

// send sends the entries of all nodes concurrently.
func (r *Router) send(ctx context.Context, others map[string][]frontier.Entry) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for node, entries := range others {
		wg.Go(func() {
			if err := r.opts.Send(ctx, node, entries); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("partition: send to %s: %w", node, err))
				return
			}
			r.remember(entries)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *Router) hash(e frontier.Entry) uint64 {
	return maphash.Comparable(r.seed, struct {
		url   string
		crawl uint32
	}{e.URL, e.Crawl})
}

// sent reports whether an entry need not be sent because its owner has it. A false positive would
// lose a link; its probability is 2^-64 for each URL remembered.
func (r *Router) sent(e frontier.Entry) bool {
	if e.Force {
		return false
	}
	h := r.hash(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.new[h]
	if _, before := r.old[h]; before && !ok {
		ok = true
		r.keepLocked(h)
	}
	return ok
}

func (r *Router) remember(entries []frontier.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.keepLocked(r.hash(e))
	}
}

// keepLocked forgets the older half when the newer one is full.
func (r *Router) keepLocked(h uint64) {
	if len(r.new) >= (r.opts.Remember+1)/2 {
		r.old, r.new = r.new, map[uint64]struct{}{}
	}
	r.new[h] = struct{}{}
}

// Quiet detects the end of a crawl by several nodes. The zero value is ready for use. It is not
// safe for concurrent use.
type Quiet struct {
	looked   bool
	progress [2]int64
}

// Look takes the Stats of all nodes' frontiers, read one after the other; call it repeatedly. It
// returns true if no node has anything to do, and none has received or done anything since the
// previous call (Mattern's four counters, 1987): URLs that were in transit between two calls show
// in the second one. This requires that entries are sent only while a lease is out, as in a
// crawler's OnPage.
func (q *Quiet) Look(all ...frontier.Stats) bool {
	var busy int64
	var progress [2]int64
	for _, s := range all {
		busy += s.Waiting + s.Scheduled + s.Leased
		progress[0] += s.Added
		progress[1] += s.HandedOut
	}
	same := q.looked && progress == q.progress
	q.looked, q.progress = busy == 0, progress
	return busy == 0 && same
}
