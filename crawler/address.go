// This file makes hosts that share an address polite to it together: before each
// contact the address is looked up and the lease joins its group.
//
// A host in a group that is not named after an address was put there by an
// operator, and stays there.

package crawler

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Addresser is what a Fetcher must be, too, for hosts to be grouped by address.
// *fetch.Fetcher is one.
type Addresser interface {
	// Addresses returns what the host of a URL may be contacted at, best first;
	// nothing if that is not known. Fetch is then told in Request.Addr which one
	// to contact. Errors mean that the host cannot be contacted now.
	Addresses(ctx context.Context, url string) ([]netip.Addr, error)
}

// Groups say how hosts are grouped. The zero value groups those with the same
// address.
type Groups struct {
	// Off leaves hosts alone that share an address. Addresses are then looked up
	// by Fetch only.
	Off bool
	// Exempt are the networks that owe their hosts nothing together: of content
	// delivery networks, of proxies.
	Exempt []netip.Prefix
	// Concurrency is how many hosts of one address are contacted at once, unless
	// the frontier's SetGroup says it for the address: the group is named after
	// it. Zero means 1. It is stored with the frontier when an address is met.
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

const (
	addressTTL  = time.Minute // Addresses is asked again then; it may remember for longer
	addressesAt = 1 << 16     // hosts remembered at most
)

// addressBook remembers the addresses of sites.
type addressBook struct {
	opts *Options

	mu    sync.Mutex
	sites map[string]siteAddresses // guarded by mu
	set   map[netip.Addr]bool      // guarded by mu; whose group's concurrency is set
}

// siteAddresses are rotated when the first does not answer.
type siteAddresses struct {
	list    []netip.Addr
	expires time.Time
	silent  netip.Addr // that did not answer: comes last
}

func newAddressBook(o *Options) *addressBook {
	if o.Groups.Off {
		return nil
	}
	return &addressBook{opts: o, sites: map[string]siteAddresses{}, set: map[netip.Addr]bool{}}
}

// find returns the address to contact a URL's site at; the zero Addr if it is not
// known. A nil book knows none.
func (b *addressBook) find(ctx context.Context, url string, now time.Time) (netip.Addr, error) {
	if b == nil {
		return netip.Addr{}, nil
	}
	lookup, ok := b.opts.fetcher(url).(Addresser)
	if !ok {
		return netip.Addr{}, nil
	}
	site := siteOf(url)
	b.mu.Lock()
	s := b.sites[site]
	b.mu.Unlock()
	if !now.Before(s.expires) {
		list, err := lookup.Addresses(ctx, url)
		if err != nil {
			return netip.Addr{}, err
		}
		if i := slices.Index(list, s.silent); i >= 0 {
			list = append(slices.Concat(list[:i], list[i+1:]), s.silent)
		}
		s = siteAddresses{list, now.Add(addressTTL), s.silent}
		b.put(site, s)
	}
	if len(s.list) == 0 {
		return netip.Addr{}, nil
	}
	return s.list[0], nil
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

// avoid makes another address of a site come first, if it has one.
func (b *addressBook) avoid(url string, addr netip.Addr) {
	if b == nil {
		return
	}
	site := siteOf(url)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sites[site]; len(s.list) > 1 && s.list[0] == addr {
		s.list, s.silent = append(slices.Clone(s.list[1:]), addr), addr
		b.sites[site] = s
	}
}

// join looks up where a URL is to be asked for, and has the lease join that
// address's group. ErrGroupBusy means that the group may not be contacted now: the
// lease must be handed back uncontacted. Other errors are of the lookup, or the
// frontier's.
func (r *run) join(ctx context.Context, l *frontier.Lease, url string) (netip.Addr, error) {
	c := r.c
	addr, err := c.addresses.find(ctx, url, c.now())
	if err != nil || !addr.IsValid() || c.opts.Groups.exempt(addr) || assigned(l.Group) {
		return addr, err
	}
	if err := c.widen(addr); err != nil {
		return addr, err
	}
	return addr, c.frontier.Join(l, addr.String())
}

// widen lets as many hosts of an address be contacted at once as the options say,
// unless an operator said it.
func (c *Crawler) widen(addr netip.Addr) error {
	b, n := c.addresses, c.opts.Groups.Concurrency
	if n <= 1 {
		return nil
	}
	b.mu.Lock()
	known := b.set[addr]
	if len(b.set) >= addressesAt {
		clear(b.set)
	}
	b.set[addr] = true
	b.mu.Unlock()
	if known {
		return nil
	}
	group, _ := c.frontier.Group(addr.String())
	if group.Settings.Concurrency != 0 {
		return nil
	}
	group.Settings.Concurrency = n
	return c.frontier.SetGroup(addr.String(), group.Settings)
}

// assigned reports whether an operator chose a host's group.
func assigned(group string) bool {
	if group == "" {
		return false
	}
	_, err := netip.ParseAddr(group)
	return err != nil
}
