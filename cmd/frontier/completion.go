// This file completes command lines: commands, flags, values, and hosts of a crawl. The shells' scripts
// only call the hidden command below.

package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
)

// completing is the hidden command of the scripts. Its arguments are the words up to the cursor, the last
// one unfinished. It prints one candidate per line, with an optional tab and description.
const completing = "__complete"

// scripts are the shells' scripts, by shell. Without candidates they offer files.
//
//go:embed completion
var scripts embed.FS

// shells are the shells with a script.
var shells = []string{"bash", "zsh", "fish", "pwsh"}

func completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion", ArgsUsage: strings.Join(shells, "|"), Usage: "write the completions for a shell",
		Action: func(_ context.Context, cmd *cli.Command) error {
			script, err := scripts.ReadFile("completion/" + cmd.Args().First())
			if err != nil || cmd.NArg() > 1 {
				return usageError("completion: for which shell? Want one of bash, zsh, fish and pwsh")
			}
			_, err = cmd.Root().Writer.Write(script)
			return err
		},
	}
}

func completingCommand() *cli.Command {
	return &cli.Command{
		Name: completing, Hidden: true, SkipFlagParsing: true,
		Action: func(ctx context.Context, cmd *cli.Command) error {
			for _, c := range complete(ctx, cmd.Root(), cmd.Args().Slice()) {
				if _, err := fmt.Fprintln(cmd.Root().Writer, strings.TrimSuffix(c.word+"\t"+c.means, "\t")); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// candidate is a word to offer at the cursor.
type candidate struct{ word, means string }

// complete returns candidates for the last word.
func complete(ctx context.Context, root *cli.Command, words []string) []candidate {
	if len(words) == 0 {
		return nil
	}
	last, before := strings.TrimLeft(words[len(words)-1], `'"`), words[:len(words)-1]
	return slices.DeleteFunc(proposed(ctx, root, before, last), func(c candidate) bool { return !strings.HasPrefix(c.word, last) })
}

func proposed(ctx context.Context, root *cli.Command, before []string, last string) []candidate {
	if len(before) == 0 || before[0] == "help" && len(before) == 1 {
		return commandWords(root)
	}
	cmd := root.Command(before[0])
	if cmd == nil {
		return nil
	}
	if name, _, ok := strings.Cut(last, "="); ok && strings.HasPrefix(name, "-") {
		return valuesOf(ctx, cmd, strings.TrimLeft(name, "-"), name+"=", before)
	}
	if strings.HasPrefix(last, "-") {
		return flagWords(cmd, last)
	}
	if flag := before[len(before)-1]; strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") {
		if f := flagOf(cmd, strings.TrimLeft(flag, "-")); f != nil && f.(cli.DocGenerationFlag).TakesValue() {
			return valuesOf(ctx, cmd, f.Names()[0], last[:strings.LastIndexByte(last, ',')+1], before)
		}
	}
	switch {
	case cmd.Name == "completion":
		return plainWords("", shells...)
	case cmd.Name == "help":
		return plainWords("", "all")
	case strings.HasPrefix(cmd.ArgsUsage, "SCOPE"), cmd.Name == "explain", cmd.Name == "urls":
		return hostsOfCrawl(ctx, cmd, before, last)
	}
	return nil
}

func commandWords(root *cli.Command) (found []candidate) {
	for _, c := range shownCommands(root) {
		found = append(found, candidate{c.Name, c.Usage})
	}
	return found
}

// flagWords returns a command's flags, with as many dashes as were typed.
func flagWords(cmd *cli.Command, last string) (found []candidate) {
	dashes := "-"
	if strings.HasPrefix(last, "--") {
		dashes = "--"
	}
	for _, f := range cmd.VisibleFlags() {
		_, means := describe(f)
		for _, name := range f.Names() {
			found = append(found, candidate{dashes + name, means})
		}
	}
	return found
}

func flagOf(cmd *cli.Command, name string) cli.Flag {
	flags := cmd.VisibleFlags()
	if i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }); i >= 0 {
		return flags[i]
	}
	return nil
}

// flagValues maps flags to the words that they accept.
var flagValues = map[string]func() []string{
	"reason":     console.Reasons,
	"outcome":    outcomeWords,
	"order":      func() []string { return orderNames },
	"sort":       func() []string { return []string{"domain", "waiting"} },
	"strategy":   func() []string { return []string{"even", "last", "mixed"} },
	"log-format": func() []string { return []string{"text", "json"} },
	"ports":      func() []string { return []string{"web", "any"} },
	"protocols":  func() []string { return []string{"ftp", "gopher"} },
}

// valuesOf returns candidates for a flag's value, each after the word's part before it.
func valuesOf(ctx context.Context, cmd *cli.Command, name, lead string, before []string) []candidate {
	if words := flagValues[name]; words != nil {
		return plainWords(lead, words()...)
	}
	if name == "host" || name == "scope" {
		return hostsOfCrawl(ctx, cmd, before, "")
	}
	return nil
}

func plainWords(lead string, words ...string) (found []candidate) {
	for _, w := range words {
		found = append(found, candidate{lead + w, ""})
	}
	return found
}

// Bounds of a search for hosts while a user waits for completion.
const (
	completeFor  = 10 * time.Second
	completeMost = 100
)

// hostsOfCrawl returns hosts of the crawl that the words before the cursor, or the environment, name.
func hostsOfCrawl(ctx context.Context, cmd *cli.Command, before []string, last string) []candidate {
	dir := os.Getenv("FRONTIER_DIR")
	for i, w := range before {
		if f, value, ok := strings.Cut(strings.TrimLeft(w, "-"), "="); strings.HasPrefix(w, "-") && (f == "dir" || f == "d") {
			if dir = value; !ok && i+1 < len(before) {
				dir = before[i+1]
			}
		}
	}
	ctx, stop := context.WithTimeout(ctx, completeFor)
	defer stop()
	c, err := lookAt(ctx, dir)
	if err != nil {
		return nil
	}
	defer c.close()
	x, err := c.Hosts(ctx, console.HostsQuery{N: completeMost, Match: strings.TrimPrefix(last, "*.")})
	if err != nil {
		return nil
	}
	found := plainWords("")
	for _, h := range x.Hosts {
		found = append(found, candidate{h.Host, ""})
	}
	if cmd.Name != "explain" {
		found = append(found, candidate{"*", "all hosts"})
	}
	return found
}
