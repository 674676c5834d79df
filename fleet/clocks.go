// This file compares the clocks of nodes in the one way that is sound: what a clock shows was shown between the
// question and its answer, so the difference is known to half of that time.

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"time"
)

const (
	maxApart   = time.Second // two clocks may be
	clockEvery = time.Minute
	clockWait  = 2 * time.Second
)

// clockSeen is by how much another node's clock is ahead of this node's, and how far from that it may be.
type clockSeen struct{ ahead, within time.Duration }

// askClock asks a node what its clock shows.
func (n *Node) askClock(ctx context.Context, m member) (c clockSeen, err error) {
	ctx, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	c.within = math.MaxInt64
	for range 3 { // the first answer comes late, because it needs a connection
		var theirs time.Time
		began, ours := n.o.elapsed(), n.o.now()
		if err := n.request(ctx, m.Address, "clock", func(body io.Reader) error { return json.NewDecoder(body).Decode(&theirs) }); err != nil {
			return c, err
		}
		if half := (n.o.elapsed() - began + 1) / 2; half < c.within {
			c = clockSeen{theirs.Sub(ours) - half, half}
		}
	}
	return c, nil
}

// compareClocks compares this node's clock with those of the others that are alive. The error names those that
// are surely wrong. What cannot be known is logged.
func (n *Node) compareClocks(ctx context.Context, with func(member) bool) error {
	var all sync.WaitGroup
	var wrong []error // guarded by n.mu
	for _, m := range n.view.members() {
		if m.Node == n.o.Node || m.Address == "" || !with(m) {
			continue
		}
		all.Go(func() {
			c, err := n.askClock(ctx, m)
			first, second, apart := m.Node, n.o.Node, c.ahead
			if apart < 0 {
				first, second, apart = second, first, -apart
			}
			if err == nil && apart-c.within <= maxApart && apart+c.within > maxApart {
				err = fmt.Errorf("it is ahead by %v, give or take %v", c.ahead, c.within)
			}
			if err != nil {
				n.log.Warn("fleet: whether a clock is right is not known", "node", m.Node, "error", err)
				return
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.clocks[m.Node] = c; apart-c.within > maxApart {
				wrong = append(wrong, fmt.Errorf("the clock of node %s is ahead of that of node %s by %v, give or take %v; want at most %v", first, second, apart.Round(time.Millisecond), c.within.Round(time.Microsecond), maxApart))
			}
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

// meet compares clocks before the node claims anything: with the nodes that were there before its session.
func (n *Node) meet(ctx context.Context, s *session) error {
	first := s.revision
	soon, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	for pause(soon, 10*time.Millisecond) {
		if e, _ := get(n.view, nodeKey+n.o.Node, &sessionRow{}); e.Revision >= first {
			return n.compareClocks(ctx, func(m member) bool { return m.revision < first || m.Count > 1 })
		}
	}
	n.log.Warn("fleet: whether a clock is right is not known", "error", "the table was not seen in time")
	return nil
}

// watchClocks warns of clocks that drift.
func (n *Node) watchClocks() {
	for pause(n.life, clockEvery) {
		if err := n.compareClocks(n.life, func(member) bool { return true }); err != nil {
			n.log.Warn("fleet: clocks differ", "error", err)
		}
	}
}
