// This file implements route: one address for the parts of a frontier whose hosts are divided over machines.

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/urlfrontier"
)

// router holds route's settings.
type router struct {
	*options
	http      string
	grpc      string
	list      repeated
	listGRPC  repeated
	names     list
	cert, key string
	insecure  bool
	most      int
	grace     time.Duration
	log       logFlags

	parts     map[string][]string
	partsGRPC map[string][]string
	tls       *tls.Config // nil: no TLS
}

func newRouter() *router {
	s := &router{options: newOptions()}
	s.define("the parts", func(fs *flagSet) {
		fs.Var(&s.list, "part", "`NAME=URL` of a frontier that has a part of the hosts, or NAME=URL,URL with the machines of a fleet; repeatable. The names decide which part has a host: they must be the same at every router, and stay")
		fs.Var(&s.listGRPC, "part-grpc", "`NAME=URL` of the same part's gRPC address, as http://10.0.0.1:7071, or https:// if it is encrypted, or NAME=URL,URL; repeatable")
	})
	s.define("clients", func(fs *flagSet) {
		fs.StringVar(&s.http, "http", "127.0.0.1:8347", "`address` of the HTTP API; unix: and a path for a socket")
		fs.StringVar(&s.grpc, "grpc", "off", "`address` of the URLFrontier API (gRPC), as 127.0.0.1:7071; off: none")
		fs.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate: HTTP is HTTPS then, and gRPC is encrypted")
		fs.StringVar(&s.key, "tls-key", "", "`file` of its key")
		fs.Var(&s.names, "names", "host `names`, beside localhost, under which it answers without a token; * for any; comma-separated")
		fs.BoolVar(&s.insecure, "insecure", false, "answer other machines although a part is on this one, and may ask for no tokens; all who reach the address may do everything there")
		fs.IntVar(&s.most, "max-connections", 4096, "`number` of HTTP connections at once; beyond it the one idle longest is closed")
		fs.DurationVar(&s.grace, "grace", 10*time.Second, "how long requests may go on after SIGTERM")
	})
	s.define("the log", s.log.defineServed)
	return s
}

func routeCommand(code *int) *cli.Command {
	s := newRouter()
	return &cli.Command{
		Name: "route", Usage: "answer for several served frontiers, each with a part of the hosts", Flags: s.flags(),
		Action: func(ctx context.Context, cmd *cli.Command) error {
			return untilStopped(ctx, cmd, code, s.judge, &s.log, s.run)
		},
	}
}

// judge completes the settings. The error lists every fault.
func (s *router) judge() error {
	s.settle()
	s.log.validate(s.options)
	s.judgeNeeds(routeNeeds)
	s.parts = s.partsIn("part", s.list)
	if s.grpc != "off" {
		s.partsGRPC = s.partsIn("part-grpc", s.listGRPC)
		s.badIf(!maps.EqualFunc(s.parts, s.partsGRPC, func(_, _ []string) bool { return true }), "want the parts that -part has", "part-grpc")
	}
	for name, address := range map[string]string{"http": s.http, "grpc": s.grpc} {
		if name == "grpc" && address == "off" {
			continue
		}
		path, socket := strings.CutPrefix(address, "unix:")
		_, _, err := net.SplitHostPort(address)
		s.badIf(socket && path == "" || !socket && err != nil, "want host:port, or unix: and a path", name)
		s.badIf(s.here() && !s.insecure && !local(address), "other machines may reach it, and through it a part on this machine, which may ask for no tokens: want -insecure, or an address of loopback", name)
	}
	s.badIf(s.most < 1, "want at least 1", "max-connections")
	s.badIf(s.grace < 0, "want >= 0", "grace")
	s.tls = s.keyPair(s.cert, s.key)
	return s.err()
}

// partsIn returns the parts that an option gives.
func (s *router) partsIn(option string, list []string) map[string][]string {
	parts, example := map[string][]string{}, "a=http://10.0.0.1:8348"
	for _, x := range list {
		name, urls, ok := strings.Cut(x, "=")
		if !ok || parts[name] != nil {
			s.badItem(option, x, "want a name that no other part has, =, and a URL, as in "+example)
			continue
		}
		parts[name] = strings.Split(urls, ",")
		if option == "part-grpc" && slices.ContainsFunc(parts[name], func(url string) bool {
			_, address, _ := strings.Cut(url, "://")
			_, _, err := net.SplitHostPort(address)
			return err != nil
		}) {
			s.badItem(option, x, "want a port, too, as in "+example)
		}
	}
	if len(list) == 0 {
		s.bad("want NAME=URL, as in "+example, option)
	} else if r, err := route.New(route.Options{Parts: parts}); err != nil {
		s.wrong(err, option)
	} else {
		_ = r.Close()
	}
	return parts
}

// here reports whether a part is on this machine.
func (s *router) here() bool {
	for _, parts := range []map[string][]string{s.parts, s.partsGRPC} {
		for _, u := range slices.Concat(slices.Collect(maps.Values(parts))...) {
			if _, address, _ := strings.Cut(u, "://"); local(address) {
				return true
			}
		}
	}
	return false
}

// run answers until ctx ends.
func (s *router) run(ctx context.Context, log *slog.Logger) error {
	at := listeners{}
	defer func() { at.close() }()
	d := division{
		o: route.Options{Parts: s.parts, Names: s.names, MaxRequests: s.most, Logger: log}, dial: map[string]urlfrontier.Dial{}, tls: s.tls, grace: s.grace,
	}
	for name, address := range map[string]string{"http": s.http, "grpc": s.grpc} {
		if address == "off" {
			continue
		}
		l, err := listenOn(address)
		if err != nil {
			return fmt.Errorf("-%s: %w", name, err)
		}
		at[name] = l
	}
	for name, urls := range s.partsGRPC {
		d.dial[name] = dialOneOf(urls)
	}
	return d.answer(ctx, at, log)
}

// dialOneOf connects with one of several addresses, beginning with another each time.
func dialOneOf(urls []string) urlfrontier.Dial {
	var turn atomic.Uint32
	return func(ctx context.Context) (c net.Conn, err error) {
		for range urls {
			scheme, address, _ := strings.Cut(urls[int(turn.Add(1)-1)%len(urls)], "://")
			d := &net.Dialer{Timeout: 3 * time.Second}
			if scheme == "https" {
				c, err = (&tls.Dialer{NetDialer: d, Config: &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
			} else {
				c, err = d.DialContext(ctx, "tcp", address)
			}
			if err == nil {
				break
			}
		}
		return c, err
	}
}

// division is how clients are answered for several parts.
type division struct {
	o       route.Options
	dial    map[string]urlfrontier.Dial // by part; empty without gRPC
	wait    time.Duration               // of GetURLs
	reflect bool
	tls     *tls.Config
	grace   time.Duration
}

// answer answers until ctx ends, and then finishes the requests under way.
func (d *division) answer(ctx context.Context, l listeners, log *slog.Logger) error {
	r, err := route.New(d.o)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	stop := func(context.Context) error { return nil }
	if at := l["grpc"]; at != nil {
		if stop, err = d.answerGRPC(r, at, log, failed); err != nil {
			return join(err, r.Close())
		}
	}
	at := l["http"]
	log.Info("routing", "http", at.Addr().String())
	if d.tls != nil {
		at = tls.NewListener(at, d.tls)
	}
	web := &http.Server{
		Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnState: newConnections(d.o.MaxRequests, log).state, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if local := l["console"]; local != nil {
		commands := &http.Server{Handler: r.Commands(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = commands.Serve(local) }()
		defer commands.Close()
	}
	go func() { failed <- web.Serve(at) }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.grace)
	defer cancel()
	defer context.AfterFunc(end, func() { _ = web.Close() })() // cuts slow requests
	stopped := make(chan error, 1)
	go func() { stopped <- stop(end) }()
	err = join(err, r.Close())
	_ = web.Shutdown(end)
	return join(err, <-stopped)
}

// answerGRPC answers the URLFrontier API until stop is called.
func (d *division) answerGRPC(r *route.Router, l net.Listener, log *slog.Logger, failed chan<- error) (stop func(context.Context) error, err error) {
	api, err := urlfrontier.NewRouter(urlfrontier.RouterOptions{Division: r, Parts: d.dial, Wait: d.wait, Advertised: []string{l.Addr().String()}, Logger: log})
	if err != nil {
		return nil, err
	}
	log.Info(startedGRPC, "grpc", l.Addr().String())
	return serveGRPC(l, api.GRPC(urlfrontier.GRPCOptions{TLS: d.tls, Reflection: d.reflect}), api.Stop, d.grace, failed), nil
}
