// This file is a node that serves the frontier whenever it owns it.

package crossing

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/internal/lasting"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Served is what a frontier is served with while this machine owns it.
type Served struct {
	fleet.Opening
	// LeasesNow is what the clock shows now that Node.Leases was written by. Zero: it is this machine's.
	LeasesNow time.Time
	// Listeners get the clients, by the names of Add.
	Listeners map[string]net.Listener
	// Ready must be called when the listeners are served.
	Ready func()
	// Stop ends the node in order.
	Stop func()
	// Operate answers operators at Path.
	Operate http.Handler
}

// Node configures Run.
type Node struct {
	// Fleet configures the node. Run sets Address, Client and Open.
	Fleet fleet.Options
	// Inside is where the other machines reach this one. Run closes it.
	Inside net.Listener
	// Local is where operators of this machine reach it, whichever has the frontier. Run closes it. Nil: nowhere.
	Local net.Listener
	// Members are changed by operators. Nil: they cannot be.
	Members Members
	// Failed has an error if the engine fails.
	Failed <-chan error
	// Leases returns the file in which Serve keeps which leases clients of a partition have.
	Leases func(partition int) string
	// Serve serves the frontier until ctx ends.
	Serve func(ctx context.Context, s Served) error
	// Grace is how long the end of Serve may take.
	Grace time.Duration
}

// Run makes this machine a node of the fleet until ctx ends, and then hands over what it owns.
func (x *Crossing) Run(ctx context.Context, n Node) error {
	if err := errors.Join(unit.CheckAll("", n)...); err != nil {
		return fmt.Errorf("crossing: %w", err)
	}
	defer n.Inside.Close()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case err := <-n.Failed:
			stop(err)
		case <-ctx.Done():
		}
	}()
	client, scheme, at := &http.Client{}, "http://", n.Inside
	if x.o.Inside != nil {
		client.Transport, scheme, at = &http.Transport{TLSClientConfig: x.o.Inside}, "https://", tls.NewListener(n.Inside, x.o.Inside)
	}
	n.Fleet.Address, n.Fleet.Client = scheme+n.Inside.Addr().String(), client
	n.Fleet.Open = func(_ context.Context, o fleet.Opening) (fleet.Opened, error) { return x.own(o, n, stop) }
	node, err := fleet.Join(ctx, n.Fleet)
	if err != nil && ctx.Err() != nil {
		return failure(ctx)
	}
	if err != nil {
		return err
	}
	x.mu.Lock()
	x.node, x.client, x.members, x.stop = node, client, n.Members, stop
	x.mu.Unlock()
	operators := http.NewServeMux()
	operators.Handle(Path, x)
	operators.HandleFunc("GET "+lasting.Path, lasting.UntilEnd)
	web, local := x.server(x.inside(node)), x.server(operators)
	go func() { _ = web.Serve(at) }()
	defer web.Close()
	if n.Local != nil {
		go func() { _ = local.Serve(n.Local) }()
		defer func() { // who stops this machine gets an answer
			last, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = local.Shutdown(last)
			_ = local.Close()
		}()
	}
	x.log.Info("joined", "node", n.Fleet.Node, "address", n.Inside.Addr().String())
	<-ctx.Done()
	if why := failure(ctx); why != nil {
		node.Close()
		return why
	}
	x.log.Info("stopping: what is owned here is handed over")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.Grace+n.Fleet.TTL)
	defer cancel()
	if err := node.Leave(end); err != nil {
		x.log.Warn("stopped without handing over: nothing that was acknowledged is lost, and a majority of the machines goes on as after a crash", "error", err)
	}
	return nil
}

// failure returns why a context has ended, if not because it was asked to.
func failure(ctx context.Context) error {
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		return why
	}
	return nil
}

// owned is the frontier while it is this machine's.
type owned struct {
	x         *Crossing
	partition int
	leases    string
	stop      context.CancelFunc
	ended     chan error
}

// own serves the frontier. If it ends by itself, so does the node.
func (x *Crossing) own(o fleet.Opening, n Node, fail func(error)) (fleet.Opened, error) {
	leases := n.Leases(o.Partition)
	if err := os.Remove(leases); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var now time.Time
	if len(o.Leases) >= 8 {
		now = time.UnixMilli(int64(binary.BigEndian.Uint64(o.Leases))) // or a little later: when in doubt, wait
		if err := os.WriteFile(leases, o.Leases[8:], 0o600); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &owned{x: x, partition: o.Partition, leases: leases, stop: stop, ended: make(chan error, 1)}
	here, ready := x.listen(o.Partition), make(chan struct{})
	go func() {
		err := n.Serve(ctx, Served{Opening: o, LeasesNow: now, Listeners: here, Ready: sync.OnceFunc(func() { close(ready) }), Stop: func() { fail(nil) }, Operate: x})
		for _, l := range here {
			_ = l.Close()
		}
		if w.ended <- err; ctx.Err() == nil {
			fail(err)
		}
	}()
	select {
	case <-ready:
		return w, nil
	case err := <-w.ended:
		stop()
		return nil, err
	}
}

// Release ends what is served in order, and returns the leases that clients have, behind this machine's time.
func (w *owned) Release(context.Context) ([]byte, error) {
	w.stop()
	if err := <-w.ended; err != nil {
		return nil, err
	}
	b, err := os.ReadFile(w.leases)
	return append(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())), b...), err
}

// Close ends it at once.
func (w *owned) Close() error {
	w.x.cut(w.partition)
	w.stop()
	return <-w.ended
}
