// This file puts appends to the logs of several partitions into one write: its cost hardly depends on how many
// it has.

package etcd

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/seed-7440039f/frontier/fleet"
)

const (
	writesAtOnce = 2       // what comes while two are under way goes into the next
	appendsMost  = 32      // in a write
	bytesMost    = 1 << 20 // of them, unless one is longer: servers take 1.5 MiB by default
)

// appends are those of one server that wait.
type appends struct {
	kv    clientv3.KV
	going sync.WaitGroup

	mu     sync.Mutex
	waits  []*appending // guarded by mu
	writes int          // guarded by mu; under way
}

// appending is an append that waits.
type appending struct {
	partition int
	is        clientv3.Cmp
	then      []clientv3.Op
	size      int
	done      chan error
}

// add returns when a is written, or ctx ends.
func (x *appends) add(ctx context.Context, a *appending) error {
	x.mu.Lock()
	x.waits = append(x.waits, a)
	if x.writes < writesAtOnce {
		x.writes++
		x.going.Go(x.run)
	}
	x.mu.Unlock()
	select {
	case err := <-a.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run writes until nothing waits.
func (x *appends) run() {
	for some := x.take(); len(some) > 0; some = x.take() {
		x.write(some)
	}
}

// take returns the appends of the next write, one of each partition at most: etcd compares all before it makes
// any. Without appends the caller writes no more.
func (x *appends) take() []*appending {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	has := map[int]bool{}
	for size := 0; n < min(len(x.waits), appendsMost) && !has[x.waits[n].partition] && (n == 0 || size+x.waits[n].size <= bytesMost); n++ {
		has[x.waits[n].partition] = true
		size += x.waits[n].size
	}
	some := x.waits[:n:n]
	if x.waits = x.waits[n:]; n == 0 {
		x.waits = nil
		x.writes--
	}
	return some
}

// write makes each append whose comparison holds.
func (x *appends) write(some []*appending) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	ops := make([]clientv3.Op, len(some))
	for i, a := range some {
		ops[i] = clientv3.OpTxn([]clientv3.Cmp{a.is}, a.then, nil)
	}
	res, err := x.kv.Txn(ctx).Then(ops...).Commit()
	for i, a := range some {
		switch {
		case err != nil:
			a.done <- err
		case !res.Responses[i].GetResponseTxn().Succeeded:
			a.done <- fleet.ErrConflict
		default:
			a.done <- nil
		}
	}
}
