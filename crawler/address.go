// This file makes hosts that share an address polite to it together: before each
// contact the address is looked up and the lease joins its group.
//
// A host in a group that is not named after an address was put there by an
// operator, and stays there.

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
)

// Addresser is what a Fetcher must be, too, for hosts to be grouped by address.
// *fetch.Fetcher is one.
type Addresser interface {
	// Addresses returns what the host of a URL may be contacted at, best first;
	// nothing if that is not known. Fetch is then told in Request.Addrs which ones
	// to contact, and asks Request.Contact before it turns to another than the first:
	// it tells in the Result which one answered, and which failed. Errors mean that
	// the host cannot be contacted now.
	Addresses(ctx context.Context, url string) ([]netip.Addr, error)
}

// Groups say how hosts are grouped. The zero value groups those with the same IPv4
// address, and those whose IPv6 addresses have their first 64 bits in common: that
// much is one machine's, or one customer's. A group is named after its address, or its
// network (2001:db8::/64). An address of NAT64, 64:ff9b::/96, counts as the IPv4
// address in it.
type Groups struct {
	// Off leaves hosts alone that share an address. Addresses are then looked up
	// by Fetch only.
	Off bool
	// Exempt are the networks that owe their hosts nothing together: of content
	// delivery networks, of proxies.
	Exempt []netip.Prefix
	// IPv6Bits is how many leading bits the IPv6 addresses of a group have in common: 128
	// for a group of each address. Zero means 64.
	IPv6Bits int
	// Concurrency is how many hosts of one address are contacted at once, unless
	// the frontier's SetGroup says it for the group. Zero means 1. It is stored with
	// the frontier when an address is met.
	Concurrency int
}

// exempt reports whether an address makes no group.
func (g *Groups) exempt(a netip.Addr) bool {
	for _, p := range g.Exempt {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// of returns the name of an address's group.
func (g *Groups) of(a netip.Addr) string {
	if a = a.Unmap().WithZone(""); nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	if a.Is4() || g.IPv6Bits == 128 {
		return a.String()
	}
	p, _ := a.Prefix(g.IPv6Bits) // validate has looked at them
	return p.String()
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

const (
	addressTTL  = time.Minute // Addresses is asked again then; it may remember for longer
	addressesAt = 1 << 16     // hosts remembered at most
)

// addressBook remembers the addresses of sites.
type addressBook struct {
	opts *Options

	mu    sync.Mutex
	sites map[string]siteAddresses // guarded by mu
	set   map[string]bool          // guarded by mu; the groups whose concurrency is set
}

// siteAddresses are where a site may be contacted.
type siteAddresses struct {
	list    []netip.Addr
	expires time.Time
	first   netip.Addr // that answered last; comes first
	silent  netip.Addr // that did not answer; comes last
	// failed are those at which a connection was refused while others, which were to
	// be tried next, had to be waited for.
	failed []netip.Addr
}

// best are the addresses to try now, best first: those that failed while others had
// to be waited for are left out unless there is no other.
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

// find returns the addresses to contact a URL's site at, best first; none if they are
// not known. A nil book knows none.
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

// note takes in how a contact with a URL's site ended.
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
	case err != nil && errors.Is(err, frontier.ErrGroupBusy): // the attempt goes on when another address may be contacted
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

// join looks up where a URL is to be asked for, and has the lease join the group of
// the first address. ErrGroupBusy means that the group may not be contacted now: the
// lease must be handed back uncontacted. Other errors are of the lookup, or the
// frontier's.
func (r *run) join(ctx context.Context, l *frontier.Lease, url string) ([]netip.Addr, error) {
	c := r.c
	addrs, err := c.addresses.find(ctx, url, c.now())
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	return addrs, r.joinAddress(l, addrs[0])
}

// joinAddress has a lease join an address's group, before it is contacted.
func (r *run) joinAddress(l *frontier.Lease, addr netip.Addr) error {
	c := r.c
	if c.addresses == nil || c.opts.Groups.exempt(addr) || assigned(l.Group) {
		return nil
	}
	name := c.opts.Groups.of(addr)
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
	group, _ := c.frontier.Group(name)
	if group.Settings.Concurrency != 0 {
		return nil
	}
	group.Settings.Concurrency = n
	return c.frontier.SetGroup(name, group.Settings)
}

// assigned reports whether an operator chose a host's group.
func assigned(group string) bool {
	if group == "" {
		return false
	}
	_, noAddress := netip.ParseAddr(group)
	_, noNetwork := netip.ParsePrefix(group)
	return noAddress != nil && noNetwork != nil
}
