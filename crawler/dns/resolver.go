// This file answers lookups from the cache, and lets concurrent lookups of one name share an
// answer.

package dns

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Resolver finds addresses. It is safe for concurrent use.
type Resolver struct {
	opts    Options  // read-only after New
	servers *servers // nil: the system is asked
	system  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	calls   sync.WaitGroup
	counted counters

	mu     sync.Mutex
	closed bool             // guarded by mu
	cache  cache            // guarded by mu
	under  map[string]*call // guarded by mu; lookups in progress, by name
	ahead  int              // guarded by mu; number of these that are prefetches
}

// call is a lookup in progress.
type call struct {
	done   chan struct{}
	answer answer // once done is closed
}

// ErrClosed is returned by Lookup after Close.
var ErrClosed = errors.New("dns: resolver is closed")

type counters struct{ lookups, hits, negative, stale, shared, queries, failed, prefetched atomic.Int64 }

// Stats are counts since New.
type Stats struct {
	Lookups    int64 // calls of Lookup with a name
	Hits       int64 // part of these: answered from the cache
	Shared     int64 // part of these: joined a lookup in progress
	Negative   int64 // of Hits, that there is no address
	Stale      int64 // answered with an expired address, as no server answered
	Failed     int64 // lookups without an answer
	Prefetched int64 // names looked up ahead
	Queries    int64 // questions to servers, or to the system
	Names      int   // remembered now
}

// New returns a Resolver, or an error that names every option out of range.
func New(o Options) (*Resolver, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &Resolver{opts: o, cache: cache{limit: o.MaxNames}, under: map[string]*call{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.system = net.DefaultResolver.LookupNetIP
	if len(o.Servers) > 0 {
		r.servers = &servers{opts: &r.opts, count: func() { r.counted.queries.Add(1) }, patience: resolutionDelay, calls: &r.calls, plain: map[int]time.Time{}}
		for _, name := range o.Servers {
			a, _ := serverAddr(name) // validated
			r.servers.addrs = append(r.servers.addrs, a)
		}
	}
	return r, nil
}

// Close ends lookups in progress and waits for them.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
}

// Lookup returns the addresses of a host. Errors are of type *net.DNSError, or ErrClosed, or the
// error of ctx; after the latter, the lookup continues for other callers and the cache. It fits
// fetch.Options.Lookup. The slice is shared and must not be changed.
func (r *Resolver) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	name, addrs, err := r.own(host)
	if name == "" {
		return addrs, err
	}
	r.counted.lookups.Add(1)
	r.mu.Lock()
	if rec := r.cache.get(name); rec != nil && left(rec.expires, r.opts.Now()) > 0 {
		r.mu.Unlock()
		r.counted.hits.Add(1)
		if rec.answer.err != nil {
			r.counted.negative.Add(1)
		}
		return rec.answer.addrs, rec.answer.err
	}
	c := r.under[name]
	if c != nil {
		r.counted.shared.Add(1)
	} else if c = r.beginLocked(name, false); c == nil {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	r.mu.Unlock()
	select {
	case <-c.done:
		return c.answer.addrs, c.answer.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// left returns how long something is valid by both clocks: the monotonic clock stops while the
// machine is suspended, the wall clock may be set back.
func left(until, now time.Time) time.Duration {
	return min(until.Sub(now), until.Round(0).Sub(now.Round(0)))
}

// Prefetch looks a host up in the background, unless its addresses stay valid for a while, or too
// many prefetches are in progress.
func (r *Resolver) Prefetch(host string) {
	name, _, _ := r.own(host)
	if name == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.under[name] != nil || r.ahead >= r.opts.MaxPrefetch {
		return
	}
	if rec := r.cache.get(name); rec != nil {
		left := left(rec.expires, r.opts.Now())
		if left > rec.answer.ttl/10 || left > 0 && rec.answer.err != nil {
			return
		}
	}
	if r.beginLocked(name, true) != nil {
		r.counted.prefetched.Add(1)
	}
}

// Stats returns the present figures.
func (r *Resolver) Stats() Stats {
	n := &r.counted
	r.mu.Lock()
	names := r.cache.used.Len()
	r.mu.Unlock()
	return Stats{
		Lookups: n.lookups.Load(), Hits: n.hits.Load(), Shared: n.shared.Load(), Negative: n.negative.Load(), Stale: n.stale.Load(),
		Failed: n.failed.Load(), Prefetched: n.prefetched.Load(), Queries: n.queries.Load(), Names: names,
	}
}

// own answers names for which no server is asked (RFC 6761): addresses, localhost, and invalid
// names. Otherwise it returns the name to look up.
func (r *Resolver) own(host string) (name string, addrs []netip.Addr, err error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "", []netip.Addr{a}, nil
	}
	name = strings.TrimSuffix(strings.ToLower(host), ".")
	top := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case !isName(name):
		return "", nil, notFound(host, "no host name")
	case len(r.opts.Servers) == 0: // left to the system
	case top == "localhost":
		return "", []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	case top == "invalid" || top == "onion" || top == "alt":
		return "", nil, notFound(host, "no such host")
	}
	return name, nil, nil
}

// isName reports whether a name can be queried: labels of 1 to 63 bytes, 253 in all, of the
// characters of host names and the underscore.
func isName(s string) bool {
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if len(label) < 1 || len(label) > 63 {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// beginLocked starts a lookup; nil if the Resolver is closed.
func (r *Resolver) beginLocked(name string, ahead bool) *call {
	if r.closed {
		return nil
	}
	c := &call{done: make(chan struct{})}
	r.under[name] = c
	if ahead {
		r.ahead++
	}
	r.calls.Go(func() { r.run(name, c, ahead) })
	return c
}

// run looks a name up and passes the answer to all waiting callers.
func (r *Resolver) run(name string, c *call, ahead bool) {
	a := r.find(name)
	if a.err != nil && r.ctx.Err() != nil {
		a.err = ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.answer = r.keepLocked(name, a)
	delete(r.under, name)
	if ahead {
		r.ahead--
	}
	close(c.done)
}

// find asks for a name.
func (r *Resolver) find(name string) answer {
	if r.servers == nil {
		return r.askSystem(name)
	}
	return r.servers.find(r.ctx, name, func(a answer) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keepLocked(name, a)
	})
}

const (
	failureTTL = 5 * time.Second  // how long no lookup is repeated after no server answered (RFC 9520)
	staleTTL   = 30 * time.Second // lifetime of an expired address that is used again (RFC 8767 section 5)
)

// keepLocked caches an answer and returns what callers get.
func (r *Resolver) keepLocked(name string, a answer) answer {
	now := r.opts.Now()
	switch {
	case a.err == nil:
		a.addrs = slices.Clip(a.addrs[:min(len(a.addrs), maxAddrs)])
		a.ttl = min(max(a.ttl, r.opts.MinTTL), r.opts.MaxTTL)
	case isNotFound(a.err):
		a.ttl = cmp.Or(max(0, a.ttl), time.Minute)
		a.ttl = min(max(a.ttl, r.opts.MinTTL), r.opts.NegativeTTL)
	default:
		if errors.Is(a.err, ErrClosed) {
			return a
		}
		old := r.cache.get(name)
		if old != nil && old.answer.err == nil && now.Before(old.got.Add(old.answer.ttl+r.opts.Stale)) {
			r.counted.stale.Add(1)
			old.expires = now.Add(staleTTL)
			return old.answer
		}
		r.counted.failed.Add(1)
		a.ttl = min(failureTTL, r.opts.NegativeTTL)
	}
	r.cache.put(name, a, now)
	return a
}

// Rooted returns a host name in the form for the system's resolver: with a trailing dot if it
// contains a dot, so that it is not first tried below each of the system's search domains, as
// configured by Kubernetes (ndots). A name of one label is a machine of the local network, and
// returned unchanged.
func Rooted(name string) string {
	if !strings.Contains(name, ".") || strings.HasSuffix(name, ".") {
		return name
	}
	return name + "."
}

// askSystem resolves a name without Servers.
func (r *Resolver) askSystem(name string) answer {
	ctx, cancel := context.WithTimeout(r.ctx, time.Duration(r.opts.Tries)*2*r.opts.Timeout)
	defer cancel()
	r.counted.queries.Add(1)
	network := "ip"
	if r.opts.NoIPv6 {
		network = "ip4"
	}
	addrs, err := r.system(ctx, network, Rooted(name))
	if err != nil {
		return answer{err: asDNSError(name, err), ttl: r.opts.SystemTTL}
	}
	return answer{addrs: addrs, ttl: r.opts.SystemTTL}
}
