// Package scope names the hosts, or the crawl, that a rule, a Delete or a view of a frontier is for, and has the
// limits that a rule may set. Names without a package are those of package frontier.
package scope

import (
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier/internal/row"
)

// Scope names a host, a domain, all hosts, or a crawl. The zero Scope is that of All.
type Scope struct {
	hosts   row.Scope
	ofCrawl bool
	crawl   uint32
}

// All is the scope of all hosts.
func All() Scope { return Scope{} }

// Host is the scope of one host key, spelled as Options.HostKey returns it. Without a HostKey any
// spelling of the host's name is accepted, as in URLs, and controls refuse names that no host can have.
func Host(key string) Scope { return Scope{hosts: row.Scope{Name: key, Named: true}} }

// Domain is the scope of all hosts at or under a name: Domain("example.org") contains
// example.org and www.example.org, but not myexample.org. It is spelled like a host.
func Domain(name string) Scope { return Scope{hosts: row.Scope{Name: name, Domain: true, Named: true}} }

// Crawl is the scope of the URLs of one crawl (Entry.Crawl), on all hosts. Its Rule may set only
// Weight, Paused and Limits, and may be set before the crawl has a URL. While it is paused, the URLs of
// other crawls are served, on the same hosts too; Next returns ErrExhausted if only URLs of paused
// crawls are left. Delete and inspect.Inspector.Scan accept this scope; other views of hosts and URLs do not.
func Crawl(id uint32) Scope { return Scope{hosts: row.Scope{Named: true}, ofCrawl: true, crawl: id} }

// Of is the inverse of Hosts.
func Of(s row.Scope) Scope { return Scope{hosts: s} }

// Hosts is for packages of this module: the scope as it is stored. That of a crawl has no host.
func (s Scope) Hosts() row.Scope { return s.hosts }

// Crawl returns the number of the crawl, and whether the scope is that of one.
func (s Scope) Crawl() (id uint32, ok bool) { return s.crawl, s.ofCrawl }

// Contains reports whether URLs of a host and crawl belong to a scope.
func (s Scope) Contains(host string, crawl uint32) bool {
	if s.ofCrawl {
		return s.crawl == crawl
	}
	return s.hosts.Contains(host)
}

// String returns the host key, the domain's name behind "*.", "*", or "crawl:" and the crawl's number.
func (s Scope) String() string {
	if s.ofCrawl {
		return fmt.Sprint("crawl:", s.crawl)
	}
	return s.hosts.String()
}

// Switch is a setting that is on, off, or left to wider scopes.
type Switch uint8

// The values of a Switch.
const (
	Unset Switch = iota
	On
	Off
)

// Limits bound what may be done. Zero fields do not.
//
// There are two kinds. Rule.Limits bound what the hosts of a scope do together; those of all scopes
// that contain a host apply, not only the most specific. Rule.HostLimits bound what each host of a
// scope does alone; only the most specific apply, as a whole: to exempt a host from those of a wider
// scope, give it limits too high to be reached. For the scope of a Crawl, Rule.Limits bound that crawl,
// independently of its hosts; a crawl that has reached one is not chosen for hand-outs.
//
// A period begins with the first hand-out, byte or failure that counts after the end of the one before,
// with counts of zero. Limits may be set below what is already used: they are then reached. While a
// scope, host or crawl has no Limits nothing is counted for it, and earlier counts may be forgotten.
type Limits struct {
	// Waiting is the number of URLs that may wait: Add refuses more. Leased and scheduled
	// URLs do not count, and entries whose time lies in the future are not refused: URLs
	// that become due, fail or are handed back always have room.
	Waiting int64
	// Served is the number of URLs that may be handed out. One that comes back
	// uncontacted does not count.
	Served int64
	// Bytes is the number of bytes that may be transferred (Outcome.Bytes). They are
	// counted when a lease ends, so leases that are out may exceed the limit.
	Bytes int64
	// Errors is the number of contacts that may fail: Done with Failed, and leases that
	// expire. They are counted when the lease ends.
	Errors int64
	// Depth is the greatest Entry.Depth that Add admits.
	Depth int
	// Period is the time after which Served, Bytes and Errors are counted from zero
	// again, 1 ms to 100 years. Zero means never.
	Period time.Duration
}
