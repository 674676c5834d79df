// Bench measures a frontier server over the gRPC API of URLFrontier, at any address, so that runs can
// alternate between this server and another, and over the HTTP API.
//
//	go run ./urlfrontier/bench -start 'frontier serve -dir state -delay 0s -grpc 127.0.0.1:7071 -http 127.0.0.1:8348'
//	go run ./urlfrontier/bench -grpc 127.0.0.1:7071 -pid 4711 -only discovered,give
//
// The server must be empty. Bench reads the server's memory and CPU time from /proc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type settings struct {
	grpc, http, start, only string
	pid                     int
	urls, single, hosts     int
	queues, calls           int
	streams, clients        int
	span                    time.Duration
}

// bench is one run.
type bench struct {
	settings
	frontier *service
	web      *web
	server   server
	out      io.Writer
}

// A measure fills one or more rows of the table.
type measure struct {
	name string
	run  func(*bench, context.Context) error
}

// measures run in this order; each uses what the one before left in the server.
var measures = []measure{
	{"discovered", (*bench).discovered},
	{"put", (*bench).put},
	{"give", (*bench).give},
	{"queues", (*bench).manyQueues},
	{"http-add", (*bench).httpAdd},
	{"http-lease", (*bench).httpLease},
	{"http-idle", (*bench).httpIdle},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		stop()
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	var names []string
	for _, m := range measures {
		names = append(names, m.name)
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.grpc, "grpc", "127.0.0.1:7071", "address of the gRPC API; empty measures HTTP only")
	f.StringVar(&s.http, "http", "", "address of the HTTP API; empty measures gRPC only")
	f.StringVar(&s.start, "start", "", "command that starts the server, in words without quotes; it is ended afterwards")
	f.IntVar(&s.pid, "pid", 0, "process of a server that runs already, for its memory and CPU time")
	f.StringVar(&s.only, "only", strings.Join(names, ","), "what to measure")
	f.IntVar(&s.urls, "urls", 1_000_000, "URLs to add in batches")
	f.IntVar(&s.single, "single", 200_000, "URLs to put one message each")
	f.IntVar(&s.hosts, "hosts", 10_000, "hosts they belong to")
	f.IntVar(&s.queues, "queues", 1_000_000, "queues for the GetURLs of one URL")
	f.IntVar(&s.calls, "calls", 2_000, "calls whose 99th percentile is taken")
	f.IntVar(&s.streams, "streams", 1, "streams that add in batches")
	f.IntVar(&s.clients, "clients", 4, "clients that get and end URLs")
	f.DurationVar(&s.span, "span", 10*time.Second, "how long URLs are given out and ended")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if f.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	for name := range strings.SplitSeq(s.only, ",") {
		if !slices.Contains(names, name) {
			return s, fmt.Errorf("nothing to measure is named %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	if s.start != "" && s.pid != 0 {
		return s, errors.New("-start and -pid exclude each other")
	}
	for name, n := range map[string]int{"urls": s.urls, "single": s.single, "hosts": s.hosts, "queues": s.queues,
		"calls": s.calls, "streams": s.streams, "clients": s.clients} {
		if n < 1 {
			return s, fmt.Errorf("-%s must be at least 1", name)
		}
	}
	return s, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	b := &bench{settings: s, server: server{pid: s.pid}, out: out}
	if s.start != "" {
		words := strings.Fields(s.start)
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 30 * time.Second
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("starting the server: %w", err)
		}
		b.server.pid = cmd.Process.Pid
		defer func() { // an error unless our SIGTERM ended the server
			cmd.Process.Signal(syscall.SIGTERM)
			var status *exec.ExitError
			if e := cmd.Wait(); e != nil && !(errors.As(e, &status) && status.ExitCode() < 0) {
				err = errors.Join(err, fmt.Errorf("the server: %w", e))
			}
		}()
	}
	if s.grpc != "" {
		if b.frontier, err = dial(ctx, s.grpc); err != nil {
			return err
		}
		defer b.frontier.close()
	}
	if s.http != "" {
		if b.web, err = reach(ctx, s.http); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%-44s %12s %12s %12s %12s %10s\n", "", "a second", "p50", "p99", "server CPU", "RSS")
	for _, m := range measures {
		if !slices.Contains(strings.Split(s.only, ","), m.name) {
			continue
		}
		if overHTTP := strings.HasPrefix(m.name, "http"); overHTTP && b.web == nil || !overHTTP && b.frontier == nil {
			continue
		}
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}
