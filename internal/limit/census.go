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

// Census is a count of the URLs of a domain in progress: it takes longer than the lock may be held.
type Census struct {
	use   *usage
	round int
}

// BeginCensus starts counting the URLs of a domain. The census is nil if no limit needs it, if it
// was already done, or if another one is in progress; in that case others is closed when it ends.
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

// Saw counts the URLs of the next host, in domain order.
func (c *Census) Saw(host []byte, urls int64) {
	c.use.domain.Saw(c.round, string(hostkey.AppendReversed(nil, host)), urls)
}

// End ends the census. It is complete if all hosts were seen, unless the limits changed meanwhile.
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

// CountDomains starts the counts of all domains that need one, from zero: call Waits for each host.
// It reports whether there are any.
func (b *Book) CountDomains() bool {
	for _, s := range b.scopes.Load().All() {
		if s.use != nil && s.of.Domain && s.together.Waiting > 0 {
			s.use.domain.SawAll(b.beginCensus(s.use))
		}
	}
	return b.domains > 0
}
