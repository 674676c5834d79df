// Package etcd is the engine of a fleet that its nodes bring with them: an etcd server in each process.
//
// The table and the logs are keys of one Raft group. A write is on the disks of a majority of the nodes
// when it returns. So two of three nodes are enough, and the fleet stands still, without any loss, while
// there are fewer. Nothing but the other nodes can reach the servers: they listen for each other only.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
	"github.com/seed-7440039f/frontier/internal/faults"
)

// Options configure a server.
type Options struct {
	// Fleet names the fleet: servers of another refuse to talk.
	Fleet string
	// Node is this node's name, one of Peers.
	Node string
	// Peers has the address, HOST:PORT, of each node's server. A fleet begins when all of them are
	// there; from then on a majority is enough, and Admit and Remove say who takes part: of Peers, a server
	// with a folder that is not empty needs its own only. Three or five are sensible.
	Peers map[string]string
	// Dir is a folder of this server alone. It is made if there is none.
	Dir string
	// Cert, Key and CA are files with which servers prove to each other that they belong to the fleet.
	// Without them, every process that reaches an address of Peers may do everything.
	Cert, Key, CA string
	// Quota is the size of the server's database in bytes beyond which it takes no more. Zero means
	// 8 GiB. What logs no longer need is used again.
	Quota int64
	// Logger gets warnings and errors. Nil means none.
	Logger *slog.Logger
}

const (
	tick     = 100 * time.Millisecond
	election = 2 * time.Second
	// history is how long old values of keys stay readable: for a node whose watch is late.
	history = 2 * time.Minute
	// page is the most records read at once, each of about a megabyte at most.
	page = 16
)

// Engine is a fleet.Engine on a server in this process.
type Engine struct {
	server  *embed.Etcd
	client  *clientv3.Client
	scheme  string // of the servers' addresses
	appends appends
}

var _ fleet.Engine = (*Engine)(nil)

// Start starts a server, and waits until a majority of the servers has found together, or ctx ends.
func Start(ctx context.Context, o Options) (*Engine, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	if err := o.begin(ctx, cfg); err != nil {
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
		if err = os.Remove(filepath.Join(o.Dir, beginsName)); err != nil && !errors.Is(err, os.ErrNotExist) {
			break
		}
		e := &Engine{server: server, client: v3client.New(server.Server), scheme: cfg.AdvertisePeerUrls[0].Scheme}
		e.appends.kv = e.client
		return e, nil
	case err = <-server.Err():
	case <-server.Server.StopNotify():
		err = errors.New("the server stopped")
	case <-ctx.Done():
		err = fmt.Errorf("no majority of %s yet: %w", o.peers(), context.Cause(ctx))
	}
	server.Close()
	return nil, fmt.Errorf("fleet: etcd: %w", err)
}

func (o *Options) config() (*embed.Config, error) {
	var wrong faults.List
	wrong.If(o.Fleet == "" || o.Dir == "", "want a fleet and a folder")
	wrong.If(o.Peers[o.Node] == "", "node %q is none of %s", o.Node, o.peers())
	given := o.Cert != "" && o.Key != "" && o.CA != ""
	wrong.If(!given && o.Cert+o.Key+o.CA != "", "want a certificate, its key and an authority, or none of them")
	scheme := "http://"
	if given {
		scheme = "https://"
	}
	for name, address := range o.Peers {
		wrong.If(!fleet.IsAddress(address), "node %s is at %q; want HOST:PORT", name, address)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	at := url.URL{Scheme: strings.TrimSuffix(scheme, "://"), Host: o.Peers[o.Node]}
	cfg := embed.NewConfig()
	cfg.Name, cfg.Dir, cfg.InitialClusterToken = o.Node, o.Dir, o.Fleet
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{at}, []url.URL{at}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = nil, nil
	cfg.PeerTLSInfo = transport.TLSInfo{CertFile: o.Cert, KeyFile: o.Key, TrustedCAFile: o.CA, ClientCertAuth: given}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.Peers)) {
		all = append(all, name+"="+scheme+o.Peers[name])
	}
	cfg.InitialCluster = strings.Join(all, ",")
	cfg.TickMs, cfg.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	cfg.AutoCompactionMode, cfg.AutoCompactionRetention = "periodic", history.String()
	cfg.QuotaBackendBytes = cmp.Or(o.Quota, 8<<30)
	cfg.MaxRequestBytes = 4 << 20
	log := zap.NewNop()
	if o.Logger != nil {
		log = zap.New(&core{log: o.Logger})
	}
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return cfg, nil
}

// TLS returns how other connections among the nodes can be protected in the same way: nil if there are no
// certificates.
func (o *Options) TLS() (*tls.Config, error) {
	if o.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	b, err := os.ReadFile(o.CA)
	all := x509.NewCertPool()
	if err == nil && !all.AppendCertsFromPEM(b) {
		err = fmt.Errorf("there is no certificate in %s", o.CA)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	host, _, _ := net.SplitHostPort(o.Peers[o.Node])
	b, _ = os.ReadFile(o.Cert)
	between := x509.NewCertPool()
	between.AppendCertsFromPEM(b)
	for as, use := range map[string]x509.ExtKeyUsage{"a server": x509.ExtKeyUsageServerAuth, "a client": x509.ExtKeyUsageClientAuth} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: all, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			return nil, fmt.Errorf("fleet: etcd: the certificate in %s is not one of %s at %s that %s vouches for: %w", o.Cert, as, host, o.CA, err)
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: all, ClientCAs: all, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}, nil
}

// peers lists the nodes for messages.
func (o *Options) peers() string { return strings.Join(slices.Sorted(maps.Keys(o.Peers)), ", ") }

// Failed returns a channel on which an error arrives if the server dies.
func (e *Engine) Failed() <-chan error { return e.server.Err() }

// Close stops the server.
func (e *Engine) Close() error {
	err := e.client.Close()
	e.server.Close()
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
	for a := range e.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(first.Header.Revision+1)) {
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
