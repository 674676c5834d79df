// This file is the command that serves a frontier to crawlers in any language.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier"
	frontierprometheus "github.com/seed-7440039f/frontier/adapters/prometheus"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/metrics"
	frontierserve "github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/spill"
)

// server is what frontier serve is to do.
type server struct {
	*options
	dir, http string
	sync      bool
	memory    byteSize
	delay     time.Duration
	lease     time.Duration
	grace     time.Duration
	buffered  byteSize
	names     list
	tokens    string
	cert, key string
	clientCA  string
	clients   repeated
	insecure  bool
	log       logFlags

	o   frontierserve.Options
	tls *tls.Config // nil: plain
}

func newServer() *server {
	s := &server{options: newOptions()}
	s.define("the frontier", func(fs *flagSet) {
		fs.StringVar(&s.dir, "dir", "", "`folder` that keeps the frontier; it is made if there is none")
		fs.Var(s.memory.set(512<<20), "memory", "`bytes` of memory for the frontier; k, M, G may follow")
		fs.BoolVar(&s.sync, "sync", false, "survive power loss too, not only kill -9 (slower)")
		fs.DurationVar(&s.delay, "delay", time.Second, "how long a host is left alone after a contact, unless a rule says otherwise")
		fs.DurationVar(&s.lease, "lease-time", 30*time.Second, "how long a lease lasts for which a client names no time")
	})
	s.define("clients", func(fs *flagSet) {
		fs.StringVar(&s.http, "http", "127.0.0.1:8348", "`address` of the HTTP API and the page; unix: and a path for a socket")
		fs.StringVar(&s.tokens, "tokens", "", "`file` of tokens; in each line a role, the SHA-256 of the token, a name")
		fs.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate, with which HTTP is HTTPS")
		fs.StringVar(&s.key, "tls-key", "", "`file` of its key")
		fs.StringVar(&s.clientCA, "client-ca", "", "`file` of certificates of authorities, one of which must vouch for each client")
		fs.Var(&s.clients, "client", "`ROLE=NAME`: what clients may do whose certificate has a name; repeatable")
		fs.BoolVar(&s.insecure, "insecure", false, "answer other machines without tokens and without -client-ca; whoever reaches the address may do everything")
		fs.Var(&s.names, "names", "host `names`, beside localhost, under which it answers; * for any; comma-separated")
		fs.Var(s.buffered.set(64<<20), "max-buffered", "`bytes` of requests in memory at once; further ones are told to come again")
		fs.DurationVar(&s.grace, "grace", 10*time.Second, "how long requests may go on after SIGTERM")
	})
	s.define("the log", s.log.define)
	return s
}

// serveCommand leaves its exit status in code.
func serveCommand(code *int) *cli.Command {
	s := newServer()
	return &cli.Command{
		Name: "serve", Usage: "serve a frontier to crawlers in any language, over HTTP",
		Flags: append(s.flags(), &cli.StringFlag{Name: "config", Usage: "read the options from this TOML `file`, those that no flag gives"}),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if cmd.NArg() > 0 {
				return usageError(fmt.Sprintf("serve: what is %q? It takes flags only", cmd.Args().First()))
			}
			if path := cmd.String("config"); path != "" {
				if err := s.readConfig(path); err != nil {
					return usageError(fmt.Sprintf("serve: -config: %v", err))
				}
			}
			if err := s.judge(); err != nil {
				return usageError("serve: " + err.Error())
			}
			log, _ := s.log.open(cmd.Root().Writer, cmd.Root().ErrWriter)
			if err := s.run(ctx, log); err != nil {
				*code = exitError
				return advised(s.dir, err)
			}
			return nil
		},
	}
}

// judge completes the settings. The error has everything that is wrong with them.
func (s *server) judge() error {
	s.settle()
	s.log.validate(s.options)
	if s.dir == "" {
		s.bad("want a folder", "dir")
	}
	if s.memory < leastMemory {
		s.bad("want at least 8M", "memory")
	}
	if s.delay < 0 || s.delay > 0 && s.delay < time.Millisecond {
		s.bad("want 0 or at least 1ms", "delay")
	}
	if s.lease < time.Millisecond || s.lease > 30*24*time.Hour {
		s.bad("want 1ms to 720h", "lease-time")
	}
	if s.grace < 0 {
		s.bad("want >= 0", "grace")
	}
	if s.buffered < 1<<20 {
		s.bad("want at least 1M", "max-buffered")
	}
	s.o = frontierserve.Options{MaxBuffered: int64(s.buffered), Names: s.names}
	if s.tokens != "" {
		if f, err := os.Open(s.tokens); err != nil {
			s.item("tokens", s.tokens, fmt.Errorf("%s: %w", s.shown("tokens"), err))
		} else {
			if s.o.Tokens, err = frontierserve.ReadTokens(f); err != nil {
				s.wrong(err, "tokens")
			}
			_ = f.Close()
		}
	}
	s.judgeTLS()
	if s.o.Tokens == nil && s.clientCA == "" && !s.insecure && !s.local() {
		s.bad("other machines may reach it: want -tokens, or -client-ca, or an address of loopback", "http")
	}
	return s.err()
}

// judgeTLS reads certificates and keys.
func (s *server) judgeTLS() {
	switch {
	case s.cert == "" && s.key == "" && s.clientCA == "" && len(s.clients) == 0:
		return
	case s.cert == "" || s.key == "":
		s.fault([]string{"tls-cert", "tls-key"}, "%s and %s: want both, with or without %s", s.shown("tls-cert"), s.shown("tls-key"), s.shown("client-ca"))
		return
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		s.wrong(err, "tls-cert")
	}
	s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	if s.clientCA == "" {
		if len(s.clients) > 0 {
			s.needs("client", "client-ca")
		}
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

// local reports whether only this machine reaches the address.
func (s *server) local() bool {
	if strings.HasPrefix(s.http, "unix:") {
		return true
	}
	at, err := net.ResolveTCPAddr("tcp", s.http)
	return err == nil && at.IP.IsLoopback() // without an IP it is any of the machine's
}

// listen takes the address.
func (s *server) listen() (net.Listener, error) {
	path, ok := strings.CutPrefix(s.http, "unix:")
	if !ok {
		return net.Listen("tcp", s.http)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		if c, err := net.Dial("unix", path); err == nil {
			_ = c.Close()
			return nil, fmt.Errorf("-http unix:%s: another process answers there", path)
		}
		_ = os.Remove(path) // of a process that died
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	return l, err
}

// run serves until ctx ends.
func (s *server) run(ctx context.Context, log *slog.Logger) (err error) {
	l, err := s.listen()
	if err != nil {
		return fmt.Errorf("-http: %w", err)
	}
	defer l.Close()
	store, err := openStore(s.dir, spill.Options{Sync: s.sync, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = join(err, store.Close()) }()
	watch, hooks := console.NewWatch(), frontierprometheus.NewHooks()
	f, err := frontier.Open(ctx, frontierserve.Frontier(frontier.Options{
		Spill: store, MemoryBudget: int64(s.memory), Delay: frontier.FixedDelay(s.delay), LeaseTime: s.lease, Logger: log,
		OnEvent: func(e frontier.Event) { watch.Event(e); hooks.Event(e) },
	}))
	if err != nil {
		return err
	}
	defer func() { err = join(err, f.Close()) }()

	r := prometheus.NewRegistry()
	figures := metrics.Frontier(f, metrics.Options{MemoryBudget: int64(s.memory), Dir: s.dir, Disk: minutely(func() int64 { return diskOf(s.dir) })})
	r.MustRegister(hooks, frontierprometheus.Collector(figures), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	con, err := console.New(f, console.Options{
		Title: "frontier", Token: os.Getenv("FRONTIER_PAGE_TOKEN"), Names: s.names, MemoryBudget: int64(s.memory), Watch: watch, Stop: stop,
		Disk: func() int64 { return diskOf(s.dir) }, Metrics: promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4}), Logger: log,
	})
	if err != nil {
		return err
	}
	defer con.Close()
	s.o.Console, s.o.Logger = con, log
	service, err := frontierserve.New(f, s.o)
	if err != nil {
		return err
	}
	return s.answer(ctx, l, service, con, log)
}

// answer answers requests until ctx ends, and then those under way.
func (s *server) answer(ctx context.Context, l net.Listener, service *frontierserve.Service, con *console.Console, log *slog.Logger) error {
	closeSocket := serveConsole(con, s.dir, nil, nil, func(what string, err error) { log.Warn(what, "error", err) }, nil)
	defer closeSocket()
	web := service.HTTP()
	mux := http.NewServeMux()
	for _, path := range []string{"/v1/", "/livez", "/readyz", "/metrics"} {
		mux.Handle(path, service.Handler())
	}
	mux.Handle("/", slow(con.Page()))
	web.Handler = mux
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	log.Info("Started URLFrontierServer", "address", l.Addr().String())
	if service.Open() && !s.local() {
		go warnOpen(ctx, l.Addr(), log)
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	log.Info("stopping: no request is taken any more")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	if service.Drain(end) != nil || web.Shutdown(end) != nil {
		_ = web.Close() // cuts those that take too long
	}
	return errors.Join(err, service.Close())
}

// warnOpen says each minute that nothing protects the address, until ctx ends.
func warnOpen(ctx context.Context, at net.Addr, log *slog.Logger) {
	again := time.NewTicker(time.Minute)
	defer again.Stop()
	for {
		log.Warn("other machines may do everything: -insecure is set", "address", at.String())
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
