// This file makes hosts that share an address polite to it together: before each
// contact the address is looked up and the lease joins its group.
//
// A host in a group that is not named after an address was put there by an operator, and stays there.

package crawler

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/addrgroup"
)

// Addresser is an additional interface of a Fetcher; without it, hosts are not grouped by address.
// *fetch.Fetcher implements it.
type Addresser interface {
	// Addresses returns the addresses at which the host of a URL may be contacted, best first; none if
	// they are not known. The crawler passes the addresses to Fetch in Request.Addrs. Fetch calls
	// Request.Contact before it tries another address than the first, and reports in the Result which
	// one answered and which failed. An error means that the host cannot be contacted now.
	Addresses(ctx context.Context, url string) ([]netip.Addr, error)
}

// Groups says how hosts are grouped by address. The zero value groups hosts with the same IPv4
// address, and hosts whose IPv6 addresses have the same first 64 bits, which usually belong to one
// machine or customer. A group is named after its address or network (2001:db8::/64). A NAT64
// address, in 64:ff9b::/96, counts as the IPv4 address that it contains.
type Groups struct {
	// Off disables grouping. Addresses are then looked up only by Fetch.
	Off bool
	// Exempt lists networks whose hosts are not grouped, such as those of content delivery networks
	// and proxies.
	Exempt []netip.Prefix
	// IPv6Bits is the number of leading bits that define a group of IPv6 addresses; 128 makes each
	// address a group. Zero means 64.
	IPv6Bits int
	// Concurrency is the number of hosts of one address that may be contacted at once, unless the
	// frontier's SetGroup sets it for the group. It is stored in the frontier when an address is
	// first used. Zero means 1.
	Concurrency int
}

const (
	addressTTL  = time.Minute // after this Addresses is called again; it may cache for longer
	addressesAt = 1 << 16     // hosts remembered at most
)

// addressBook remembers the addresses of sites.
type addressBook struct {
	opts *Options

	mu    sync.Mutex
	sites map[string]siteAddresses // guarded by mu
	set   map[string]bool          // guarded by mu; groups whose concurrency is set
}

// siteAddresses are the addresses of a site.
type siteAddresses struct {
	list    []netip.Addr
	expires time.Time
	first   netip.Addr // answered last; tried first
	silent  netip.Addr // did not answer; tried last
	// failed are the addresses that refused a connection while others, which were to be tried next,
	// had to wait for their group.
	failed []netip.Addr
}

// best returns the addresses to try now, best first, without those in failed unless there is no other.
func (s *siteAddresses) best() []netip.Addr {
	list := make([]netip.Addr, 0, len(s.list))
	for _, a := range s.list {
		if a != s.first && a != s.silent && !s.spent(a) {
			list = append(list, a)
		}
	}
	if slices.Contains(s.list, s.first) && s.first != s.silent && !s.spent(s.first) {
		list = slices.Insert(list, 0, s.first)
	}
	if slices.Contains(s.list, s.silent) && !s.spent(s.silent) {
		list = append(list, s.silent)
	}
	if len(list) == 0 {
		return s.list
	}
	return list
}

func (s *siteAddresses) spent(a netip.Addr) bool { return slices.Contains(s.failed, a) }

func newAddressBook(o *Options) *addressBook {
	if o.Groups.Off {
		return nil
	}
	return &addressBook{opts: o, sites: map[string]siteAddresses{}, set: map[string]bool{}}
}

// find returns the addresses of a URL's site, best first; none if they are not known. A nil book
// knows none.
func (b *addressBook) find(ctx context.Context, url string, now time.Time) ([]netip.Addr, error) {
	if b == nil {
		return nil, nil
	}
	lookup, ok := b.opts.fetcher(url).(Addresser)
	if !ok {
		return nil, nil
	}
	site := siteOf(url)
	b.mu.Lock()
	s := b.sites[site]
	b.mu.Unlock()
	if !fresh(now, s.expires) {
		list, err := lookup.Addresses(ctx, url)
		if err != nil {
			return nil, err
		}
		s.list, s.expires = list, now.Add(addressTTL)
		b.put(site, s)
	}
	return s.best(), nil
}

func (b *addressBook) put(site string, s siteAddresses) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for old := range b.sites {
		if len(b.sites) < addressesAt {
			break
		}
		delete(b.sites, old) // any: it costs a lookup
	}
	b.sites[site] = s
}

// note records how a contact with a URL's site ended.
func (b *addressBook) note(url string, res *fetch.Result, err error) {
	if b == nil {
		return
	}
	site := siteOf(url)
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.sites[site]
	if !ok {
		return
	}
	remote, class := res.Remote.Addr(), fetch.ClassOf(err)
	switch {
	case err != nil && errors.Is(err, frontier.ErrGroupBusy): // the attempt continues when another address may be contacted
		if remote.IsValid() {
			s.first = remote
		}
		s.failed = append(slices.Clip(s.failed), res.Failed...)
	case err != nil && res.Status == 0 && (class == fetch.Connect || class == fetch.Timeout):
		s.failed, s.first = nil, netip.Addr{}
		if s.silent = remote; !remote.IsValid() && len(s.list) > 0 {
			s.silent = s.best()[0]
		}
	case remote.IsValid():
		s.failed, s.first = nil, remote
		if s.silent == remote {
			s.silent = netip.Addr{}
		}
	}
	b.sites[site] = s
}

// join looks up the addresses of a URL, and has the lease join the group of the first one.
// ErrGroupBusy means that the group may not be contacted now: the lease must be handed back
// uncontacted. Other errors come from the lookup or the frontier.
func (r *run) join(ctx context.Context, l *frontier.Lease, url string) ([]netip.Addr, error) {
	c := r.c
	addrs, err := c.addresses.find(ctx, url, c.now())
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	return addrs, r.joinAddress(l, addrs[0])
}

// joinAddress makes a lease join the group of an address before the address is contacted.
func (r *run) joinAddress(l *frontier.Lease, addr netip.Addr) error {
	c := r.c
	if c.addresses == nil || addrgroup.Exempt(c.opts.Groups.Exempt, addr) || addrgroup.Assigned(l.Group) {
		return nil
	}
	name := addrgroup.Name(addr, c.opts.Groups.IPv6Bits) // validate has checked the bits
	if err := c.widen(name); err != nil {
		return err
	}
	return c.frontier.Join(l, name)
}

// widen lets as many hosts of an address's group be contacted at once as the options
// say, unless an operator said it.
func (c *Crawler) widen(name string) error {
	b, n := c.addresses, c.opts.Groups.Concurrency
	if n <= 1 {
		return nil
	}
	b.mu.Lock()
	known := b.set[name]
	if len(b.set) >= addressesAt {
		clear(b.set)
	}
	b.set[name] = true
	b.mu.Unlock()
	if known {
		return nil
	}
	f := c.frontier.(grouper) // New has checked it
	group, _ := f.Group(name)
	if group.Settings.Concurrency != 0 {
		return nil
	}
	group.Settings.Concurrency = n
	return f.SetGroup(name, group.Settings)
}
