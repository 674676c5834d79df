// Package rendezvous divides names among nodes by rendezvous hashing (Thaler and Ravishankar, "Using
// name-based mappings to increase hit rates", 1998): when one of n nodes leaves, only its names move,
// evenly to the others; one that joins gets its share from all.
package rendezvous

import (
	"slices"

	"github.com/dchest/siphash"
)

// Nodes gives each node an equal share of all names. It is immutable and safe for concurrent use.
type Nodes struct {
	names  []string
	hashes []uint64
}

// New returns the Nodes with these names, whose order does not matter.
func New(names ...string) *Nodes {
	n := &Nodes{names: slices.Compact(slices.Sorted(slices.Values(names)))}
	for _, name := range n.names {
		n.hashes = append(n.hashes, siphash.Hash(0, 1, []byte(name)))
	}
	return n
}

// Owner returns the node with the highest hash of node and name, in time proportional to the number of
// nodes; "" if there is none.
func (n *Nodes) Owner(name string) string {
	best, owner := uint64(0), ""
	b := []byte(name)
	for i, node := range n.names {
		if x := siphash.Hash(n.hashes[i], 2, b); owner == "" || x > best {
			best, owner = x, node
		}
	}
	return owner
}
