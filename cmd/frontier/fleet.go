// This file makes a server one of several machines that serve one frontier together.

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/crossing"
	"github.com/seed-7440039f/frontier/fleet/etcd"
	"github.com/seed-7440039f/frontier/fleet/nats"
	"github.com/seed-7440039f/frontier/fleet/peer"
	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/urlfrontier"
)

// fleetLease is the longest lease of a fleet unless -max-lease says otherwise: when a node dies, no host is
// contacted until the leases that it had handed out have ended.
const fleetLease = 2 * time.Minute

// engine is what the machines of a fleet share, with a server in each of them.
type engine interface {
	fleet.Engine
	crossing.Members
	Failed() <-chan error
	Close() error
}

// engines start the engines of a fleet, by name. The folder of a machine has a folder of that name.
var engines = map[string]func(context.Context, peer.Options) (engine, error){
	"etcd": func(ctx context.Context, o peer.Options) (engine, error) { return etcd.Start(ctx, o) },
	"nats": func(ctx context.Context, o peer.Options) (engine, error) { return nats.Start(ctx, o) },
}

// engineOf returns the name of the engine that a folder knows: none if it belongs to no fleet.
func engineOf(dir string) string {
	for name := range engines {
		if exists(filepath.Join(dir, name)) {
			return name
		}
	}
	return ""
}

// askFleet asks the machine whose folder this is.
func askFleet(ctx context.Context, dir, method, query string) (state *fleet.State, err error) {
	if dir == "" {
		return nil, usageError("which machine? Name its folder with -dir, or in FRONTIER_DIR")
	}
	path, err := socketPath(filepath.Join(dir, "fleet"))
	if err != nil || !exists(path) {
		return nil, join(err, usageError(fmt.Sprintf("no machine of a fleet runs in %q, or it has not joined yet: its log says what it waits for", dir)))
	}
	c := console.Dial(path)
	defer c.Close()
	err = c.Ask(ctx, method, crossing.Path+query, nil, &state)
	return state, err
}

// stopMachine ends the process of the machine whose folder this is: the folder's Console may be another machine's.
func stopMachine(ctx context.Context, cmd *cli.Command, dir string) error {
	s, err := askFleet(ctx, dir, "GET", "")
	if err != nil {
		return err
	}
	path, err := socketPath(filepath.Join(dir, "fleet"))
	if err != nil {
		return err
	}
	machine := console.Dial(path)
	defer machine.Close()
	return awaitEnd(ctx, machine, func() error {
		if _, err := askFleet(ctx, dir, "POST", "?stop="+s.Node); err != nil {
			return err
		}
		return newPrinter(cmd).result(console.Result{Said: "machine " + s.Node + " stops, and hands over what it has"})
	})
}

func drainCommand() *cli.Command {
	return &cli.Command{
		Name: "drain", Usage: "let a machine of a fleet hand the frontier over, and take it no more until it is started again",
		Flags: []cli.Flag{dirFlag(), jsonFlag(), &cli.BoolFlag{Name: "back", Usage: "let it take the frontier again"}},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if err := noMore(cmd.Args().Slice()); err != nil {
				return err
			}
			end, back := time.Now().Add(time.Minute), cmd.Bool("back")
			s, err := askFleet(ctx, cmd.String("dir"), "GET", "")
			if err == nil {
				s, err = askFleet(ctx, cmd.String("dir"), "POST", fmt.Sprintf("?drain=%s&back=%v", s.Node, back))
			}
			out := func(n fleet.NodeState) bool { return n.Node == s.Node && n.Draining }
			here := func(p fleet.PartitionState) bool { return p.Owner == "" || p.Owner == s.Node || p.State == "opening" }
			for err == nil && (back && slices.ContainsFunc(s.Nodes, out) || !back && slices.ContainsFunc(s.Partitions, here)) {
				time.Sleep(100 * time.Millisecond)
				if time.Now().After(end) && back {
					return fmt.Errorf("for a minute the others have not seen that this machine takes part again:\n%s", strings.Join(s.Lines(), "\n"))
				} else if time.Now().After(end) {
					return fmt.Errorf("no machine has taken the frontier for a minute:\n%s", strings.Join(s.Lines(), "\n"))
				}
				s, err = askFleet(ctx, cmd.String("dir"), "GET", "")
			}
			if err != nil {
				return err
			}
			return newPrinter(cmd).show(s, s.Lines()...)
		},
	}
}

func memberCommand() *cli.Command {
	return &cli.Command{
		Name: "member", ArgsUsage: "[NAME=HOST:PORT]", Usage: "let a machine with a new folder take part in a fleet, or in place of one that lost its disk",
		Flags: []cli.Flag{dirFlag(), jsonFlag(), &cli.StringFlag{Name: "remove", Usage: "machine `NAME`, which was stopped or died, takes part no more"}},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			out, args := cmd.String("remove"), cmd.Args().Slice()
			name, at, ok := strings.Cut(strings.Join(args, " "), "=")
			host, _, _ := net.SplitHostPort(at)
			everywhere := net.ParseIP(host).IsUnspecified() // the others cannot reach it there
			if len(args) > 1 || (out != "") == (len(args) > 0) || len(args) > 0 && (!ok || name == "" || everywhere) {
				return usageError("want NAME=HOST:PORT, or -remove NAME")
			}
			change := url.Values{"admit": {name}, "at": {at}}
			if out != "" {
				change = url.Values{"remove": {out}}
			}
			s, err := askFleet(ctx, cmd.String("dir"), "POST", "?"+change.Encode())
			if err != nil {
				return err
			}
			return newPrinter(cmd).show(s, s.Lines()...)
		},
	}
}

// fleetFlags make a server a node of a fleet.
type fleetFlags struct {
	name, node    string
	list, log     list
	cert, key, ca string
	ttl           time.Duration
	partitions    int
	port          int // 0: any
	engine        string

	peers map[string]string
}

func (f *fleetFlags) define(fs *flagSet) {
	fs.StringVar(&f.name, "fleet", "", "`name` of a fleet: several machines serve one frontier, and any of them may die (-max-lease is 2m then)")
	fs.StringVar(&f.node, "node", "", "this machine's `name` in the fleet")
	fs.Var(&f.list, "fleet-peers", "`NAME=HOST:PORT` of every machine of the fleet, this one too, where they talk to each other; comma-separated")
	fs.IntVar(&f.port, "fleet-port", 0, "`port` at which the other machines also reach this one, at its address in -fleet-peers; 0: the system chooses")
	fs.DurationVar(&f.ttl, "fleet-ttl", 15*time.Second, "how long a machine may not be heard of before another takes its place")
	fs.IntVar(&f.partitions, "fleet-partitions", 1, "`number` of partitions among which the fleet divides its hosts, and the machines their work; it is the same at all machines, and stays")
	fs.StringVar(&f.engine, "fleet-engine", "etcd", "what keeps the fleet's log: etcd, or nats; it is the same at all machines, and stays")
	fs.Var(&f.log, "fleet-log", "`URL` of each server of a cluster of your own, of etcd or NATS, that keeps the fleet's log in place of a server in each machine; comma-separated")
	fs.StringVar(&f.cert, "fleet-cert", "", "`file` of the certificate by which the other machines know this one")
	fs.StringVar(&f.key, "fleet-key", "", "`file` of its key")
	fs.StringVar(&f.ca, "fleet-ca", "", "`file` of the authority that vouches for all of them")
}

// judge completes the settings.
func (f *fleetFlags) judge(s *server) {
	if f.name == "" {
		return
	}
	if !s.given("max-lease") {
		s.longest, s.o.MaxLease = fleetLease, fleetLease
	}
	s.badIf(f.partitions < 1 || f.partitions > 64, "want 1 to 64", "fleet-partitions")
	if f.partitions > 1 {
		least := byteSize(f.partitions) * leastServed
		s.badIf(s.memory < least, fmt.Sprintf("one machine may have all %d partitions: want at least %dM", f.partitions, least>>20), "memory")
		if s.clientCA != "" {
			s.fault([]string{"client-ca"}, "%s: certificates of clients do not reach the partitions: want -tokens, or one partition", s.shown("client-ca"))
		}
	}
	if s.sync {
		s.fault([]string{"sync"}, "%s means nothing beside %s: what is acknowledged is on the disks of a majority", s.shown("sync"), s.shown("fleet"))
	}
	s.badIf(!fleet.IsName(f.name), "want a name of letters, digits, dots, underscores and hyphens", "fleet")
	s.badIf(exists(filepath.Join(s.dir, manifest)), "it has a frontier of its own: export that, and import it into the fleet", "dir")
	f.peers = map[string]string{}
	open := false
	for _, x := range f.list {
		name, address, ok := strings.Cut(x, "=")
		if !ok || !fleet.IsName(name) || !fleet.IsAddress(address) || f.peers[name] != "" {
			s.badItem("fleet-peers", x, "want a name that no other has, of letters, digits, dots, underscores and hyphens, =, and host:port, as in a=10.0.0.1:8349")
			continue
		}
		for other, at := range f.peers {
			if at == address {
				s.badItem("fleet-peers", x, "want an address that no other has: it is that of "+other)
			}
		}
		f.peers[name] = address
		open = open || !local(address)
	}
	s.badIf(f.peers[f.node] == "", "want one of the names in -fleet-peers", "node")
	_, port, _ := net.SplitHostPort(f.peers[f.node])
	s.badIf(f.port < 0 || f.port > 65535 || f.port > 0 && strconv.Itoa(f.port) == port, "want a port from 0 to 65535, and not that in -fleet-peers", "fleet-port")
	if f.port > 0 && len(f.log) > 0 {
		s.fault([]string{"fleet-port"}, "%s means nothing beside %s: the machines need one port only", s.shown("fleet-port"), s.shown("fleet-log"))
	}
	s.badIf(engines[f.engine] == nil, "want etcd or nats", "fleet-engine")
	if known := engineOf(s.dir); known != "" && known != f.engine {
		s.bad("the folder "+s.dir+" belongs to a fleet with "+known, "fleet-engine")
	}
	plain, secure, as := "http", "https", "https://10.0.0.9:2379"
	if f.engine == "nats" {
		plain, secure, as = "nats", "tls", "tls://10.0.0.9:4222, or with ?monitor=PORT behind it"
	}
	for _, x := range f.log {
		rest := x
		if before, port, ok := strings.Cut(x, "?monitor="); ok && f.engine == "nats" && fleet.IsAddress("h:"+port) {
			rest = before
		}
		u, err := url.Parse(rest)
		if err != nil || u.Scheme != plain && u.Scheme != secure || rest != u.Scheme+"://"+u.Host || !fleet.IsAddress(u.Host) {
			s.badItem("fleet-log", x, "want the URL of a server for its clients, as in "+as)
		} else if u.Scheme == plain && !local(u.Host) && !s.insecure {
			s.badItem("fleet-log", x, "others may read it on its way: want "+secure+", or an address of loopback")
		}
	}
	own := filepath.Join(s.dir, f.engine)
	other := exists(filepath.Join(own, elsewhere))
	s.badIf(len(f.log) == 0 && other, "the fleet of the folder "+s.dir+" has its log at servers of its own: want their URLs", "fleet-log")
	s.badIf(len(f.log) > 0 && exists(own) && !other, "this machine has a server of its own, in "+own, "fleet-log")
	s.badIf(f.ttl < 5*time.Second || f.ttl > time.Hour, "want 5s to 1h", "fleet-ttl")
	switch given := f.cert != "" && f.key != "" && f.ca != ""; {
	case !given && f.cert+f.key+f.ca != "":
		s.fault([]string{"fleet-cert", "fleet-key", "fleet-ca"}, "%s, %s and %s: want all of them", s.shown("fleet-cert"), s.shown("fleet-key"), s.shown("fleet-ca"))
	case !given && open && !s.insecure:
		s.bad("other machines may reach it: want -fleet-cert, -fleet-key and -fleet-ca, or addresses of loopback", "fleet-peers")
	}
}

// elsewhere is a file in the engine's folder of a machine that has no server.
const elsewhere = "elsewhere"

// start starts the engine of a fleet. members is nil if it does not say who takes part.
func (f *fleetFlags) start(ctx context.Context, servers peer.Options, secure *tls.Config) (e engine, members crossing.Members, err error) {
	if len(f.log) == 0 {
		e, err = engines[f.engine](ctx, servers)
		return e, e, err
	}
	if err = os.MkdirAll(servers.Dir, 0o700); err == nil {
		err = os.WriteFile(filepath.Join(servers.Dir, elsewhere), nil, 0o600)
	}
	if err != nil {
		return nil, nil, err
	}
	if f.engine == "nats" {
		e, err = nats.Connect(ctx, nats.Cluster{Fleet: f.name, URLs: f.log, TLS: secure})
	} else {
		e, err = etcd.Connect(ctx, etcd.Cluster{Fleet: f.name, URLs: f.log, TLS: secure})
	}
	return e, nil, err
}

// join serves as a node of a fleet until ctx ends.
func (s *server) join(ctx context.Context, log *slog.Logger) (err error) {
	public, err := s.listen()
	defer public.close()
	if err != nil {
		return err
	}
	f := &s.fleet
	servers := peer.Options{
		Fleet: f.name, Node: f.node, Peers: f.peers, Dir: filepath.Join(s.dir, f.engine), Cert: f.cert, Key: f.key, CA: f.ca, Logger: log,
	}
	secure, err := servers.TLS()
	if err != nil {
		return fmt.Errorf("-fleet-cert, -fleet-key and -fleet-ca: %w", err)
	}
	inside, err := net.Listen("tcp", f.peers[f.node]) // before there is a folder
	if err == nil && len(f.log) == 0 {                // the engine listens there
		_ = inside.Close()
		host, _, _ := net.SplitHostPort(f.peers[f.node])
		if inside, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(f.port))); err != nil && f.port > 0 {
			return fmt.Errorf("-fleet-port: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("-fleet-peers: %w", err)
	}
	defer inside.Close()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	held, err := durablefs.Lock(s.dir)
	if err != nil {
		return err
	}
	defer held.Close()
	o := crossing.Options{Most: s.most * f.partitions, Inside: secure, Plain: []string{"console", "http"}, MayLook: s.o.MayLook, Logger: log}
	if s.tls != nil && f.partitions == 1 {
		o.Plain, o.Secure, o.TLS = o.Plain[:1], o.Plain[1:], s.tls
	}
	x := crossing.New(o)
	defer x.Close()
	if f.partitions == 1 {
		for name, l := range public {
			x.Add(name, 0, l)
		}
	} else {
		var all division
		if all, err = s.divide(x, log); err != nil {
			return err
		}
		public.addLocal(s.dir, log)
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		routed := make(chan error, 1)
		go func() {
			routed <- all.answer(ctx, public, log)
			stop()
		}()
		defer func() {
			stop()
			err = join(err, <-routed)
		}()
	}
	if len(f.peers) < 3 && len(f.log) == 0 {
		log.Warn("the loss of any machine stops the fleet: want three machines or more in -fleet-peers")
	}
	if len(f.log) == 0 {
		log.Info("waiting for the other machines", "node", f.node)
	}
	engine, members, err := f.start(ctx, servers, secure)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { err = join(err, engine.Close()) }()
	if f.partitions == 1 {
		if public.addLocal(s.dir, log); public["console"] != nil {
			x.Add("console", 0, public["console"])
		}
	}
	return x.Run(ctx, crossing.Node{
		Fleet: fleet.Options{
			Node: f.node, Dir: filepath.Join(s.dir, "fleet"), Engine: engine, TTL: f.ttl, Partitions: f.partitions, CopyAfter: min(64<<20, 1<<30/int64(f.partitions)), Store: spill.Options{MemoryBudget: storeMemory(s.of(0).memory), Logger: log}, Logger: log,
		},
		Inside: inside, Local: forCommands(filepath.Join(s.dir, "fleet"), func(what string, err error) { log.Warn(what, "error", err) }), Members: members, Failed: engine.Failed(), Grace: s.grace,
		Leases: func(p int) string { return filepath.Join(s.of(p).dir, contactsFile) },
		Serve:  func(ctx context.Context, x crossing.Served) error { return s.of(x.Partition).serve(ctx, x, log) },
	})
}

// of returns the server of a partition.
func (s *server) of(partition int) *server {
	if s.fleet.partitions == 1 {
		return s
	}
	x := *s
	x.o.MaxBuffered = max(1<<20, x.o.MaxBuffered/int64(s.fleet.partitions))
	x.inner = s.tls != nil // clients reach it by what divides them
	x.dir, x.tls, x.memory = filepath.Join(s.dir, "partitions", strconv.Itoa(partition)), nil, s.memory/byteSize(s.fleet.partitions)
	return &x
}

// divide returns the settings by which this machine answers its clients for all partitions.
func (s *server) divide(x *crossing.Crossing, log *slog.Logger) (d division, err error) {
	parts, numbers := map[string][]string{}, map[string]int{}
	d = division{dial: map[string]urlfrontier.Dial{}, wait: cmp.Or(s.wait, -1), reflect: s.reflect, tls: s.tls, grace: s.grace}
	for p := range s.fleet.partitions {
		if err := os.MkdirAll(s.of(p).dir, 0o777); err != nil {
			return d, err
		}
		name, address := strconv.Itoa(p), fmt.Sprintf("localhost:%d", p+1) // no server listens there: the port is the partition
		parts[name], numbers[address] = []string{"http://" + address}, p
		x.Add("http", p, nil)
		x.Add("console", p, nil)
		if s.grpc == "off" {
			continue
		}
		x.Add("grpc", p, nil)
		d.dial[name] = func(context.Context) (net.Conn, error) { return x.Dial("grpc", p), nil }
	}
	inside := func(name string) http.RoundTripper {
		return &http.Transport{
			DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
				return x.Dial(name, numbers[address]), nil
			},
			MaxIdleConnsPerHost: max(16, 512/len(parts)), IdleConnTimeout: time.Minute, DisableCompression: true,
		}
	}
	d.o = route.Options{Parts: parts, Fleet: true, Transport: inside("http"), Consoles: inside("console"), Names: s.names, MaxRequests: s.most, MaxBuffered: int64(s.buffered), Logger: log}
	return d, nil
}
