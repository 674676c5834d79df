// This file implements import: into an existing crawl, or into a folder that it makes.

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/transfer"
)

// input opens the file that a command names, or the standard input.
func input(cmd *cli.Command) (io.ReadCloser, error) {
	args := cmd.Args().Slice()
	if err := noMore(args[min(1, len(args)):]); err != nil {
		return nil, err
	}
	if len(args) == 0 || args[0] == "-" {
		return io.NopCloser(cmd.Root().Reader), nil
	}
	if err := wantFile(args[0], ""); err != nil {
		return nil, err
	}
	return os.Open(args[0])
}

func importCommand() *cli.Command {
	c := operating("import", "[FILE]", "read what export wrote, or a list of URLs, into a crawl or a new folder", nil)
	c.Action = func(ctx context.Context, cmd *cli.Command) (err error) {
		in, err := input(cmd) // first: what cannot be read must not leave a new folder
		if err != nil {
			return err
		}
		defer in.Close()
		lines := bufio.NewReaderSize(in, 64<<10)
		if err := checkFirst(ctx, lines); err != nil {
			return err
		}
		crawl, begins, err := reachOrBegin(ctx, cmd.String("dir"))
		if err != nil {
			return err
		}
		defer func() {
			s, unseen := crawl.Status(context.WithoutCancel(ctx))
			nothing := err != nil && unseen == nil && s.Known == 0 && s.Hosts == 0
			if err = join(err, crawl.close()); begins && nothing {
				err = join(err, os.RemoveAll(cmd.String("dir")))
			}
		}()
		x, err := crawl.Import(ctx, lines)
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

// checkFirst reads ahead, and fails if there is nothing to import, or the first line is none of an export that this
// version reads.
func checkFirst(ctx context.Context, lines *bufio.Reader) error {
	begin, err := lines.Peek(1)
	if err == io.EOF {
		return errors.New("there is nothing to import: the input is empty")
	} else if err != nil || begin[0] != '{' {
		return err
	}
	begin, _ = lines.Peek(lines.Buffered())
	first, _, whole := bytes.Cut(begin, []byte("\n"))
	if !whole {
		return nil
	}
	f, err := frontier.Open(ctx, frontier.Options{}) // in memory
	if err != nil {
		return err
	}
	_, err = transfer.Import(ctx, f, strings.NewReader(string(first)+"\n{\"end\":1}\n"), transfer.ImportOptions{})
	if wrong, ok := errors.AsType[*transfer.LineError](err); ok {
		err = wrong // the first
	}
	return join(err, f.Close())
}

// reachOrBegin finds a folder's crawl, or begins one if the folder is missing or empty.
func reachOrBegin(ctx context.Context, dir string) (crawl *reached, begins bool, err error) {
	if dir == "" {
		return nil, false, errNoDir
	}
	names, err := os.ReadDir(dir)
	if (err == nil && len(names) == 0) || os.IsNotExist(err) {
		crawl, err = openAtRest(ctx, dir)
		return crawl, true, err
	}
	crawl, err = reach(ctx, dir)
	return crawl, false, err
}
