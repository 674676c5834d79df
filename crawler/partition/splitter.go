// This file decides which node owns a host.

package partition

import (
	"slices"

	"github.com/dchest/siphash"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Splitter decides which node owns a host. It must be safe for concurrent use, and the same on all
// nodes.
type Splitter interface {
	// Owner returns the name of the node that owns a host, given by its host key in the frontier.
	Owner(host string) string
}

// Nodes is a Splitter that gives each node an equal share of the hosts. Make one with
// NewNodes. It is immutable and safe for concurrent use.
type Nodes struct {
	names  []string
	hashes []uint64
}

// NewNodes returns a Splitter for nodes with these names, in any order. Without names, all hosts
// belong to the node "".
func NewNodes(names ...string) *Nodes {
	n := &Nodes{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	for _, name := range n.names {
		n.hashes = append(n.hashes, siphash.Hash(0, 1, []byte(name)))
	}
	return n
}

// Names returns the nodes' names, sorted.
func (n *Nodes) Names() []string { return slices.Clone(n.names) }

// Owner returns the node with the highest hash of node and host (Thaler and Ravishankar, "Using
// name-based mappings to increase hit rates", 1998). It takes time proportional to the number of
// nodes.
func (n *Nodes) Owner(host string) string {
	best, owner := uint64(0), ""
	h := []byte(host)
	for i, name := range n.names {
		if x := siphash.Hash(n.hashes[i], 2, h); owner == "" || x > best {
			best, owner = x, name
		}
	}
	return owner
}

// ByDomain keeps the hosts of a registrable domain together, such as a.example.co.uk and
// b.example.co.uk: they often link to each other and share an address.
func ByDomain(s Splitter) Splitter { return byDomain{s} }

type byDomain struct{ Splitter }

func (b byDomain) Owner(host string) string {
	if domain, err := urlnorm.RegistrableDomain(host); err == nil {
		host = domain
	}
	return b.Splitter.Owner(host)
}
