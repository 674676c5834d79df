package limit

import (
	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
)

// Check calls bad with wrong counts (F6), and with ends of periods that are out of order (F3). idle
// means that no URL is on its way to the store; urls returns the number of waiting URLs of a scope.
func (b *Book) Check(bad func(string, ...any), idle bool, urls func(row.Scope) int64) {
	usage := func(u *usage) {
		if !u.Valid() || u.pending < 0 {
			bad("F6: usage of %v is %+v", u.of, u.Usage)
		}
		if idle && u.pending != 0 {
			bad("F6: %d URLs of %v are on their way, and no call is", u.pending, u.of)
		}
	}
	domains := 0
	for key, s := range b.scopes.Load().All() {
		if s.of.Key() != key || (s.use != nil) != (s.together != quota.Limits{}) {
			bad("F6: %v lies under %q, has limits %+v and usage %v", s.of, key, s.together, s.use)
		}
		if s.use == nil {
			continue
		}
		usage(s.use)
		if s.use.domain.Begun() {
			domains++
		}
		if n := s.use.domain.URLs(); s.use.domain.Complete() && n != urls(s.of) {
			bad("F6: %d URLs of %v wait, counted %d", urls(s.of), s.of, n)
		}
	}
	if domains != b.domains {
		bad("F6: the URLs of %d domains are counted, counted %d", domains, b.domains)
	}
	for id, x := range b.crawls {
		usage(&x.usage)
		if x.of.Crawl != id {
			bad("F6: crawl %d has the limits of %v", id, x.of)
		}
	}
	for _, it := range b.CrawlEnds.Items {
		if b.crawls[it.ID] == nil {
			bad("F3: crawl %d has no limits, and waits for the end of a period", it.ID)
		}
	}
	b.HostEnds.check(bad)
	b.CrawlEnds.check(bad)
	for id, u := range b.hosts {
		if !u.Valid() {
			bad("F6: usage of host %d is %+v", id, u.Usage)
		}
	}
	if idle && len(b.joining) > 0 {
		bad("F6: URLs of %d hosts are on their way, and no call is", len(b.joining))
	}
}

// HasHost reports whether anything was counted for a host alone.
func (b *Book) HasHost(id uint32) bool { return b.hosts[id] != nil }

// Hosts is for how many hosts anything was counted alone.
func (b *Book) Hosts() int { return len(b.hosts) }
