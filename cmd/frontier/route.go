// This file implements route: one address for the parts of a frontier whose hosts are divided over machines.

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/fleet/route"
)

// router holds route's settings.
type router struct {
	*options
	http      string
	list      repeated
	names     list
	cert, key string
	insecure  bool
	most      int
	grace     time.Duration
	log       logFlags

	parts map[string][]string
	tls   *tls.Config // nil: no TLS
}

func newRouter() *router {
	s := &router{options: newOptions()}
	s.define("the parts", func(fs *flagSet) {
		fs.Var(&s.list, "part", "`NAME=URL` of a frontier that has a part of the hosts, or NAME=URL,URL with the machines of a fleet; repeatable. The names decide which part has a host: they must be the same at every router, and stay")
	})
	s.define("clients", func(fs *flagSet) {
		fs.StringVar(&s.http, "http", "127.0.0.1:8347", "`address` of the HTTP API; unix: and a path for a socket")
		fs.StringVar(&s.cert, "tls-cert", "", "`file` of the certificate: HTTP is HTTPS then")
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
			if cmd.NArg() > 0 {
				return usageError(fmt.Sprintf("route: what is %q? It takes flags only", cmd.Args().First()))
			}
			if err := s.judge(); err != nil {
				return usageError("route: " + err.Error())
			}
			log, _ := s.log.open(cmd.Root().Writer, cmd.Root().ErrWriter)
			if err := s.run(ctx, log); err != nil {
				*code = exitError
				return err
			}
			log.Info("stopped")
			return nil
		},
	}
}

// judge completes the settings. The error lists every fault.
func (s *router) judge() error {
	s.settle()
	s.log.validate(s.options)
	s.parts = map[string][]string{}
	here := false
	for _, x := range s.list {
		name, urls, ok := strings.Cut(x, "=")
		if !ok || s.parts[name] != nil {
			s.badItem("part", x, "want a name that no other part has, =, and a URL, as in a=http://10.0.0.1:8348")
			continue
		}
		s.parts[name] = strings.Split(urls, ",")
		here = here || slices.ContainsFunc(s.parts[name], func(u string) bool {
			_, host, _ := strings.Cut(u, "://")
			return local(host)
		})
	}
	if len(s.list) == 0 {
		s.bad("want NAME=URL, as in a=http://10.0.0.1:8348", "part")
	} else if r, err := route.New(route.Options{Parts: s.parts}); err != nil {
		s.wrong(err, "part")
	} else {
		_ = r.Close()
	}
	path, socket := strings.CutPrefix(s.http, "unix:")
	_, _, err := net.SplitHostPort(s.http)
	s.badIf(socket && path == "" || !socket && err != nil, "want host:port, or unix: and a path", "http")
	s.badIf(here && !s.insecure && !local(s.http), "other machines may reach it, and through it a part on this machine, which may ask for no tokens: want -insecure, or an address of loopback", "http")
	s.badIf(s.most < 1, "want at least 1", "max-connections")
	s.badIf(s.grace < 0, "want >= 0", "grace")
	if s.cert == "" != (s.key == "") {
		s.fault([]string{"tls-cert", "tls-key"}, "%s and %s: want both", s.shown("tls-cert"), s.shown("tls-key"))
	} else if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			s.wrong(err, "tls-cert")
		}
		s.tls = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return s.err()
}

// run answers until ctx ends.
func (s *router) run(ctx context.Context, log *slog.Logger) error {
	at, err := listenOn(s.http)
	if err != nil {
		return fmt.Errorf("-http: %w", err)
	}
	defer at.Close()
	return answerRouted(ctx, route.Options{Parts: s.parts, Names: s.names, MaxRequests: s.most, Logger: log}, at, nil, s.tls, s.grace)
}

// answerRouted answers for several parts until ctx ends, and then finishes the requests under way. Commands come
// to local, unless it is nil.
func answerRouted(ctx context.Context, o route.Options, at, local net.Listener, secure *tls.Config, grace time.Duration) error {
	r, err := route.New(o)
	if err != nil {
		return err
	}
	o.Logger.Info("routing", "http", at.Addr().String())
	if secure != nil {
		at = tls.NewListener(at, secure)
	}
	web := &http.Server{
		Handler: r.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ConnState: newConnections(o.MaxRequests, o.Logger).state, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	if local != nil {
		commands := &http.Server{Handler: r.Commands(), ReadHeaderTimeout: 10 * time.Second}
		go func() { _ = commands.Serve(local) }()
		defer commands.Close()
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(at) }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	defer context.AfterFunc(end, func() { _ = web.Close() })() // cuts slow requests
	err = join(err, r.Close())
	_ = web.Shutdown(end)
	return err
}
