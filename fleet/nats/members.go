// This file says who takes part, in a row of the table for each node.
//
// A server is of the fleet as long as its row has it. To change that, it is removed from JetStream's group of all servers,
// which gives its streams to others, or to the next that comes.

package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet/peer"
)

// row is what the table has of a node. That of one that takes part no more is empty.
type row struct {
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
	Server  string `json:"server,omitempty"` // empty until a server has started that was let in

	revision uint64
}

// joinSubject is where a server asks for its row that was let in.
const joinSubject = "fleet.join"

// nodes returns the rows of all nodes.
func (e *Engine) nodes(ctx context.Context) (all map[string]row, err error) {
	found, _, err := e.state(ctx, e.table(), e.table()+".node.*")
	all = map[string]row{}
	for _, m := range found {
		r := row{revision: m.number}
		if err := json.Unmarshal(m.data, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", m.subject, err)
		}
		all[r.Node] = r
	}
	return all, err
}

func (e *Engine) putNode(ctx context.Context, r row) error {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = e.compareAndSet(ctx, e.table(), e.nodeSubject(r.Node), r.revision, b)
	}
	return err
}

// enlist makes this server that of its node when a fleet begins. Later it only looks whether it still is.
func (e *Engine) enlist(ctx context.Context) error {
	if len(e.o.Peers) == 1 {
		return nil
	}
	own := row{Node: e.o.Node, Address: e.o.Peers[e.o.Node], Server: e.server.Node()}
	for {
		all, err := e.nodes(ctx)
		if err != nil {
			return err
		}
		switch now := all[own.Node]; {
		case now.Server == own.Server:
			return nil
		case now.revision != 0 || !e.o.Begins():
			err = e.expel(ctx, own.Server) // it would count in votes
			return errors.Join(fmt.Errorf("%s takes part no more: node %s was removed, or has another folder now", e.o.Dir, own.Node), err)
		}
		if e.putNode(ctx, own) != nil && !pause(ctx, askAgain) {
			return context.Cause(ctx)
		}
	}
}

// settle waits until this server has its part of all streams, in place of those that are lost: then another may end.
func (e *Engine) settle(ctx context.Context) error {
	for {
		all, err := call(ctx, e.conn, "$JS.API.STREAM.NAMES", nil)
		whole := err == nil
		for _, stream := range all.Streams {
			whole = whole && e.isWhole(ctx, stream)
		}
		if whole {
			return nil
		}
		if !pause(ctx, 10*askAgain) {
			return fmt.Errorf("this server has not got its part of the streams yet: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// isWhole reports whether a stream has all its replicas, and this server, if it has one, all of the stream.
func (e *Engine) isWhole(ctx context.Context, stream string) bool {
	a, err := call(ctx, e.conn, "$JS.API.STREAM.INFO."+stream, nil)
	for _, r := range a.Cluster.Replicas {
		if r.Name == e.server.Name() && !r.Current {
			return false
		}
	}
	return err == nil && len(a.Cluster.Replicas)+1 >= a.Config.Replicas // and the leader
}

// welcome answers servers that ask whether they were let in.
func (e *Engine) welcome() error {
	_, err := e.conn.QueueSubscribe(joinSubject, joinSubject, func(m *nats.Msg) {
		var asks row
		if json.Unmarshal(m.Data, &asks) != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), peer.AskTime)
		defer cancel()
		all, err := e.nodes(ctx)
		if err != nil {
			return // it asks again
		}
		r := all[asks.Node]
		in := r.Address == asks.Address && (r.Server == "" || r.Server == asks.Server)
		if in && r.Server == "" {
			if r.Server = asks.Server; e.putNode(ctx, r) != nil {
				return
			}
		}
		if b, err := json.Marshal(in); err == nil {
			_ = m.Respond(b)
		}
	})
	return err
}

// join asks the others whether this server, with an empty folder, was let in.
func (x *local) join(ctx context.Context, o *Options) error {
	asks, err := json.Marshal(row{Node: o.Node, Address: o.Peers[o.Node], Server: x.server.Node()})
	if err != nil {
		return err
	}
	for {
		once, cancel := context.WithTimeout(ctx, 2*peer.AskTime)
		m, err := x.conn.RequestWithContext(once, joinSubject, asks)
		cancel()
		in := false
		if err == nil {
			err = json.Unmarshal(m.Data, &in)
		}
		switch {
		case err == nil && in:
			return o.May()
		case err == nil:
			return o.Stranger()
		case !pause(ctx, askAgain):
			return fmt.Errorf("no majority of %s says whether this machine was let in: %w", o.Names(), errors.Join(context.Cause(ctx), err))
		}
	}
}

// Admit lets a node in whose server has an empty folder and is reached at an address, HOST:PORT: a new
// one, or in place of the one of this name, whose folder is lost and must never be used again. It waits for a majority
// of the others, or until ctx ends. It may be repeated.
func (e *Engine) Admit(ctx context.Context, node, address string) error {
	all, err := e.nodes(ctx)
	if err != nil {
		return fmt.Errorf("fleet: nats: %w", err)
	}
	if len(all) == 0 {
		return errors.New("fleet: nats: a fleet that began with one machine cannot grow with this engine")
	}
	for name, r := range all {
		if r.Address == address && name != node {
			return fmt.Errorf("fleet: nats: %s is the address of node %s", address, name)
		}
	}
	r := all[node]
	if r.Address == address && r.Server == "" {
		return nil // it was let in, and has not started yet
	}
	err = e.expel(ctx, r.Server)
	if err == nil {
		err = e.putNode(ctx, row{Node: node, Address: address, revision: r.revision})
	}
	if err != nil {
		return fmt.Errorf("fleet: nats: node %s was not let in yet; repeat it: %w", node, err)
	}
	return nil
}

// Remove ends the part of a node, which may be gone already, or let in and not started. It waits as Admit does. The node
// never takes part again with its folder.
func (e *Engine) Remove(ctx context.Context, node string) (found bool, err error) {
	all, err := e.nodes(ctx)
	r := all[node]
	if found = r.Address != ""; err == nil && found {
		if err = e.expel(ctx, r.Server); err == nil {
			err = e.putNode(ctx, row{Node: node, revision: r.revision})
		}
	}
	if err != nil {
		return found, fmt.Errorf("fleet: nats: node %s was not removed: %w", node, err)
	}
	return found, nil
}

// expel removes a server from JetStream's group of all servers. There may be none.
func (e *Engine) expel(ctx context.Context, server string) error {
	for server != "" {
		_, err := call(ctx, e.system, "$JS.API.SERVER.REMOVE", map[string]string{"peer_id": server})
		if err == nil || is(err, notMember) {
			return nil
		}
		if !pause(ctx, 10*askAgain) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
	return nil
}
