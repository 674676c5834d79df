// Command frontier crawls web sites politely.
//
//	frontier crawl -dir state -user-agent 'mybot/1.0' -contact https://me.example/bot http://a.example/
//
// Run "frontier crawl -help" for its flags.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: frontier crawl [flags] SEED...

Commands:
  crawl   crawl from the seeds, or go on where the crawl in -dir was stopped

"frontier crawl -help" lists the flags.
`

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1 // the crawl could not go on
	exitUsage = 2 // the command line is wrong; nothing was done
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process around it. The end of ctx stops a crawl
// cleanly.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return exitUsage
	}
	switch args[0] {
	case "crawl":
		return runCrawl(ctx, args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return exitOK
	}
	fmt.Fprintf(stderr, "frontier: unknown command %q\n%s", args[0], usage)
	return exitUsage
}
