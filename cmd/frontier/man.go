// This file writes the manual page from the commands and flags.

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v3"
)

func manCommand() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "write the manual page, for man",
		Description: "To read it at once: frontier man | man -l -",
		Action: func(_ context.Context, cmd *cli.Command) error {
			if err := noMore(cmd.Args().Slice()); err != nil {
				return err
			}
			return writeManual(cmd.Root().Writer, cmd.Root())
		},
	}
}

// writeManual writes the page in roff's man macros.
func writeManual(w io.Writer, root *cli.Command) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, ".TH FRONTIER 1 \"\" %q \"User Commands\"\n.SH NAME\nfrontier \\- %s\n", roff(version()), roff(root.Usage))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B frontier\n\\fICOMMAND\\fR [\\fIflags\\fR] [\\fIarguments\\fR]\n.SH DESCRIPTION\n%s", verbatim(intro))
	for _, category := range categories(root) {
		fmt.Fprintf(b, ".SH %s\n", strings.ToUpper(roff(category)))
		for _, c := range shownCommands(root) {
			if c.Category == category {
				manual(b, c)
			}
		}
	}
	fmt.Fprintf(b, ".SH ENVIRONMENT\n.TP\n.B FRONTIER_DIR\nthe folder of the crawl, for commands without \\-dir\n.TP\n.B FRONTIER_PAGE_TOKEN\nthe token of the status page\n")
	fmt.Fprintf(b, ".SH EXIT STATUS\n%s", verbatim(exitStatuses))
	return b.Flush()
}

// manual writes a command's part.
func manual(b *bufio.Writer, c *cli.Command) {
	fmt.Fprintf(b, ".SS %s\n%s.\n.PP\n\\fB%s\\fR\n", roff(c.Name), roff(c.Usage), roff(usageOf(c)))
	if c.Description != "" {
		fmt.Fprintf(b, ".PP\n%s", verbatim(c.Description))
	}
	for _, f := range ownFlags(c) {
		name, usage := describe(f)
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(name), roff(usage))
	}
	if lines := examples[c.Name]; len(lines) > 0 {
		fmt.Fprintf(b, ".PP\nExamples:\n%s", verbatim(strings.Join(lines, "\n")))
	}
}

// verbatim keeps a text's line breaks.
func verbatim(text string) string { return ".nf\n" + roff(strings.TrimRight(text, "\n")) + "\n.fi\n" }

// roff escapes a text for roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
