// This file keeps what a node has seen of the table, and when, by its own clock.
//
// What is seen may be late, so nothing is allowed by it: it only says what to try. The one thing that
// counts is how long ago an entry was seen to change, which is never more than how long ago it changed.

package fleet

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// Keys of the table.
const (
	configKey = "config"
	nodeKey   = "node/"  // a node's name follows
	partKey   = "part/"  // a partition's number follows in all of these
	boundKey  = "bound/" // how long leases may last
	copyKey   = "copy/"  // the latest copy
	haveKey   = "have/"  // and, after a slash, a node: the copy that it has
)

// sessionRow is the entry of a node: its latest session. Those before are dead.
type sessionRow struct {
	Node    string `json:"node"`
	Session string `json:"session"`
	Address string `json:"address,omitempty"` // of Handler
	Count   uint64 `json:"count"`             // of renewals
	Leaving bool   `json:"leaving,omitempty"` // it takes no more partitions
	Dead    bool   `json:"dead,omitempty"`    // for good
	Gone    bool   `json:"gone,omitempty"`    // the node was removed: operators need not see it
}

// partRow is the entry of a partition.
type partRow struct {
	Session  string        `json:"session"`
	Claim    string        `json:"claim"`              // a name of this claim alone
	Open     bool          `json:"open,omitempty"`     // its frontier works
	Epoch    uint64        `json:"epoch,omitempty"`    // the owner's, if it is open
	Hold     time.Duration `json:"hold_ns,omitempty"`  // and how long leases of earlier owners may last
	Released bool          `json:"released,omitempty"` // the owner has stopped for good
}

// boundRow says that no lease which is out ends later than For after the row was written by the owner of an epoch.
type boundRow struct {
	Epoch uint64        `json:"epoch"`
	For   time.Duration `json:"for_ns"`
}

// copyRow is the entry of a copy: it has all changes up to one, and what the log has behind Last.
type copyRow struct {
	Name   string `json:"name"`
	Change uint64 `json:"change"`
	Last   uint64 `json:"last"`
}

// seen is an entry and when it was seen to change.
type seen struct {
	Entry
	at  time.Duration
	old bool // it was there when this node began to look: when it changed is not known
	row any  // what Value says, once it was asked for
}

// view is what a node has seen of the table.
type view struct {
	elapsed func() time.Duration

	mu      sync.Mutex
	entries map[string]seen // guarded by mu
	nodes   []member        // guarded by mu; in order; nil: to be found out
	alive   []member        // guarded by mu; those that are not dead
	changed chan struct{}   // guarded by mu; closed at the next change
}

func newView(elapsed func() time.Duration) *view {
	return &view{elapsed: elapsed, entries: map[string]seen{}, changed: make(chan struct{})}
}

// take takes in changes that were seen just now.
func (v *view) take(entries []Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, old := v.elapsed(), len(v.entries) == 0
	for _, e := range entries {
		if e.Revision > v.entries[e.Key].Revision {
			v.entries[e.Key] = seen{e, now, old, nil}
			if strings.HasPrefix(e.Key, nodeKey) {
				v.nodes = nil
			}
		}
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// wait returns a channel that is closed at the next change.
func (v *view) wait() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// get reads an entry into row, and returns it. An entry is asked for much more often than it changes.
func get[T any](v *view, key string, row *T) (seen, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return getLocked(v, key, row)
}

func getLocked[T any](v *view, key string, row *T) (seen, bool) {
	e, ok := v.entries[key]
	known, read := e.row.(*T)
	if ok && !read {
		known = new(T)
		if json.Unmarshal(e.Value, known) != nil {
			return e, false
		}
		e.row = known
		v.entries[key] = e
	}
	if ok {
		*row = *known
	}
	return e, ok
}

// member is a session as it was seen.
type member struct {
	sessionRow
	at       time.Duration
	revision uint64
}

// members returns the sessions that are not dead. The caller must not change the list.
func (v *view) members() []member {
	_, alive := v.sessions()
	return alive
}

// sessions returns the latest session of each node, and those of them that are not dead.
func (v *view) sessions() (all, alive []member) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nodes == nil {
		v.nodes, v.alive = []member{}, nil
		for key := range v.entries {
			var r sessionRow
			if !strings.HasPrefix(key, nodeKey) {
				continue
			} else if e, ok := getLocked(v, key, &r); ok {
				v.nodes = append(v.nodes, member{r, e.at, e.Revision})
			}
		}
		slices.SortFunc(v.nodes, func(a, b member) int { return strings.Compare(a.Node, b.Node) })
		v.alive = slices.DeleteFunc(slices.Clone(v.nodes), func(m member) bool { return m.Dead })
	}
	return v.nodes, v.alive
}

// isDead reports whether a session was seen to be dead that was alive at a revision. A node has one
// session after the other, and what was seen of it may be older than that revision.
func (v *view) isDead(session string, revision uint64) bool {
	node, _, _ := strings.Cut(session, "/")
	var r sessionRow
	e, ok := get(v, nodeKey+node, &r)
	return ok && (r.Session == session && r.Dead || r.Session != session && e.Revision > revision)
}
