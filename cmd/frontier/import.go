// This file is the command that takes in what export wrote: into a crawl that is there, or
// into a folder that it makes.

package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/urfave/cli/v3"
)

func importCommand() *cli.Command {
	c := operating("import", "[FILE]", "read what export wrote, or a list of URLs, into a crawl or a new folder", nil)
	c.Action = func(ctx context.Context, cmd *cli.Command) (err error) {
		args := cmd.Args().Slice()
		if err := noMore(args[min(1, len(args)):]); err != nil {
			return err
		}
		in := io.NopCloser(cmd.Root().Reader)
		if len(args) == 1 && args[0] != "-" { // first: of a file that is missing no folder comes
			if in, err = os.Open(args[0]); err != nil {
				return err
			}
		}
		defer in.Close()
		crawl, err := reachOrBegin(ctx, cmd.String("dir"))
		if err != nil {
			return err
		}
		defer func() { err = join(err, crawl.close()) }()
		x, err := crawl.Import(ctx, in)
		if err != nil {
			return err
		}
		if err := newPrinter(cmd).imported(x); err != nil || x.Bad == 0 {
			return err
		}
		return fmt.Errorf("%d of %d lines are no URLs, and were passed over", x.Bad, x.Lines)
	}
	return c
}

// reachOrBegin finds the crawl of a folder, or begins one if there is no such folder or
// nothing in it.
func reachOrBegin(ctx context.Context, dir string) (*reached, error) {
	if dir == "" {
		return nil, errNoDir
	}
	names, err := os.ReadDir(dir)
	if (err == nil && len(names) == 0) || os.IsNotExist(err) {
		return openAtRest(ctx, dir)
	}
	return reach(ctx, dir)
}
