// This file implements stop: it ends a process, and waits for its end.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/lasting"
)

// stopTime is how long stop waits: for requests or fetches under way, for handing over, and for closing.
const stopTime = 2 * time.Minute

// stopCommand ends a process. In a fleet it is that of the machine whose folder this is, whichever has the frontier.
func stopCommand() *cli.Command {
	c := looking("stop", "", "stop a running crawl or server in good order, and wait until its process has ended, for 2m at most", func(ctx context.Context, c *reached, _ *cli.Command, out *printer) error {
		if !c.running {
			return errors.New("it does not run")
		}
		return awaitEnd(ctx, c.Client, func() error { return out.do(ctx, c, console.Action{Do: "stop"}) })
	})
	c.Description = "After 2m, or Ctrl-C, only the waiting ends, with status 1."
	alone := c.Action
	c.Action = func(ctx context.Context, cmd *cli.Command) error {
		dir := cmd.String("dir")
		if err := noMore(cmd.Args().Slice()); err != nil || dir == "" || engineOf(dir) == "" {
			return alone(ctx, cmd)
		}
		return stopMachine(ctx, cmd, dir)
	}
	return c
}

// awaitEnd calls stop, and waits until the process behind a socket has ended.
func awaitEnd(ctx context.Context, process *console.Client, stop func() error) error {
	waiting, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	runs, w := io.Pipe()
	defer runs.Close()
	go func() { w.CloseWithError(process.Ask(waiting, "GET", lasting.Path, nil, w)) }()
	if _, err := runs.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := stop(); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, runs) // until the process has ended, or the waiting
	switch {
	case ctx.Err() != nil:
		return errors.New("it stops, but has not ended yet: this command waits no more")
	case waiting.Err() != nil:
		return fmt.Errorf("it stops, but has not ended after %s: its log says what it does; the same command waits again", short(stopTime))
	}
	return nil
}
