// Command frontier crawls web sites politely, and lets an operator look at a crawl and
// change it while it runs.
//
//	frontier crawl -dir state -user-agent 'mybot/1.0' -contact https://me.example/bot http://a.example/
//	frontier resume state
//	frontier status -dir state
//	frontier explain -dir state a.example
//	frontier pause -dir state '*.example'
//
// Run "frontier help" for the commands, and "frontier crawl -help" for the flags of a
// crawl. The commands that look and change reach a running crawl over a socket in its
// folder, which only its owner may open; of a crawl that does not run they open the
// folder, those that only look without writing to it. With -json they print JSON, whose names are those of package console.
//
// The exit status is 0, or 1 if something could not be done, or not to the end, or 2 if
// the command line or the configuration is wrong, and nothing was done.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"
)

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1 // it could not be done, or not to the end
	exitUsage = 2 // the command line is wrong; nothing was done
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process around it. The end of ctx stops a crawl
// cleanly.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code := exitOK
	root := &cli.Command{
		Name: "frontier", Usage: "crawl politely", Suggest: true, EnableShellCompletion: true, HideVersion: true,
		Description: `The exit status is 0, or 1 if something could not be done, or not to the end, or 2 if the
command line or the configuration is wrong, and nothing was done.`,
		Reader: stdin, Writer: stdout, ErrWriter: stderr,
		Commands:       append([]*cli.Command{crawlCommand(&code), resumeCommand(&code), recrawlCommand(&code), planCommand()}, operateCommands()...),
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		OnUsageError:   func(_ context.Context, _ *cli.Command, err error, _ bool) error { return usageError(err.Error()) },
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.NArg() == 0 {
				return usageError("no command")
			}
			return usageError(fmt.Sprintf("unknown command %q", cmd.Args().First()))
		},
	}
	for _, c := range root.Commands {
		c.OnUsageError = root.OnUsageError
	}
	err := root.Run(ctx, append([]string{"frontier"}, args...))
	var wrong usageError
	switch {
	case err == nil:
		return code
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "frontier: %v\nRun \"frontier help\" for the commands, and \"frontier help COMMAND\" for the flags of one.\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "frontier: %v\n", err)
	return exitError
}
