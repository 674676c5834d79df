// This file lets operators list and end clients' leases.

package serve

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
)

// ClientName returns an operator's name for a client: that of its token or certificate, as Role returns
// it, or else the client's address without the port.
func ClientName(who, address string) string {
	if who != "" {
		return who
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return "local" // over a Unix socket
}

// client returns the operator's name for the client that sent the request.
func (c *call) client() string { return ClientName(c.who, c.r.RemoteAddr) }

// outstanding returns the leases that match a query, by ID.
func (s *Service) outstanding(q *console.LeaseQuery) map[string]contact {
	s.contacts.mu.Lock()
	defer s.contacts.mu.Unlock()
	all := map[string]contact{}
	for id, c := range s.contacts.out {
		if (q.Lease == "" || q.Lease == id) && (q.Client == "" || q.Client == c.client) && q.Scope.Contains(c.host, c.of.crawl) {
			all[id] = c
		}
	}
	return all
}

// Leases lists clients' leases. It implements console.Options.Leases.
func (s *Service) Leases(q console.LeaseQuery) console.LeaseList {
	found := s.outstanding(&q)
	all := make([]console.Lease, 0, len(found))
	for id, c := range found {
		x := console.Lease{Lease: id, Client: c.client, Host: c.host, URL: c.of.url, Since: c.since.UTC(), Until: c.until.UTC(), Earlier: s.contacts.inherits(id) != nil}
		if !x.Earlier {
			if _, err := s.f.LeaseByID(id); err != nil {
				continue // it has expired, or its URL was deleted
			}
		}
		if x.URL != "" {
			x.Crawl = s.CrawlName(c.of.crawl)
		}
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b console.Lease) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Lease, b.Lease)) })
	list := console.LeaseList{Leases: all, Total: len(all)}
	list.Leases = all[:min(len(all), cmp.Or(q.N, 100))]
	return list
}

// Clients lists the clients that hold leases, the oldest leases first, for console.Options.
func (s *Service) Clients() []console.ServedClient {
	now := s.f.Now()
	by := map[string]console.ServedClient{}
	s.contacts.mu.Lock()
	for _, c := range s.contacts.out {
		if c.until.Before(now) {
			continue
		}
		x, ok := by[c.client]
		if !ok {
			x = console.ServedClient{Client: c.client, Since: c.since, Until: c.until}
		}
		x.Leases++
		if c.since.Before(x.Since) {
			x.Since = c.since
		}
		if c.until.After(x.Until) {
			x.Until = c.until
		}
		by[c.client] = x
	}
	s.contacts.mu.Unlock()
	return slices.SortedFunc(maps.Values(by), func(a, b console.ServedClient) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Client, b.Client))
	})
}

// Crawls returns the first n named crawls and their total number, for console.Options.
func (s *Service) Crawls(n int) (list []console.ServedCrawl, total int) {
	names := s.CrawlNames()
	for _, name := range names[:min(n, len(names))] {
		if id, ok := s.Crawl(name); ok {
			x, _ := s.views.Crawl(id)
			list = append(list, console.ServedCrawl{Name: name, Crawl: x})
		}
	}
	return list, len(names)
}

// EndLeases ends clients' leases, those of an earlier Service included, for console.Options. Their URLs
// wait again, and the try does not count. A client may still be fetching, so each host's pause starts
// now. A client's later report finds its lease ended, and counts for the host like any late one.
func (s *Service) EndLeases(q console.LeaseQuery) (n int, err error) {
	for _, id := range slices.Sorted(maps.Keys(s.outstanding(&q))) {
		ended, failed := s.endLease(id)
		if ended {
			n++
		}
		err = errors.Join(err, failed)
	}
	return n, err
}

// endLease ends a lease. It returns false if the lease was not outstanding.
func (s *Service) endLease(id string) (bool, error) {
	o := frontier.Outcome{Result: frontier.Requeue}
	if s.contacts.inherits(id) != nil {
		return true, s.lateID(id, o)
	}
	l, err := s.lease(id)
	if err == nil {
		err = s.Done(l, o)
	}
	s.streams.drop(l.Token())
	if errors.Is(err, frontier.ErrNotLeased) {
		s.contacts.ended(id)
		return false, nil
	}
	return err == nil, err
}

// deleteLease ends a lease.
func (s *Service) deleteLease(c *call) error {
	n, err := s.EndLeases(console.LeaseQuery{Lease: c.r.PathValue("id")})
	if err == nil && n == 0 {
		err = frontier.ErrNotLeased
	}
	return c.endedLeases(n, err)
}

// deleteLeases ends the leases of a client, of a scope, or of both together.
func (s *Service) deleteLeases(c *call) error {
	q := console.LeaseQuery{Client: c.query.Get("client")}
	switch scope := c.query.Get("scope"); {
	case scope != "":
		var err error
		if q.Scope, err = c.scope(scope); err != nil {
			return err
		}
	case q.Client == "":
		return badRequest("whose leases? Want client, scope or both; scope=* is all")
	}
	n, err := s.EndLeases(q)
	return c.endedLeases(n, err)
}

// endedLeases responds with the number of leases ended.
func (c *call) endedLeases(n int, err error) error {
	if n > 0 {
		c.s.log.Info("a client ended leases", "leases", n, "path", c.r.URL.RequestURI(), "who", c.who)
	}
	if err != nil {
		return err
	}
	return c.reply(map[string]int{"ended": n})
}
