// This file uses etcd servers that others run.

package etcd

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// Cluster says where etcd servers are.
type Cluster struct {
	// Fleet is how the keys of the fleet begin. Several fleets may share the servers.
	Fleet string
	// URLs are those of all servers for their clients. Their metrics are at /metrics there.
	URLs []string
	// TLS is for URLs that begin with https. Nil means the authorities of the system.
	TLS *tls.Config
}

const (
	connectTime = 30 * time.Second
	syncTime    = 5 * time.Second
	// A server that says nothing is noticed after both. Servers allow no shorter time.
	aliveAgain, aliveTime = 5 * time.Second, 3 * time.Second
)

// Connect returns an engine on the servers of a cluster. They must have synced a write: with --unsafe-no-fsync
// etcd acknowledges what a loss of power takes back.
func Connect(ctx context.Context, o Cluster) (*Engine, error) {
	if !fleet.IsName(o.Fleet) {
		return nil, fmt.Errorf("fleet: etcd: the fleet is %q; want a name of letters, digits, dots, underscores and hyphens", o.Fleet)
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: o.URLs, TLS: o.TLS, DialKeepAliveTime: aliveAgain, DialKeepAliveTimeout: aliveTime, PermitWithoutStream: true,
		MaxCallSendMsgSize: 4 << 20, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("fleet: etcd: %w", err)
	}
	prefix := "frontier/" + o.Fleet + "/"
	c.KV, c.Watcher = namespace.NewKV(c.KV, prefix), namespace.NewWatcher(c.Watcher, prefix)
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := o.sync(ctx, c); err != nil {
		return nil, fmt.Errorf("fleet: etcd at %s: %w", strings.Join(o.URLs, ", "), errors.Join(err, c.Close()))
	}
	e := &Engine{client: c}
	e.appends.kv = c
	return e, nil
}

// sync returns an error if a server acknowledges a write that it does not sync.
func (o *Cluster) sync(ctx context.Context, c *clientv3.Client) (err error) {
	if _, err := c.Get(ctx, "synced"); err != nil {
		return err
	}
	web := &http.Client{Timeout: peer.AskTime, Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}}
	before := map[string]float64{}
	for _, url := range o.URLs {
		n, failed := syncs(ctx, web, url)
		if failed == nil {
			before[url] = n
		}
		err = errors.Join(err, failed)
	}
	if len(before) == 0 {
		return fmt.Errorf("no server says whether it syncs: %w", err)
	}
	if _, err := c.Put(ctx, "synced", time.Now().UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	for url, was := range before {
		for end := time.Now().Add(syncTime); ; {
			n, err := syncs(ctx, web, url)
			if n > was {
				break
			}
			if time.Now().After(end) || ctx.Err() != nil {
				return cmp.Or(err, fmt.Errorf("the server at %s acknowledges what it has not synced: it must run without --unsafe-no-fsync", url))
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// syncs returns how often a server has synced its log.
func syncs(ctx context.Context, web *http.Client, url string) (float64, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	a, err := web.Do(q)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	const name = "etcd_disk_wal_fsync_duration_seconds_count "
	for in := bufio.NewScanner(a.Body); in.Scan(); {
		if n, ok := strings.CutPrefix(in.Text(), name); ok {
			return strconv.ParseFloat(n, 64)
		}
	}
	return 0, fmt.Errorf("%s/metrics answers %s, without %s", url, a.Status, name)
}
