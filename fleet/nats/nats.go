// Package nats is an engine of a fleet that its nodes bring with them: a NATS server with JetStream in each process. Connect
// uses servers that others run.
//
// The table and the log of each partition are streams, each a Raft group with replicas on three of the nodes, or on five
// if the fleet began with more than four. A write is on the disks of a majority of them when it returns: the servers sync
// always, which JetStream does only when asked to. So two of three nodes are enough, and the
// fleet stands still, without any loss, while there are fewer. Nothing but the other nodes can reach the servers: they
// listen for each other only.
//
// When the leader of a group dies, its writes wait for 4 to 9 seconds: JetStream's times cannot be set. A fleet of one node
// has no groups, and cannot grow.
package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/peer"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Options configure a server. Peers has at least one other node that runs, unless the fleet has only this one.
type Options = peer.Options

// Engine is a fleet.Engine on a server in this process, or on others.
type Engine struct {
	*local
	names
	o        *Options // nil on others
	servers  int      // over which new streams are spread
	mayBegin bool     // there may be no table yet
	known    sync.Map // streams that there are, by name

	fails chan error
	end   context.CancelFunc // of the goroutine that looks for failures
	ended sync.WaitGroup
}

var _ fleet.Engine = (*Engine)(nil)

const (
	// failAgain is how often a server is looked at for failures.
	failAgain = 100 * time.Millisecond
	// lookAgain is how often a watch looks for changes without a hint.
	lookAgain = time.Second
)

// Start starts a server, and waits until a majority of the servers has found together, or ctx ends.
func Start(ctx context.Context, o Options) (*Engine, error) {
	e, err := start(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("fleet: nats: %w", err)
	}
	return e, nil
}

func start(ctx context.Context, o *Options) (*Engine, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	held, err := durablefs.Lock(o.Dir) // JetStream does not
	if err != nil {
		return nil, err
	}
	name, err := begin(ctx, o)
	var x *local
	if err == nil {
		x, err = serve(o, name, true)
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	x.held = held
	e := &Engine{local: x, o: o, servers: len(o.Peers), mayBegin: o.Begins() || len(o.Peers) == 1, fails: make(chan error, 1)}
	err = x.say(o, func() peer.Stage { return peer.Begun })
	if err == nil {
		if _, err = e.barrier(ctx, e.table()); err != nil {
			err = fmt.Errorf("no majority of %s yet: %w", o.Names(), err)
		}
	}
	if err == nil {
		err = e.enlist(ctx)
	}
	if err == nil && o.Begins() {
		err = e.settle(ctx)
	}
	if err == nil {
		err = errors.Join(o.Has(), e.welcome())
	}
	if err != nil {
		x.close()
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	e.end = end
	e.ended.Go(func() { e.look(life) })
	return e, nil
}

// look waits until the server has failed, or ctx ends.
func (e *Engine) look(ctx context.Context) {
	for pause(ctx, failAgain) {
		if err := e.failed(); err != nil {
			e.fails <- err
			return
		}
	}
}

// Failed returns a channel on which an error arrives if the server in this process dies.
func (e *Engine) Failed() <-chan error { return e.fails }

// Close stops the server in this process, or the connection to others.
func (e *Engine) Close() error {
	if e.end != nil {
		e.end()
		e.ended.Wait()
	}
	e.close()
	return nil
}

// Get is for the fleet.
func (e *Engine) Get(ctx context.Context, key string) (fleet.Entry, error) {
	found, _, err := e.state(ctx, e.table(), e.keySubject(key))
	if err != nil || len(found) == 0 {
		return fleet.Entry{}, err
	}
	return fleet.Entry{Key: key, Value: found[0].data, Revision: found[0].number}, nil
}

// Put is for the fleet.
func (e *Engine) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return e.compareAndSet(ctx, e.table(), e.keySubject(key), revision, value)
}

// Watch is for the fleet.
func (e *Engine) Watch(ctx context.Context, fn func([]fleet.Entry)) error {
	hints := make(chan *nats.Msg, 64) // what does not fit is left out: the next look finds it
	sub, err := e.conn.ChanSubscribe(e.changed(), hints)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	found, seen, err := e.state(ctx, e.table(), e.table()+".key.*")
	for err == nil {
		var all []fleet.Entry
		if all, err = entries(found); err == nil {
			fn(all)
			found, seen, err = e.changes(ctx, seen, hints)
		}
	}
	return err
}

// changes waits for entries with revisions after seen: it looks after each hint, and from time to time.
func (e *Engine) changes(ctx context.Context, seen uint64, hints <-chan *nats.Msg) (found []message, through uint64, err error) {
	for ctx.Err() == nil {
		select {
		case <-hints:
			pause(ctx, askAgain) // until the replica here has it
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
		if e.conn.IsClosed() {
			return nil, 0, errors.New("fleet: nats: the server has ended")
		}
		found, through, err := e.latest(ctx, e.table(), seen+1, e.table()+".key.*")
		if err == nil && len(found) > 0 {
			return found, max(seen, through), nil
		}
	}
	return nil, 0, context.Cause(ctx)
}

// entries are those of messages of the table.
func entries(found []message) (all []fleet.Entry, err error) {
	for _, m := range found {
		key, err := nameOf(m.subject)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet.Entry{Key: key, Value: m.data, Revision: m.number})
	}
	return all, nil
}

// Append is for the fleet.
func (e *Engine) Append(ctx context.Context, p int, last uint64, record []byte) (uint64, error) {
	return e.compareAndSet(ctx, e.logOf(p), e.recordSubject(p), last, record)
}

// Last is for the fleet.
func (e *Engine) Last(ctx context.Context, p int) (uint64, []byte, error) {
	end, purged, err := e.last(ctx, p)
	if err != nil || end.number <= purged {
		return end.number, nil, err
	}
	return end.number, end.data, nil
}

// last returns the last record of a log, which is always there, and the number through which all count as purged.
func (e *Engine) last(ctx context.Context, p int) (end message, purged uint64, err error) {
	found, _, err := e.state(ctx, e.logOf(p), e.recordSubject(p), e.purgedSubject(p))
	for _, m := range found {
		if m.subject == e.recordSubject(p) {
			end = m
		} else if purged, err = strconv.ParseUint(string(m.data), 10, 64); err != nil {
			return message{}, 0, fmt.Errorf("fleet: nats: %s: %w", m.subject, err)
		}
	}
	return end, purged, err
}

// Read is for the fleet.
func (e *Engine) Read(ctx context.Context, p int, after, through uint64, fn func(uint64, []byte) error) error {
	end, purged, err := e.last(ctx, p)
	if err != nil {
		return err
	}
	after, through = max(after, purged), min(through, end.number)
	for after < through {
		found, _, err := e.direct(ctx, e.logOf(p), map[string]any{"next_by_subj": e.recordSubject(p), "seq": after + 1, "batch": pageRecords, "max_bytes": pageBytes})
		if err != nil && !pause(ctx, askAgain) { // a replica may be behind, or none may answer
			return errors.Join(context.Cause(ctx), err)
		}
		for _, m := range found {
			if m.number > through {
				return nil
			}
			if err := fn(m.number, m.data); err != nil {
				return err
			}
			after = m.number
		}
	}
	return nil
}

// Purge is for the fleet. The last record stays, because its number is the end of the log to the servers: it only counts as purged.
func (e *Engine) Purge(ctx context.Context, p int, through uint64) error {
	end, purged, err := e.last(ctx, p)
	if err != nil || end.number == 0 {
		return err
	}
	if through >= end.number && purged < end.number {
		if _, err := e.publish(ctx, e.purgedSubject(p), nil, strconv.AppendUint(nil, end.number, 10)); err != nil {
			return err
		}
	}
	_, err = call(ctx, e.conn, "$JS.API.STREAM.PURGE."+e.logOf(p), map[string]uint64{"seq": min(through+1, end.number)})
	return err
}
