// Bench measures the frontier against the goals of its design, with raw probes
// of the same run beside them.
//
//	go run ./bench -v                       # the table: 10 million URLs over 667 thousand hosts
//	go run ./bench -v -urls-file list.gz    # the same with real URLs
//	go run ./bench -v -scenario ingest,drain,resume -urls 100000000 -hosts 5000000
//	go run ./bench -v -scenario longrun -time 30m
//	go run ./bench -h                       # all flags and scenarios
//
// With -json FILE, go run ./bench/plot FILE draws latency over time and memory
// over URLs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		os.Exit(childMain(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one kills
	os.Exit(bench(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// bench returns the exit code: 1 if the run failed, 2 if it could not be begun.
func bench(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "bench: %s\n(-h lists the flags)\n", strings.ReplaceAll(err.Error(), "\n", "\nbench: "))
		return 2
	}
	work, err := os.MkdirTemp(c.Dir, "frontier-bench-")
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	defer os.RemoveAll(work)
	rep := &report{Started: time.Now(), Go: runtime.Version(), Machine: machine(), Config: &c}
	if c.URLsFile != "" {
		if rep.List, err = prepareList(c.URLsFile, work, c.Seed); err != nil {
			fmt.Fprintln(stderr, "bench:", err)
			return 2
		}
		for _, f := range rep.List.Faults {
			fmt.Fprintf(stderr, "bench: %s: %s\n", c.URLsFile, f)
		}
		fmt.Fprintf(stderr, "bench: %s: %v\n", c.URLsFile, rep.List)
	}
	if err := checkRoom(ctx, &c, rep.List, work); err != nil {
		fmt.Fprintf(stderr, "bench: %s\n", strings.ReplaceAll(err.Error(), "\n", "\nbench: "))
		return 2
	}
	failed := rep.runAll(ctx, c, work, stderr)
	if err := rep.write(stdout, c); err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 1
	}
	if failed {
		return 1
	}
	return 0
}

// runAll runs the chosen scenarios one after the other, each after its probes.
func (rep *report) runAll(ctx context.Context, c config, work string, stderr io.Writer) (failed bool) {
	ran := map[string]bool{}
	one := func(j job) {
		if ctx.Err() != nil {
			return
		}
		got, err := inChild(ctx, j)
		rep.Measures = append(rep.Measures, got.Measures...)
		rep.Series = append(rep.Series, got.Series...)
		rep.Notes = append(rep.Notes, got.Notes...)
		if err != nil {
			failed = true
			if ctx.Err() != nil {
				return // that is why
			}
			rep.Failures = append(rep.Failures, err.Error())
			fmt.Fprintln(stderr, "bench:", err)
		}
	}
	for _, s := range scenarios {
		wanted := false
		for _, name := range c.Scenarios {
			wanted = wanted || name == s.name
		}
		if !wanted {
			continue
		}
		for _, p := range s.probes {
			if !ran[p] {
				ran[p] = true
				one(job{p, true, c, work})
			}
		}
		one(job{s.name, false, c, work})
	}
	if ctx.Err() != nil {
		failed = true
		rep.Notes = append(rep.Notes, "interrupted: this is what there was by then")
	}
	rep.Took = time.Since(rep.Started)
	return failed
}
