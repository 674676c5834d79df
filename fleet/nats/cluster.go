// This file uses NATS servers that others run.

package nats

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// Cluster says where NATS servers with JetStream are.
type Cluster struct {
	// Fleet is what the names of the fleet's streams have behind "frontier-", with = for each dot. Several fleets may share the
	// servers, or an account of them.
	Fleet string
	// URLs are those of all servers for their clients, as in tls://10.0.0.7:4222?monitor=8222: what they say of themselves
	// is at port 8222 of the same host, or the one that monitor names.
	URLs []string
	// TLS is for URLs that begin with tls, and for what those servers say of themselves. Nil means the authorities of the system.
	TLS *tls.Config
}

const (
	connectTime = 30 * time.Second
	monitorPort = "8222"
	// payloadLeast is what servers must take in one message: their default is not enough for the longest record.
	payloadLeast = 2 << 20
)

// Connect returns an engine on the servers of a cluster. They must sync always: what JetStream acknowledges otherwise is on
// its way to the disk for two minutes.
func Connect(ctx context.Context, o Cluster) (*Engine, error) {
	if !fleet.IsName(o.Fleet) {
		return nil, fmt.Errorf("fleet: nats: the fleet is %q; want a name of letters, digits, dots, underscores and hyphens", o.Fleet)
	}
	e := &Engine{
		local: &local{}, names: names("frontier-" + strings.ReplaceAll(o.Fleet, ".", "=") + "-"), servers: len(o.URLs), mayBegin: true, fails: make(chan error),
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	err := o.connect(ctx, e)
	if err == nil {
		_, err = e.barrier(ctx, e.table())
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("fleet: nats at %s: %w", strings.Join(o.URLs, ", "), err)
	}
	return e, nil
}

// connect connects an engine with servers, once those that answer have shown that they sync.
func (o *Cluster) connect(ctx context.Context, e *Engine) error {
	var all []string // one that does not answer now may do so later
	var away error
	reached := false
	set := []nats.Option{
		nats.Timeout(peer.AskTime), nats.PingInterval(ping), nats.MaxPingsOutstanding(2), nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // else it would send late what has been given up
	}
	for _, text := range o.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return err
		}
		if u.Scheme == "tls" {
			set = append(set, nats.Secure(o.TLS))
		}
		at := u.Scheme + "://" + u.Host
		all = append(all, at)
		c, err := nats.Connect(at, append(set[:len(set):len(set)], nats.NoReconnect())...)
		if err != nil {
			away = errors.Join(away, fmt.Errorf("%s: %w", at, err))
			continue
		}
		err = o.proves(ctx, u, c.ConnectedServerId())
		if few := c.MaxPayload(); err == nil && few < payloadLeast {
			err = fmt.Errorf("the server takes messages of %d bytes: its max_payload must be at least 2MB", few)
		}
		if c.Close(); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		reached = true
	}
	if !reached {
		return away
	}
	c, err := nats.Connect(strings.Join(all, ","), set...)
	if err == nil {
		e.conn = c
	}
	return err
}

// proves returns an error if a server does not say that it syncs always.
func (o *Cluster) proves(ctx context.Context, u *url.URL, id string) error {
	scheme, port := "http", cmp.Or(u.Query().Get("monitor"), monitorPort)
	if u.Scheme == "tls" {
		scheme = "https"
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+net.JoinHostPort(u.Hostname(), port)+"/varz", nil)
	if err != nil {
		return err
	}
	web := &http.Client{Timeout: peer.AskTime, Transport: &http.Transport{TLSClientConfig: o.TLS, DisableKeepAlives: true}}
	a, err := web.Do(q)
	if err != nil {
		return fmt.Errorf("the server does not say whether it syncs: %w", err)
	}
	defer a.Body.Close()
	var says struct {
		ID        string `json:"server_id"`
		JetStream struct {
			Config *struct {
				Syncs bool `json:"sync_always"`
			} `json:"config"`
		} `json:"jetstream"`
	}
	err = json.NewDecoder(a.Body).Decode(&says)
	switch {
	case err != nil:
		return fmt.Errorf("the server does not say whether it syncs: %s answers %s: %w", q.URL, a.Status, err)
	case says.ID != id:
		return fmt.Errorf("%s is that of another server: name the port of this one, as in ?monitor=8222", q.URL)
	case says.JetStream.Config == nil:
		return errors.New("the server has no JetStream")
	case !says.JetStream.Config.Syncs:
		return errors.New("the server acknowledges what it has not synced: its settings must have jetstream { sync_interval: always }")
	}
	return nil
}
