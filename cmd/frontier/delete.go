// This file implements delete. Deleted URLs cannot be restored, so it asks first.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
)

func deleteCommand() *cli.Command {
	c := operating("delete", "SCOPE", "delete the waiting URLs of some hosts, after a question", func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
		args := cmd.Args().Slice()
		if len(args) == 0 {
			return errNoScope
		}
		if err := noMore(args[1:]); err != nil {
			return err
		}
		a := console.Action{Do: "delete", Scope: args[0], Dry: true}
		if !cmd.Bool("yes") {
			r, err := c.Do(ctx, a)
			if err != nil {
				return err
			}
			root := cmd.Root()
			if in, ok := root.Reader.(*os.File); !ok || !isTerminal(in) {
				return usageError("delete: " + oneLine(r.Said) + "; nothing brings them back, so it wants -yes")
			}
			if err := confirm(root.Reader, root.ErrWriter, r, a.Scope); err != nil {
				return err
			}
		}
		a.Dry = false
		return out.do(ctx, c, a)
	}, &cli.BoolFlag{Name: "yes", Usage: "do not ask"})
	c.Description = aboutScopes
	return c
}

// confirm asks for a yes; to delete everything, for the number of URLs.
func confirm(in io.Reader, out io.Writer, r console.Result, scope string) error {
	want, ask := "yes", "Type yes to do it: "
	if scope == "*" {
		want = fmt.Sprint(r.Count)
		ask = "That is the whole crawl. Type the number of URLs to do it: "
	}
	if _, err := fmt.Fprintf(out, "%s. Nothing brings them back.\n%s", oneLine(r.Said), ask); err != nil {
		return err
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != want {
		return errors.New("nothing is deleted")
	}
	return nil
}
