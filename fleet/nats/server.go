// This file starts and ends the server of a node, and connects to it.

package nats

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet/peer"
)

const (
	// recordMost is the most bytes of a record or an entry.
	recordMost = 4 << 20
	// ping is how often a connection between servers is asked for a sign of life. It ends without two of them.
	ping = 2 * time.Second
	// bootTime is how long a server may take to start, with all that its folder has.
	bootTime = 2 * time.Minute
	// systemAccount is the account that may change who takes part, and the user of it.
	systemAccount = "$SYS"
)

// local is the server in this process, and connections to it that no network has; or only a connection to others.
type local struct {
	server *server.Server // or nil
	log    *logger
	conn   *nats.Conn
	system *nats.Conn
	held   io.Closer // the folder, or nil
}

// serve starts a server under a name. Without a store it only passes messages on: such a server takes no part in votes.
func serve(o *Options, name string, store bool) (*local, error) {
	set, err := settings(o, name, store)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", o.Peers[o.Node]) // the server would not say that it cannot
	if err != nil {
		return nil, err
	}
	_ = l.Close()
	s, err := server.NewServer(set)
	if err != nil {
		return nil, err
	}
	x := &local{server: s, log: &logger{to: o.Logger}}
	s.SetLoggerV2(x.log, false, false, false)
	if err := x.start(set.Cluster.Name != ""); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// settings are those of a server that only the other servers and this process can reach.
func settings(o *Options, name string, store bool) (*server.Options, error) {
	system := server.NewAccount(systemAccount)
	set := &server.Options{
		ServerName: name, DontListen: true, NoSigs: true, MaxPayload: recordMost + 1<<10, PingInterval: ping, MaxPingsOut: 2, ReconnectErrorReports: 60,
		JetStream: store, StoreDir: o.Dir, SyncAlways: true, JetStreamMaxStore: cmp.Or(o.Quota, peer.DefaultQuota), JetStreamMaxMemory: 64 << 20,
		Accounts: []*server.Account{system}, SystemAccount: systemAccount, NoAuthUser: "node",
		Users: []*server.User{{Username: "node", Password: "node"}, {Username: systemAccount, Password: systemAccount, Account: system}},
	}
	if len(o.Peers) == 1 { // a cluster of one never has a leader
		return set, nil
	}
	secure, err := o.TLS()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(o.Peers[o.Node])
	if err != nil {
		return nil, err
	}
	set.Cluster = server.ClusterOpts{Name: o.Fleet, Host: host, TLSConfig: secure, TLSTimeout: peer.AskTime.Seconds()}
	if set.Cluster.Port, err = strconv.Atoi(port); err != nil {
		return nil, err
	}
	for _, address := range o.Peers { // this one too: they are counted when a fleet begins
		set.Routes = append(set.Routes, &url.URL{Scheme: "nats", Host: address})
	}
	return set, nil
}

// start starts the server, and connects to it.
func (x *local) start(cluster bool) (err error) {
	started := make(chan struct{})
	go func() {
		x.server.Start()
		close(started)
	}()
	select {
	case <-started:
	case <-time.After(bootTime):
		return fmt.Errorf("the server has not started for %v", bootTime)
	}
	if err := x.log.refused(); err != nil {
		return err
	}
	if cluster { // the server itself would wait for a listener of clients, which it must not have
		x.server.StartRouting(started)
	}
	if err := x.log.refused(); err != nil {
		return err
	}
	own := nats.InProcessServer(x.server)
	if x.conn, err = nats.Connect("", own, nats.MaxReconnects(0)); err != nil {
		return err
	}
	x.system, err = nats.Connect("", own, nats.MaxReconnects(0), nats.UserInfo(systemAccount, systemAccount))
	return err
}

// close ends the server. What it leads goes to others.
func (x *local) close() {
	for _, c := range []*nats.Conn{x.conn, x.system} {
		if c != nil {
			c.Close()
		}
	}
	if x.server != nil {
		x.server.Shutdown()
		x.server.WaitForShutdown()
	}
	if x.held != nil {
		_ = x.held.Close()
	}
}

// failed returns why a server that has run stores nothing any more: nil if it does.
func (x *local) failed() error {
	if x.server.JetStreamEnabled() && x.server.Running() {
		return nil
	}
	err := errors.New("fleet: nats: the server takes part no more")
	if last := x.log.last.Load(); last != nil {
		err = fmt.Errorf("%w: %s", err, *last)
	}
	return err
}
