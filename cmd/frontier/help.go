// This file writes the help: the list of commands, and each command's flags.

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"
)

// Categories of commands, in the order of use.
const (
	toCrawl  = "Crawl"
	toLook   = "Look at a crawl, running or at rest"
	toChange = "Change a crawl, running or at rest"
	toKeep   = "Stop, copy and mend a crawl"
	toHelp   = "Help"
)

// everyday are the flags that a beginner needs, in the order of use. Commands with many flags show only
// these by default.
var everyday = []string{
	"dir", "contact", "seeds-file", "max-pages", "max-time", "max-depth", "scope-domains", "exclude",
	"delay", "workers", "allow-network", "sitemaps", "warc", "recrawl-budget", "config", "page", "quiet",
}

// many is how many flags a command shows by default.
const many = 20

// examples are example command lines, by command.
var examples = map[string][]string{
	"crawl": {
		"frontier crawl -dir state -contact me@example.org -max-pages 1000 https://example.org/",
		"frontier crawl -allow-network 127.0.0.0/8 http://127.0.0.1:8000/",
		"frontier crawl -config crawl.toml",
	},
	"resume":     {"frontier resume state", "frontier resume -workers 32 state"},
	"recrawl":    {"frontier recrawl -dir state -contact me@example.org -recrawl-budget 1000/h https://example.org/"},
	"serve":      {"frontier serve -dir state", "frontier serve -dir state -http 0.0.0.0:8348 -tokens tokens -tls-cert cert.pem -tls-key key.pem"},
	"route":      {"frontier route -part a=http://10.0.0.1:8348 -part b=http://10.0.0.2:8348,http://10.0.0.3:8348"},
	"plan":       {"frontier plan -dir state -periods 7"},
	"status":     {"frontier status -dir state", "FRONTIER_DIR=state frontier status -json"},
	"top":        {"frontier top -dir state"},
	"hosts":      {"frontier hosts -dir state -sort waiting -n 10", "frontier hosts -dir state -reason paused", "frontier hosts -dir state -sunk"},
	"explain":    {"frontier explain -dir state https://example.org/page", "frontier explain -dir state example.org"},
	"urls":       {"frontier urls -dir state example.org"},
	"ends":       {"frontier ends -dir state -failed", "frontier ends -dir state -rule robots.txt -n 0 -json"},
	"report":     {"frontier report -dir state report.html"},
	"retry":      {"frontier retry -dir state", "frontier retry -dir state -host example.org -outcome gone"},
	"leases":     {"frontier leases -dir state", "frontier leases -dir state -client bot-1 '*.example.org'"},
	"end-leases": {"frontier end-leases -dir state -client bot-1", "frontier end-leases -dir state example.org"},
	"rules":      {"frontier rules -dir state"},
	"pause":      {"frontier pause -dir state example.org", "frontier pause -dir state '*'"},
	"unpause":    {"frontier unpause -dir state '*'"},
	"block":      {"frontier block -dir state -for 2h '*.example.org'"},
	"delay":      {"frontier delay -dir state example.org 30s", "frontier delay -dir state example.org none"},
	"priority":   {"frontier priority -dir state news.example.org 8"},
	"standing":   {"frontier standing -dir state links.example.org down 2", "frontier standing -dir state links.example.org none"},
	"limit":      {"frontier limit -dir state -each -pages 1000 -period 24h '*'", "frontier limit -dir state example.org none"},
	"clear":      {"frontier clear -dir state example.org"},
	"forget":     {"frontier forget -dir state example.org"},
	"delete":     {"frontier delete -dir state trap.example.org"},
	"add":        {"frontier add -dir state https://example.org/new"},
	"now":        {"frontier now -dir state https://example.org/"},
	"changed":    {"frontier changed -dir state changed-urls.txt"},
	"checkpoint": {"frontier checkpoint -dir state"},
	"stop":       {"frontier stop -dir state"},
	"drain":      {"frontier drain -dir state", "frontier drain -dir state -back"},
	"member":     {"frontier member -dir a d=10.0.0.4:8349", "frontier member -dir a -remove d"},
	"export":     {"frontier export -dir state crawl.jsonl"},
	"import":     {"frontier import -dir state crawl.jsonl"},
	"repair":     {"frontier repair -dir state repaired"},
	"version":    {"frontier version"},
	"help":       {"frontier help crawl", "frontier help crawl all"},
	"man":        {"frontier man >frontier.1"},
	"completion": {"frontier completion bash"},
}

// under assigns a category to commands.
func under(category string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = category
	}
	return commands
}

// intro is the beginning of the list of commands.
const intro = `frontier crawls web sites politely: one request at a time for each host, with a pause
between two. A crawl can be stopped at any moment, and goes on where it was.

Begin with
  frontier crawl -dir state -contact me@example.org https://example.org/
and look at it with
  frontier status -dir state
`

// The library's help printer is a package variable; it gets the command as data.
func init() {
	cli.HelpPrinter = func(w io.Writer, _ string, data any) {
		if cmd := data.(*cli.Command); len(cmd.Commands) > 0 && cmd.Root() == cmd {
			printCommands(w, cmd)
		} else {
			printCommand(w, cmd, false)
		}
	}
}

// helpCommand is "frontier help". The library's own ends with status 0 if a command does not exist.
func helpCommand() *cli.Command {
	return &cli.Command{
		Name: "help", ArgsUsage: "[COMMAND [all]]", Usage: "show the commands, or the flags of one",
		Action: func(_ context.Context, cmd *cli.Command) error {
			root, args := cmd.Root(), cmd.Args().Slice()
			if len(args) == 0 {
				printCommands(root.Writer, root)
				return nil
			}
			c := root.Command(args[0])
			if c == nil {
				return unknownCommand(root, args[0])
			}
			all := len(args) == 2 && args[1] == "all"
			if len(args) > 1 && !all {
				return usageError(fmt.Sprintf("help: %q; want a command, and perhaps \"all\"", args))
			}
			printCommand(root.Writer, c, all)
			return nil
		},
	}
}

// unknownCommand is the error for an unknown command.
func unknownCommand(root *cli.Command, name string) error {
	var names []string
	for _, c := range shownCommands(root) {
		names = append(names, c.Name)
	}
	return usageError(fmt.Sprintf("there is no command %q%s", name, suggest(name, names, "")))
}

// wrongValue matches the library's message for an invalid value.
var wrongValue = regexp.MustCompile(`^invalid value (".*?") for flag -+([^: ]+)`)

// badFlags rewords the library's errors about a command's flags.
func badFlags(_ context.Context, cmd *cli.Command, err error, _ bool) error {
	said := err.Error()
	if name, ok := strings.CutPrefix(said, "flag provided but not defined: -"); ok {
		return unknownFlag(cmd, strings.TrimPrefix(name, "-"))
	}
	if name, ok := strings.CutPrefix(said, "flag needs an argument: "); ok {
		return usageError(fmt.Sprintf("%s: %s needs a value", cmd.Name, name))
	}
	if m := wrongValue.FindStringSubmatch(said); m != nil {
		if f := flagOf(cmd, m[2]); f != nil {
			return usageError(fmt.Sprintf("%s: -%s is %s; want %s", cmd.Name, m[2], m[1], wanted(f)))
		}
	}
	return usageError(cmd.Name + ": " + said)
}

// wanted describes the values of a flag.
func wanted(f cli.Flag) string {
	switch f.(type) {
	case *cli.GenericFlag: // of crawl's options only plan's are parsed at once
		return share.wanted
	case *cli.DurationFlag:
		return duration.wanted
	case *cli.TimestampFlag:
		return "a moment as in 2027-01-31T08:00:00Z"
	case *cli.BoolFlag:
		return boolean.wanted
	case *cli.Uint32Flag:
		return "an integer from 0 to 4294967295"
	}
	return integer.wanted
}

func unknownFlag(cmd *cli.Command, name string) error {
	var names []string
	for _, f := range cmd.VisibleFlags() {
		names = append(names, f.Names()...)
	}
	return usageError(fmt.Sprintf("%s: there is no flag -%s%s", cmd.Name, name, suggest(name, names, "-")))
}

// suggest proposes the name nearest to an unknown one.
func suggest(name string, names []string, prefix string) string {
	best, most := "", 2
	for _, n := range names {
		if d := distance(name, n); d <= most && d < len(name) {
			best, most = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", prefix+best)
}

// distance counts the letters to change, add or remove to turn a into b. Swapping two neighbours counts
// one.
func distance(a, b string) int {
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// shownCommands returns the commands that are not hidden. The library would omit help.
func shownCommands(root *cli.Command) []*cli.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands), func(c *cli.Command) bool { return c.Hidden })
}

// categories returns the categories, in the order of definition.
func categories(root *cli.Command) (names []string) {
	for _, c := range shownCommands(root) {
		if !slices.Contains(names, c.Category) {
			names = append(names, c.Category)
		}
	}
	return names
}

// printCommands prints the commands.
func printCommands(w io.Writer, root *cli.Command) {
	fmt.Fprint(w, intro)
	for _, category := range categories(root) {
		fmt.Fprintf(w, "\n%s\n", category)
		for _, c := range shownCommands(root) {
			if c.Category == category {
				printEntry(w, c.Name, c.Usage, 12)
			}
		}
	}
	fmt.Fprintf(w, "\n%s\n\n\"frontier COMMAND -h\" shows the flags of a command, with examples.\n", exitStatuses)
}

// printCommand prints a command's everyday flags, or all.
func printCommand(w io.Writer, cmd *cli.Command, all bool) {
	fmt.Fprintf(w, "frontier %s: %s\n\nUsage: %s\n", cmd.Name, cmd.Usage, usageOf(cmd))
	if cmd.Description != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(cmd.Description))
	}
	if len(examples[cmd.Name]) > 0 {
		fmt.Fprintf(w, "\nExamples:\n  %s\n", strings.Join(examples[cmd.Name], "\n  "))
	}
	flags := ownFlags(cmd)
	switch short := len(flags) > many && !all; {
	case len(flags) == 0:
	case short:
		fmt.Fprint(w, "\nThe flags of every day:\n")
		for _, name := range everyday {
			if name == "recrawl-budget" && cmd.Name != "recrawl" {
				continue
			}
			if i := slices.IndexFunc(flags, func(f cli.Flag) bool { return f.Names()[0] == name }); i >= 0 {
				showFlag(w, flags[i])
			}
		}
		fmt.Fprintf(w, "\nAll %d flags: frontier %s -h all\n", len(flags), cmd.Name)
	default:
		theme := "flags"
		for i, f := range flags {
			if t := themeOf(f); i == 0 || t != theme {
				theme = t
				fmt.Fprintf(w, "\n%s:\n", strings.ToUpper(theme[:1])+theme[1:])
			}
			showFlag(w, f)
		}
	}
}

// usageOf returns a command's usage line.
func usageOf(cmd *cli.Command) string {
	return strings.TrimSpace("frontier " + cmd.Name + " [flags] " + cmd.ArgsUsage)
}

// ownFlags returns a command's flags except the one for help, by theme.
func ownFlags(cmd *cli.Command) []cli.Flag {
	flags := slices.DeleteFunc(slices.Clone(cmd.VisibleFlags()), func(f cli.Flag) bool { return slices.Contains(f.Names(), "help") })
	var themes []string
	for _, f := range flags {
		if t := themeOf(f); !slices.Contains(themes, t) {
			themes = append(themes, t)
		}
	}
	slices.SortStableFunc(flags, func(a, b cli.Flag) int {
		return slices.Index(themes, themeOf(a)) - slices.Index(themes, themeOf(b))
	})
	return flags
}

func themeOf(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok && c.GetCategory() != "" {
		return c.GetCategory()
	}
	return "flags"
}

func showFlag(w io.Writer, f cli.Flag) {
	name, usage := describe(f)
	printEntry(w, name, usage, 26)
}

// describe returns a flag with its argument, and its description.
func describe(f cli.Flag) (name, usage string) {
	d := f.(cli.DocGenerationFlag)
	name = "-" + strings.Join(f.Names(), ", -")
	argument, usage := flag.UnquoteUsage(&flag.Flag{Usage: d.GetUsage(), Value: plainValue{}})
	if g, ok := f.(*cli.GenericFlag); ok {
		if t, ok := g.Value.(*typed); ok {
			argument, usage = flag.UnquoteUsage(t.Flag)
		}
	}
	if d.TakesValue() && argument != "" {
		name += " " + argument
	}
	if s := initial(f); s != "" {
		usage += " (default " + s + ")"
	}
	return name, usage
}

// plainValue is a value whose type the help does not show.
type plainValue struct{}

func (plainValue) String() string   { return "" }
func (plainValue) Set(string) error { return nil }

// initial returns a flag's default, if it is worth showing.
func initial(f cli.Flag) string {
	d := f.(cli.DocGenerationFlag)
	s := cmp.Or(d.GetDefaultText(), d.GetValue())
	if g, ok := f.(*cli.GenericFlag); ok && g.HideDefault || !d.TakesValue() || slices.Contains([]string{"", `""`, "0", "0s"}, s) {
		return ""
	}
	return strings.Trim(s, `"`)
}

// printEntry prints a name and its description in two columns.
func printEntry(w io.Writer, name, text string, width int) {
	const line = 100
	lead := fmt.Sprintf("  %-*s", width, name)
	if utf8.RuneCountInString(name) >= width {
		fmt.Fprintf(w, "  %s\n", name)
		lead = strings.Repeat(" ", width+2)
	}
	for text != "" {
		part := text
		if room := line - width - 2; len(part) > room {
			if i := strings.LastIndexByte(part[:room+1], ' '); i > 0 {
				part = part[:i]
			}
		}
		fmt.Fprintf(w, "%s%s\n", lead, part)
		text = strings.TrimPrefix(text[len(part):], " ")
		lead = strings.Repeat(" ", width+2)
	}
}
