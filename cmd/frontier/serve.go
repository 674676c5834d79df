// This file implements serve: it serves a frontier to crawlers in any language.

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/urfave/cli/v3"
	"google.golang.org/grpc"

	"github.com/seed-7440039f/frontier"
	frontierprometheus "github.com/seed-7440039f/frontier/adapters/prometheus"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/crossing"
	"github.com/seed-7440039f/frontier/metrics"
	frontierserve "github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/transfer"
	"github.com/seed-7440039f/frontier/urlfrontier"
)

// contactsFile is a file in each server's folder: see frontierserve.Options.Contacts.
const contactsFile = "contacts"

// leastServed is the least memory of a store and a frontier together.
const leastServed = 64<<20 + leastMemory

// server holds serve's settings.
type server struct {
	*options
	dir, http string
	grpc      string
	wait      time.Duration
	reflect   bool
	sync      bool
	memory    byteSize
	delay     time.Duration
	tries     int // most tries of a URL; 0: unlimited
	trouble   struct {
		backoff    frontier.Backoff
		quarantine frontier.Quarantine
	}
	lease     time.Duration
	longest   time.Duration // longest lease
	grace     time.Duration
	buffered  byteSize
	most      int // most connections
	names     list
	tokens    string
	cert, key string
	clientCA  string
	clients   repeated
	insecure  bool
	fleet     fleetFlags
	log       *logFlags

	o     frontierserve.Options
	tls   *tls.Config // nil: no TLS
	inner bool        // clients come through this process, with TLS
}

func newServer() *server {
	s := &server{options: newOptions(), log: &logFlags{}}
	s.define("the frontier", func(fs *flagSet) {
		fs.StringVar(&s.dir, "dir", "", "`folder` that keeps the frontier; it is made if there is none")
		fs.Var(s.memory.set(512<<20), "memory", "`bytes` of memory for the frontier; k, M, G may follow")
		fs.BoolVar(&s.sync, "sync", false, "survive power loss too, not only kill -9 (slower)")
		fs.DurationVar(&s.delay, "delay", time.Second, "how long a host is left alone after a contact, unless a rule says otherwise")
		fs.IntVar(&s.tries, "retry-tries", 0, "tries of a URL in all, probes included, after which it is given up (0: it comes again as often as it fails, and clients decide)")
		defineTrouble(fs, &s.trouble.backoff, &s.trouble.quarantine)
		fs.DurationVar(&s.lease, "lease-time", 30*time.Second, "how long a lease lasts for which a client names no time")
		fs.DurationVar(&s.longest, "max-lease", time.Hour, "the longest lease that a client may ask for; a client that dies keeps its hosts from the others for as long")
	})
	s.define("clients", func(fs *flagSet) {
		fs.StringVar(&s.http, "http", "127.0.0.1:8348", "`address` of the HTTP API and the page; unix: and a path for a socket")
		fs.StringVar(&s.grpc, "grpc", "127.0.0.1:7071", "`address` of the URLFrontier API (gRPC); off: none")
		fs.DurationVar(&s.wait, "grpc-wait", 2*time.Second, "how long GetURLs waits for a clock if nothing is due")
		fs.BoolVar(&s.reflect, "grpc-reflection", false, "tell gRPC clients which calls and messages there are")
		fs.StringVar(&s.tokens, "tokens", "", "`file` of tokens; in each line a role, the SHA-256 of the token, a name")
		fs.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate: HTTP is HTTPS then, and gRPC is encrypted")
		fs.StringVar(&s.key, "tls-key", "", "`file` of its key")
		fs.StringVar(&s.clientCA, "client-ca", "", "`file` of certificates of authorities, one of which must vouch for each client")
		fs.Var(&s.clients, "client", "`ROLE=NAME`: what clients may do whose certificate has a name; repeatable")
		fs.BoolVar(&s.insecure, "insecure", false, "answer other machines without tokens and without -client-ca; whoever reaches the address may do everything")
		fs.Var(&s.names, "names", "host `names`, beside localhost, under which it answers; * for any; comma-separated")
		fs.Var(s.buffered.set(64<<20), "max-buffered", "`bytes` of requests in memory at once; further ones are told to come again")
		fs.IntVar(&s.most, "max-connections", 4096, "`number` of HTTP connections at once; beyond it the one idle longest is closed; one in 16 is for /livez, and one in 8 of the rest for requests that do not wait")
		fs.DurationVar(&s.grace, "grace", 10*time.Second, "how long requests may go on after SIGTERM")
	})
	s.define("several machines", s.fleet.define)
	s.define("the log", s.log.defineServed)
	return s
}

// serveCommand returns the serve command. It stores its exit status in code.
func serveCommand(code *int) *cli.Command {
	s := newServer()
	return &cli.Command{
		Name: "serve", Usage: "serve a frontier to crawlers in any language, over HTTP and gRPC",
		Flags: append(s.flags(), &cli.StringFlag{Name: "config", Usage: "read the options from this TOML `file`, those that no flag gives"}),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if path := cmd.String("config"); path != "" {
				if err := s.readConfig(path); err != nil {
					return usageError(fmt.Sprintf("serve: -config: %v", err))
				}
			}
			return advised(s.dir, untilStopped(ctx, cmd, code, s.judge, s.log, s.run))
		},
	}
}

// untilStopped runs a command that takes flags only, if judge finds no fault in them, until ctx ends. It
// stores the exit status of an error in code.
func untilStopped(ctx context.Context, cmd *cli.Command, code *int, judge func() error, flags *logFlags, run func(context.Context, *slog.Logger) error) error {
	if cmd.NArg() > 0 {
		return usageError(fmt.Sprintf("%s: what is %q? It takes flags only", cmd.Name, cmd.Args().First()))
	}
	if err := judge(); err != nil {
		return usageError(cmd.Name + ": " + err.Error())
	}
	log, _ := flags.open(cmd.Root().Writer, cmd.Root().ErrWriter)
	if err := run(ctx, log); err != nil {
		*code = exitError
		return err
	}
	log.Info("stopped")
	return nil
}

// judge completes the settings. The error lists every fault.
func (s *server) judge() error {
	s.settle()
	s.judgeNeeds(serveNeeds)
	s.log.validate(s.options)
	if s.dir == "" {
		s.bad("want a folder", "dir")
	} else if info, err := os.Stat(s.dir); err == nil && !info.IsDir() {
		s.bad("want a folder, and this is a file", "dir")
	}
	s.badIf(s.memory < leastServed, "want at least 72M", "memory")
	s.badIf(s.delay < 0 || s.delay > 0 && s.delay < time.Millisecond, "want 0 or at least 1ms", "delay")
	s.badIf(s.tries < 0, "want >= 0", "retry-tries")
	judgeTrouble(s.options, &s.trouble.backoff, &s.trouble.quarantine)
	s.badIf(s.longest < time.Second || s.longest > 30*24*time.Hour, "want 1s to 720h", "max-lease")
	s.badIf(s.lease < time.Millisecond || s.lease > s.longest, "want 1ms to what -max-lease says", "lease-time")
	s.badIf(s.grace < 0, "want >= 0", "grace")
	s.badIf(s.wait < 0, "want >= 0", "grpc-wait")
	s.badIf(s.most < 1, "want at least 1", "max-connections")
	s.badIf(s.buffered < 1<<20, "want at least 1M", "max-buffered")
	s.o = frontierserve.Options{MaxBuffered: int64(s.buffered), MaxLease: s.longest, MaxRequests: max(1, s.most-max(1, s.most/16)), Names: s.names}
	if s.tokens != "" {
		if os.Getenv("FRONTIER_PAGE_TOKEN") != "" {
			s.fault([]string{"tokens"}, "%s and FRONTIER_PAGE_TOKEN: the page takes the tokens of operators, so unset FRONTIER_PAGE_TOKEN", s.shown("tokens"))
		}
		if f, err := os.Open(s.tokens); err != nil {
			s.item("tokens", s.tokens, fmt.Errorf("%s: %w", s.shown("tokens"), err))
		} else {
			if s.o.Tokens, err = frontierserve.ReadTokens(f); err != nil {
				s.wrong(err, "tokens")
			}
			_ = f.Close()
		}
	}
	if err := console.CheckNames(s.names); err != nil {
		s.wrong(err, "names")
	}
	s.judgeTLS()
	s.fleet.judge(s)
	for name, address := range s.addresses() {
		_, port, err := net.SplitHostPort(address)
		if path, ok := strings.CutPrefix(address, "unix:"); ok && path == "" || !ok && err != nil {
			s.bad("want host:port, or unix: and a path", name)
		} else if _, err := net.LookupPort("tcp", port); !ok && err != nil {
			s.bad("want a port from 0 to 65535", name)
		} else if s.everybody() && !s.insecure && !local(address) {
			s.bad("other machines may reach it: want -tokens, or -client-ca, or an address of loopback", name)
		}
	}
	if s.insecure && (!s.everybody() || s.isLocal()) {
		s.fault([]string{"insecure"}, "%s means nothing beside -tokens, -client-ca, and addresses that only this machine reaches", s.shown("insecure"))
	}
	return s.err()
}

// judgeTLS reads certificates and keys.
func (s *server) judgeTLS() {
	s.tls = s.keyPair(s.cert, s.key)
	if s.clientCA != "" && s.cert == "" && s.key == "" {
		s.fault([]string{"client-ca"}, "%s needs %s and %s", s.shown("client-ca"), s.shown("tls-cert"), s.shown("tls-key"))
	}
	if s.clientCA == "" || s.tls == nil {
		return
	}
	b, err := os.ReadFile(s.clientCA)
	s.tls.ClientCAs, s.tls.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if err == nil && !s.tls.ClientCAs.AppendCertsFromPEM(b) {
		err = errors.New("there is no certificate in it")
	}
	if err != nil {
		s.item("client-ca", s.clientCA, fmt.Errorf("%s: %w", s.shown("client-ca"), err))
	}
	s.o.Certificates = map[string]frontierserve.Role{}
	for _, x := range s.clients {
		text, name, ok := strings.Cut(x, "=")
		role, err := frontierserve.ParseRole(text)
		if !ok || name == "" || err != nil {
			s.badItem("client", x, "want look, crawl or operate, =, and a name")
			continue
		}
		s.o.Certificates[name] = role
	}
	if len(s.clients) == 0 {
		s.fault([]string{"client-ca"}, "%s needs %s: no client may do anything", s.shown("client-ca"), s.shown("client"))
	}
}

// keyPair reads the certificate and the key of -tls-cert and -tls-key. It returns nil without them.
func (o *options) keyPair(cert, key string) *tls.Config {
	if cert == "" || key == "" {
		if cert != key {
			o.fault([]string{"tls-cert", "tls-key"}, "%s and %s: want both", o.shown("tls-cert"), o.shown("tls-key"))
		}
		return nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		o.wrong(err, "tls-cert")
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

// addresses yields the addresses to listen on, by option.
func (s *server) addresses() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		_ = yield("http", s.http) && (s.grpc == "off" || yield("grpc", s.grpc))
	}
}

// local reports whether only this machine can reach an address.
func local(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	at, err := net.ResolveTCPAddr("tcp", address)
	return err == nil && at.IP.IsLoopback() // without an IP it means all of the machine's
}

// everybody reports whether clients need neither tokens nor certificates.
func (s *server) everybody() bool { return s.o.Tokens == nil && s.clientCA == "" }

// isLocal reports whether only this machine can reach every address.
func (s *server) isLocal() bool { return local(s.http) && (s.grpc == "off" || local(s.grpc)) }

// listenOn listens on an address, which may be a path after unix:.
func listenOn(address string) (net.Listener, error) {
	path, ok := strings.CutPrefix(address, "unix:")
	if !ok {
		return net.Listen("tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		c, err := net.Dial("unix", path)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) { // a busy server fails in another way
			return nil, fmt.Errorf("%s: another process has it", address)
		}
		_ = os.Remove(path) // left by a process that died
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context, log *slog.Logger) (err error) {
	if s.fleet.name != "" {
		return s.join(ctx, log)
	}
	if !exists(filepath.Join(s.dir, manifest)) { // a server that cannot listen begins no folder
		free, err := s.listen()
		if free.close(); err != nil && !errors.Is(err, fs.ErrNotExist) { // a socket may be in the new folder
			return err
		}
	}
	store, err := openStore(s.dir, spill.Options{Sync: s.sync, MemoryBudget: storeMemory(s.memory), Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = join(err, store.Close()) }()
	l, err := s.listen()
	defer l.close()
	if err != nil {
		return err
	}
	l.addLocal(s.dir, log)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	return s.serve(ctx, crossing.Served{Opening: fleet.Opening{Spill: store}, Listeners: l, Ready: func() {}, Stop: stop}, log)
}

// listeners are those of a server, by the option that names the address; and "console": see forCommands.
type listeners map[string]net.Listener

func (l listeners) close() {
	for _, at := range l {
		_ = at.Close()
	}
}

func (l listeners) addLocal(dir string, log *slog.Logger) {
	if at := forCommands(dir, func(what string, err error) { log.Warn(what, "error", err) }); at != nil {
		l["console"] = at
	}
}

// listen takes all addresses.
func (s *server) listen() (listeners, error) {
	l := listeners{}
	for name, address := range s.addresses() {
		at, err := listenOn(address)
		if err != nil {
			return l, fmt.Errorf("-%s: %w; want a free address (-grpc may be off)", name, err)
		}
		l[name] = at
	}
	return l, nil
}

// serve serves the frontier of a store until ctx ends.
func (s *server) serve(ctx context.Context, x crossing.Served, log *slog.Logger) (err error) {
	var retry frontier.RetryPolicy // serve's default
	if s.tries > 0 {
		retry = frontier.Retries(s.tries, 0)
	}
	watch, hooks := console.NewWatch(), frontierprometheus.NewHooks()
	f, err := frontier.Open(ctx, urlfrontier.Frontier(frontier.Options{
		Spill: x.Spill, ContactedAt: x.ContactedAt, MemoryBudget: int64(s.memory), Delay: frontier.FixedDelay(s.delay), LeaseTime: s.lease, Logger: log,
		Retry: retry, Backoff: s.trouble.backoff, Quarantine: s.trouble.quarantine,
		OnEvent: func(e event.Event) { watch.Event(e); hooks.Event(e) },
	}))
	if err != nil {
		return err
	}
	defer func() { err = join(err, f.Close()) }()

	r := prometheus.NewRegistry()
	figures := metrics.Frontier(f, metrics.Options{MemoryBudget: int64(s.memory), Dir: s.dir, Disk: minutely(func() int64 { return diskOf(s.dir) })})
	r.MustRegister(hooks, frontierprometheus.Collector(figures), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if x.State != nil {
		r.MustRegister(frontierprometheus.Collector(fleet.Figures(x.State)))
	}
	var service *frontierserve.Service
	var operator func(string) (string, bool)
	if tokens := s.o.Tokens; tokens != nil {
		operator = func(token string) (string, bool) {
			role, name := tokens.Role(token)
			return name, role == frontierserve.Operate
		}
	}
	con, err := console.New(f, console.Options{
		Operator: operator,
		Import: func(ctx context.Context, r io.Reader, o transfer.ImportOptions) (transfer.Imported, error) {
			return service.Import(ctx, r, o)
		},
		Changed: func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error) {
			return changefeed.Add(ctx, f, list, changefeed.Options{At: at})
		},
		Adding:    func(id console.CrawlID) (uint32, func(), error) { return service.AddingTo(id) },
		Leases:    func(q console.LeaseQuery) console.LeaseList { return service.Leases(q) },
		EndLeases: func(q console.LeaseQuery) (int, error) { return service.EndLeases(q) },
		Crawls:    func(n int) ([]console.ServedCrawl, int) { return service.Crawls(n) },
		Clients:   func() []console.ServedClient { return service.Clients() },

		Title: filepath.Base(s.dir), Token: os.Getenv("FRONTIER_PAGE_TOKEN"), Private: !s.everybody(), Names: s.names, MemoryBudget: int64(s.memory), Watch: watch, Stop: x.Stop,
		Disk: func() int64 { return diskOf(s.dir) }, Metrics: promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}), Logger: log,
	})
	if err != nil {
		return err
	}
	defer con.Close()
	o := s.o
	o.CheckValue, o.Permit, o.ContactsNow, o.Fleet = urlfrontier.CheckValue, x.Permit, x.LeasesNow, x.Operate
	o.Console, o.Logger, o.Contacts, o.Sync = con, log, filepath.Join(s.dir, contactsFile), s.sync
	service, err = frontierserve.New(f, o)
	if err != nil {
		return err
	}
	return join(s.answer(ctx, x, service, con, log), service.Close())
}

// answer serves requests until ctx ends, and then finishes those under way.
func (s *server) answer(ctx context.Context, x crossing.Served, service *frontierserve.Service, con *console.Console, log *slog.Logger) (err error) {
	closeSocket := serveConsole(con, x.Listeners["console"], nil, nil, nil)
	defer closeSocket()
	failed := make(chan error, 2)
	stop := func(context.Context) error { return nil }
	if at := x.Listeners["grpc"]; at != nil {
		if stop, err = s.answerGRPC(ctx, at, service, log, failed); err != nil {
			return err
		}
	}
	web := service.HTTP()
	web.ConnState = newConnections(s.most, log).state
	page, api := slow(con.Page()), service.Handler()
	web.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ofPage := r.Method == "GET" || r.Method == "HEAD" || strings.HasPrefix(r.URL.Path, "/api/") || slices.Contains([]string{"/do", "/enter", "/leave"}, r.URL.Path)
		if !ofPage || strings.HasPrefix(r.URL.Path, "/v1/") || slices.Contains([]string{"/livez", "/readyz", "/metrics"}, r.URL.Path) {
			api.ServeHTTP(w, r)
		} else {
			page.ServeHTTP(w, r)
		}
	})
	at := x.Listeners["http"]
	if s.tls != nil {
		at = tls.NewListener(at, s.tls)
	}
	known := ""
	switch {
	case s.o.Tokens != nil:
		known = "the token of an operator"
	case os.Getenv("FRONTIER_PAGE_TOKEN") != "":
		known = "that of FRONTIER_PAGE_TOKEN"
	}
	where, err := keepToken(s.dir, con.Token(), known)
	if err != nil {
		return err
	}
	go func() { failed <- web.Serve(at) }()
	if x.Ready(); s.fleet.partitions == 1 {
		log.Info("serving", "http", at.Addr().String())
		log.Info("the server has a page", "url", s.page(at.Addr())+"/", "token", where)
	} else {
		log.Info("serving", "partition", x.Partition)
	}
	if service.Open() && !s.isLocal() {
		go warnOpen(ctx, log)
	}
	if s.o.Tokens != nil && s.tls == nil && !s.inner && !s.isLocal() {
		log.Warn("tokens cross the network unencrypted: set -tls-cert and -tls-key, or put a proxy with TLS before the server")
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	log.Info("stopping: no request is taken any more")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- stop(end) }()
	if cut := cutBy(ctx); cut != nil { // a second signal
		go func() {
			select {
			case <-cut:
				cancel()
			case <-end.Done():
			}
		}()
	}
	if service.Drain(end) != nil || web.Shutdown(end) != nil {
		_ = web.Close() // cuts slow requests
	}
	return errors.Join(err, <-stopped)
}

// page returns the page's URL; over a socket any host will do.
func (s *server) page(at net.Addr) string {
	scheme, host := "http://", "localhost"
	if s.tls != nil {
		scheme = "https://"
	}
	if at.Network() != "unix" {
		host = shown(at.String())
	}
	return scheme + host
}

// answerGRPC serves calls of the URLFrontier API until stop is called. When stop's context ends, calls
// under way are cut. An earlier error goes to failed.
func (s *server) answerGRPC(ctx context.Context, l net.Listener, service *frontierserve.Service, log *slog.Logger, failed chan<- error) (stop func(context.Context) error, err error) {
	wait := cmp.Or(s.wait, -1)
	api, err := urlfrontier.New(ctx, service, urlfrontier.Options{Wait: wait, TempDir: s.dir, Advertised: []string{l.Addr().String()}, Logger: log, Level: &s.log.level})
	if err != nil {
		return nil, err
	}
	grace := s.grace
	if s.fleet.partitions == 1 {
		log.Info(startedGRPC, "grpc", l.Addr().String())
	} else {
		grace = min(grace, time.Second) // its clients are routers, which keep streams open and find the next machine
	}
	return serveGRPC(l, api.GRPC(urlfrontier.GRPCOptions{TLS: s.tls, Reflection: s.reflect}), api.Stop, grace, failed), nil
}

// startedGRPC is logged when the URLFrontier API is served: StormCrawler's tests wait for this text.
const startedGRPC = "Started URLFrontierServer"

// serveGRPC serves until stop is called, as answerGRPC says.
func serveGRPC(l net.Listener, g *grpc.Server, end func(*grpc.Server, time.Duration) error, grace time.Duration, failed chan<- error) (stop func(context.Context) error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := g.Serve(l); err != nil {
			failed <- err
		}
	}()
	return func(over context.Context) error {
		defer context.AfterFunc(over, g.Stop)()
		err := end(g, grace)
		<-ended
		return err
	}
}

// warnOpen warns every minute, until ctx ends, that nothing protects the addresses.
func warnOpen(ctx context.Context, log *slog.Logger) {
	again := time.NewTicker(time.Minute)
	defer again.Stop()
	for {
		log.Warn("other machines may do everything: -insecure is set")
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
