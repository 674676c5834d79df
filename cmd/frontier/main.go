// Command frontier crawls web sites politely, and lets an operator watch and control
// a crawl while it runs.
//
//	frontier crawl -dir state -user-agent 'mybot/1.0' -contact https://me.example/bot http://a.example/
//	frontier resume state
//	frontier status -dir state
//	frontier explain -dir state a.example
//	frontier pause -dir state '*.example'
//
// Run "frontier help" for the commands, and "frontier crawl -h" for the flags of a crawl. The commands
// that inspect and control a crawl reach a running one over a socket in its folder, which only its owner
// may open. If no crawl runs there they open the folder; commands that only read do not write to it. With
// -json they print JSON with the names of package console.
//
// The exit status is 0 if all is done, 1 if something could not be done, and 2 if the command
// line or the configuration is wrong and nothing was done. A crawl that was stopped or is
// held ends with 3 if URLs wait, one that reached a limit with 4, and one that fetched no
// page, though some URL was tried, with 5.
//
// The first signal (SIGINT, SIGTERM) stops a crawl in good order, a second one, a second
// later or more, cuts the fetches under way, and a third one ends the process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := heed(context.Background(), signals, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// again is the shortest time between two signals that count: one stop may send two, to a process and to
// its group.
const again = time.Second

// heed returns a context that ends with the first signal. The second that counts cuts the fetches under
// way; then last is called, and the next signal ends the process.
func heed(ctx context.Context, signals <-chan os.Signal, last func()) context.Context {
	cut := make(chan struct{})
	ctx, stop := context.WithCancel(context.WithValue(ctx, cutKey{}, (<-chan struct{})(cut)))
	go func() {
		<-signals
		first := time.Now()
		stop()
		for range signals {
			if time.Since(first) >= again {
				break
			}
		}
		close(cut)
		last()
	}()
	return ctx
}

type cutKey struct{}

// cutBy is closed when fetches under way must be cut; nil: never.
func cutBy(ctx context.Context) <-chan struct{} {
	cut, _ := ctx.Value(cutKey{}).(<-chan struct{})
	return cut
}

// run is main without the process. The end of ctx stops a crawl in good order.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code := exitOK
	root := newRoot(&code)
	root.Reader, root.Writer, root.ErrWriter = stdin, stdout, stderr
	var err error
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") && root.Command(args[0]) == nil {
		err = unknownCommand(root, args[0]) // otherwise the library complains about the flags after it
	} else {
		err = root.Run(ctx, append([]string{"frontier"}, args...))
	}
	if err == nil {
		return code
	}
	if _, wrong := errors.AsType[usageError](err); wrong {
		fmt.Fprintf(stderr, "frontier: %s\n%s\n", unprefixed(err), whereHelpIs(root, args))
		return exitUsage
	}
	fmt.Fprintf(stderr, "frontier: %s\n", unprefixed(err))
	return exitError
}

// newRoot returns the root command. A crawl stores its exit status in code.
func newRoot(code *int) *cli.Command {
	root := &cli.Command{
		Name: "frontier", Usage: "crawl web sites politely", HideHelpCommand: true, Version: version(),
		Description:    exitStatuses,
		Commands:       slices.Concat(under(toCrawl, crawlCommand(code), resumeCommand(code), recrawlCommand(code), planCommand(), serveCommand(code), routeCommand(code)), operateCommands(), under(toHelp, versionCommand(), helpCommand(), manCommand(), completionCommand(), completingCommand())),
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
		OnUsageError:   badFlags,
		Action: func(_ context.Context, cmd *cli.Command) error {
			if cmd.NArg() == 0 {
				return usageError("which command? To begin: frontier crawl -dir state https://example.org/")
			}
			return unknownCommand(cmd, cmd.Args().First())
		},
	}
	for _, c := range root.Commands {
		c.OnUsageError, c.HideHelpCommand = badFlags, true
		c.CommandNotFound = func(_ context.Context, cmd *cli.Command, what string) { // for -h with an argument
			printCommand(cmd.Root().Writer, cmd, what == "all")
		}
	}
	return root
}

// whereHelpIs names the help that fits.
func whereHelpIs(root *cli.Command, args []string) string {
	if len(args) > 0 {
		if c := root.Command(args[0]); c != nil && c.Name != "help" {
			return fmt.Sprintf("\"frontier %s -h\" shows how it is used.", c.Name)
		}
	}
	return "\"frontier help\" lists the commands."
}

// unprefixed returns an error's text without the prefixes of the command and of packages.
func unprefixed(err error) string {
	return strings.NewReplacer("\nfrontier: ", "\n", "\nconsole: cannot do that: ", "\n", "\nspill: open: ", "\n").Replace("\n" + err.Error())[1:]
}
