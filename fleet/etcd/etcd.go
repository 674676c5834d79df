// Package etcd is the engine of a fleet that its nodes bring with them: an etcd server in each process. Connect
// makes one of servers that others run.
//
// The table and the logs are keys of one Raft group. A write is on the disks of a majority of the nodes
// when it returns. So two of three nodes are enough, and the fleet stands still, without any loss, while
// there are fewer. Nothing but the other nodes can reach the servers: they listen for each other only.
package etcd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// Options configure a server. Of Peers, one with a folder that is not empty needs its own only.
type Options = peer.Options

const (
	tick     = 100 * time.Millisecond
	election = 2 * time.Second
	// history is how long old values of keys stay readable: for a node whose watch is late.
	history = 2 * time.Minute
	// page is the most records read at once, each of about a megabyte at most.
	page = 16
)

// Engine is a fleet.Engine on a server in this process, or on those of a Cluster.
type Engine struct {
	server  *embed.Etcd  // nil: there is none in this process
	failed  <-chan error // of the server
	client  *clientv3.Client
	scheme  string // of the servers' addresses
	appends appends
}

var _ fleet.Engine = (*Engine)(nil)

// Start starts a server, and waits until a majority of the servers has found together, or ctx ends.
func Start(ctx context.Context, o Options) (*Engine, error) {
	cfg, err := config(&o)
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	if err := begin(ctx, &o, cfg); err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	// StartEtcd would wait for another process to end, whatever becomes of ctx.
	held, err := bbolt.Open(filepath.Join(o.Dir, "member", "snap", "db"), 0o600, &bbolt.Options{ReadOnly: true, Timeout: 2 * time.Second})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("fleet: etcd: another process uses %s", o.Dir)
	} else if err == nil {
		_ = held.Close()
	}
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		if err = o.Has(); err != nil {
			break
		}
		e := &Engine{server: server, failed: server.Err(), client: v3client.New(server.Server), scheme: cfg.AdvertisePeerUrls[0].Scheme}
		e.appends.kv = e.client
		return e, nil
	case err = <-server.Err():
	case <-server.Server.StopNotify():
		err = errors.New("the server stopped: this machine was removed from the fleet, or the log says why")
	case <-ctx.Done():
		err = fmt.Errorf("no majority of %s yet: %w", o.Names(), context.Cause(ctx))
	}
	server.Close()
	return nil, fmt.Errorf("fleet: etcd: %w", err)
}

func config(o *Options) (*embed.Config, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	scheme := "http://"
	if o.Secure() {
		scheme = "https://"
	}
	at := url.URL{Scheme: strings.TrimSuffix(scheme, "://"), Host: o.Peers[o.Node]}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialClusterToken = o.Node, o.Dir, o.Fleet
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{at}, []url.URL{at}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.PeerTLSInfo = transport.TLSInfo{CertFile: o.Cert, KeyFile: o.Key, TrustedCAFile: o.CA, ClientCertAuth: o.Secure()}
	cfg.InitialCluster = o.List(scheme)
	cfg.TickMs, cfg.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "periodic", history.String()
	cfg.QuotaBackendBytes = cmp.Or(o.Quota, peer.DefaultQuota)
	cfg.MaxRequestBytes = 4 << 20
	log := zap.NewNop()
	if o.Logger != nil {
		log = zap.New(&core{log: o.Logger})
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return cfg, nil
}

// Failed returns a channel on which an error arrives if the server dies.
func (e *Engine) Failed() <-chan error { return e.failed }

// Close stops the server.
func (e *Engine) Close() error {
	err := e.client.Close()
	if e.server != nil {
		e.server.Close()
	}
	e.appends.going.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil // what its watches say
	}
	return err
}

func tableKey(key string) string { return "t/" + key }
func endKey(p int) string        { return fmt.Sprintf("e/%d", p) }
func logKey(p int, number uint64) string {
	return fmt.Sprintf("l/%d/%016x", p, number)
}

// Get is for the fleet.
func (e *Engine) Get(ctx context.Context, key string) (fleet.Entry, error) {
	a, err := e.client.Get(ctx, tableKey(key))
	if err != nil || len(a.Kvs) == 0 {
		return fleet.Entry{}, err
	}
	return fleet.Entry{Key: key, Value: a.Kvs[0].Value, Revision: uint64(a.Kvs[0].ModRevision)}, nil
}

// writeTime is how long a write may take. What was on its way to a leader that ended is lost, and etcd notices
// that 9 s later: until then nothing would be written.
const writeTime = 2 * election

// Put is for the fleet.
func (e *Engine) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	key = tableKey(key)
	a, err := e.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", int64(revision))).Then(clientv3.OpPut(key, string(value))).Commit()
	switch {
	case err != nil:
		return 0, err
	case !a.Succeeded:
		return 0, fleet.ErrConflict
	}
	return uint64(a.Header.Revision), nil
}

// Watch is for the fleet.
func (e *Engine) Watch(ctx context.Context, fn func([]fleet.Entry)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	prefix := tableKey("")
	first, err := e.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	var all []fleet.Entry
	for _, kv := range first.Kvs {
		all = append(all, fleet.Entry{Key: string(kv.Key[len(prefix):]), Value: kv.Value, Revision: uint64(kv.ModRevision)})
	}
	fn(all)
	leading := clientv3.WithRequireLeader(ctx) // a server without the others hears of nothing
	for a := range e.client.Watch(leading, prefix, clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision+1)) {
		if err := a.Err(); err != nil {
			return err
		}
		all = all[:0:0]
		for _, x := range a.Events {
			all = append(all, fleet.Entry{Key: string(x.Kv.Key[len(prefix):]), Value: x.Kv.Value, Revision: uint64(x.Kv.ModRevision)})
		}
		if len(all) > 0 {
			fn(all)
		}
	}
	return cmp.Or(ctx.Err(), errors.New("the watch ended"))
}

// Append is for the fleet.
func (e *Engine) Append(ctx context.Context, p int, last uint64, record []byte) (uint64, error) {
	is := clientv3.Compare(clientv3.CreateRevision(endKey(p)), "=", 0)
	if last != 0 {
		is = clientv3.Compare(clientv3.Value(endKey(p)), "=", number(last))
	}
	return last + 1, e.appends.add(ctx, &appending{
		partition: p, is: is, then: []clientv3.Op{clientv3.OpPut(endKey(p), number(last+1)), clientv3.OpPut(logKey(p, last+1), string(record))}, size: len(record),
		done: make(chan error, 1),
	})
}

func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// Last is for the fleet.
func (e *Engine) Last(ctx context.Context, p int) (uint64, []byte, error) {
	a, err := e.client.Txn(ctx).Then(clientv3.OpGet(endKey(p)),
		clientv3.OpGet(logKey(p, 0), clientv3.WithRange(logKey(p, 1<<64-1)), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(1))).Commit()
	if err != nil {
		return 0, nil, err
	}
	end, records := a.Responses[0].GetResponseRange().Kvs, a.Responses[1].GetResponseRange().Kvs
	if len(end) == 0 || len(end[0].Value) != 8 {
		return 0, nil, nil
	}
	n := binary.BigEndian.Uint64(end[0].Value)
	if len(records) > 0 && string(records[0].Key) == logKey(p, n) {
		return n, records[0].Value, nil
	}
	return n, nil, nil
}

// Read is for the fleet.
func (e *Engine) Read(ctx context.Context, p int, after, through uint64, fn func(uint64, []byte) error) error {
	for after < through {
		a, err := e.client.Get(ctx, logKey(p, after+1), clientv3.WithRange(logKey(p, through+1)), clientv3.WithLimit(page))
		if err != nil || len(a.Kvs) == 0 {
			return err
		}
		for _, kv := range a.Kvs {
			if _, err := fmt.Sscanf(string(kv.Key[strings.LastIndexByte(string(kv.Key), '/')+1:]), "%x", &after); err != nil {
				return fmt.Errorf("fleet: etcd: key %q: %w", kv.Key, err)
			}
			if err := fn(after, kv.Value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Purge is for the fleet.
func (e *Engine) Purge(ctx context.Context, p int, through uint64) error {
	_, err := e.client.Delete(ctx, logKey(p, 0), clientv3.WithRange(logKey(p, through+1)))
	return err
}
