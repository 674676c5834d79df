package limit

import (
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/row"
)

// CountsDomains reports whether Waits must be called.
func (b *Book) CountsDomains() bool { return b.domains > 0 }

// Waits notes that n URLs more (or, negative, less) of a host wait.
func (b *Book) Waits(host []byte, n int64) {
	key := ""
	b.scopes.Load().Visit(host, func(s *scope) bool {
		if u := s.use; u != nil && u.domain.Begun() && s.of.Domain {
			if !u.domain.Complete() && key == "" {
				key = string(hostkey.AppendReversed(nil, host))
			}
			u.domain.Changed(key, n)
		}
		return true
	})
}

// Census is a count of the URLs of a domain that is under way: it lasts longer than the
// lock is held.
type Census struct {
	use   *usage
	round int
}

// BeginCensus begins to count the URLs of a domain. There is nothing to count, and the
// census nil, if no limit asks for it or it was done; or another is under way, and others
// is closed when that ends.
func (b *Book) BeginCensus(of row.Scope) (c *Census, others <-chan struct{}) {
	u, l := b.find(OfScope(of))
	if u == nil || l.Waiting == 0 || u.domain.Complete() {
		return nil, nil
	}
	if u.counting != nil {
		return nil, u.counting
	}
	u.counting = make(chan struct{})
	return &Census{use: u, round: b.beginCensus(u)}, nil
}

// Saw counts the URLs of a host that comes, in domain order, after those that were seen.
func (c *Census) Saw(host []byte, urls int64) {
	c.use.domain.Saw(c.round, string(hostkey.AppendReversed(nil, host)), urls)
}

// End ends the census. It was complete if all hosts were seen, unless the limits changed
// meanwhile.
func (c *Census) End(all bool) {
	close(c.use.counting)
	c.use.counting = nil
	if all {
		c.use.domain.SawAll(c.round)
	}
}

func (b *Book) beginCensus(u *usage) (round int) {
	b.endCensus(u)
	b.domains++
	return u.domain.Begin()
}

func (b *Book) endCensus(u *usage) {
	if u.domain.Begun() {
		b.domains--
		u.domain.End()
	}
}

// CountDomains begins the counts of all domains that need one, as if no URL waited: Waits
// must be called for each host. It reports whether there are any.
func (b *Book) CountDomains() bool {
	for _, s := range b.scopes.Load().All() {
		if s.use != nil && s.of.Domain && s.together.Waiting > 0 {
			s.use.domain.SawAll(b.beginCensus(s.use))
		}
	}
	return b.domains > 0
}
