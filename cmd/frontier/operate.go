// This file implements the commands that inspect and control a crawl.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill"
)

// dirFlag returns a new flag each time: a flag holds its value, and commands may run beside each other.
func dirFlag() cli.Flag {
	return &cli.StringFlag{Name: "dir", Aliases: []string{"d"}, Usage: "`folder` that keeps the crawl", Sources: cli.EnvVars("FRONTIER_DIR")}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON, for programs"}
}

// operation is a command's work on a crawl.
type operation func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error

// operating returns a command that changes a crawl, running or at rest.
func operating(name, args, usage string, run operation, flags ...cli.Flag) *cli.Command {
	return reaching(reach, name, args, usage, run, flags...)
}

// looking returns a command that inspects a crawl, running or at rest, without writing to its folder.
func looking(name, args, usage string, run operation, flags ...cli.Flag) *cli.Command {
	return reaching(lookAt, name, args, usage, run, flags...)
}

func reaching(reach func(context.Context, string) (*reached, error), name, args, usage string, run operation, flags ...cli.Flag) *cli.Command {
	return &cli.Command{
		Name: name, ArgsUsage: args, Usage: usage, Flags: append([]cli.Flag{dirFlag(), jsonFlag()}, flags...),
		Action: func(ctx context.Context, cmd *cli.Command) (err error) {
			if given := cmd.Args().Slice(); args == "" || args[0] == '[' { // none, or one at most
				if err := noMore(given[min(len(args), 1, len(given)):]); err != nil {
					return err
				}
			}
			scope := cmd.String("scope")
			if strings.Contains(args, "SCOPE") {
				scope = cmd.Args().First()
			}
			if err := notAll(scope); err != nil {
				return err
			}
			c, err := reach(ctx, cmd.String("dir"))
			if err != nil {
				return err
			}
			defer func() { err = join(err, c.close()) }()
			return run(ctx, c, cmd, newPrinter(cmd))
		},
	}
}

// doing returns a command that carries out one Action on a scope.
func doing(name, args, usage string, action func(cmd *cli.Command, args []string) (console.Action, error), flags ...cli.Flag) *cli.Command {
	c := operating(name, "SCOPE"+args, usage, func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
		args := cmd.Args().Slice()
		if len(args) == 0 {
			return errNoScope
		}
		a, err := action(cmd, args[1:])
		if err != nil {
			return err
		}
		a.Scope = args[0]
		return mistyped(out.do(ctx, c, a))
	}, flags...)
	c.Description = aboutScopes
	return c
}

// doingToHost is doing for an Action on one host.
func doingToHost(name, args, usage string, action func(cmd *cli.Command, args []string) (console.Action, error)) *cli.Command {
	c := doing(name, args, usage, action)
	c.ArgsUsage, c.Description = "HOST"+args, "HOST is one host, as in shop.example.org."
	return c
}

// aboutScopes is help text.
const aboutScopes = `SCOPE is a host (shop.example.org), a domain with all hosts below it ('*.example.org'), or '*'
for all. What is set for a host counts before what is set for its domain, and that before '*'.`

// usageError is an error in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// mistyped turns a crawl's error about an impossible request into a usageError.
func mistyped(err error) error {
	if e, ok := errors.AsType[*console.APIError](err); ok && (e.Code == http.StatusBadRequest || e.Code == http.StatusUnprocessableEntity) {
		return usageError(e.Message)
	}
	return err
}

// notAll refuses the word all as a scope: it would be a host of that name, and hardly anybody means one.
func notAll(scope string) error {
	if strings.EqualFold(scope, "all") {
		return usageError(scope + " would be a host of that name; want '*' for all hosts, or http://" + scope + "/ for that host")
	}
	return nil
}

// wantFile refuses a folder, and a name without a file. A command that makes the file says how its files begin: it
// replaces no other.
func wantFile(name, makes string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return usageError(name + " is a folder; want a file")
	case errors.Is(err, os.ErrNotExist) && makes == "":
		return usageError("there is no file " + name)
	case errors.Is(err, os.ErrNotExist) && !exists(filepath.Dir(name)):
		return usageError("there is no folder " + filepath.Dir(name))
	case err == nil && makes != "" && info.Mode().IsRegular() && info.Size() > 0:
		if f, err := os.Open(name); err == nil {
			defer f.Close()
			begin := make([]byte, len(makes))
			if _, err := io.ReadFull(f, begin); err != nil || string(begin) != makes {
				return usageError(name + " is there, and this command has not made it; want another name, or remove it")
			}
		}
	}
	return nil
}

// errNoScope is returned when a command names no hosts.
const errNoScope = usageError("which hosts? Want a host, '*.domain', or '*' for all")

// noMore refuses extra arguments.
func noMore(args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("too many arguments: %q; a folder is named with -dir", args))
	}
	return nil
}

func plain(do string) func(*cli.Command, []string) (console.Action, error) {
	return func(_ *cli.Command, args []string) (console.Action, error) {
		return console.Action{Do: do}, noMore(args)
	}
}

func operateCommands() []*cli.Command {
	n := &cli.IntFlag{Name: "n", Value: 20, Usage: "`number` of rows at most, up to 1000"}
	after := &cli.StringFlag{Name: "after", Usage: "go on behind the `cursor` that the part before ended with"}
	crawl := &cli.StringFlag{Name: "crawl", Usage: "`crawl` that the URL belongs to: its number, or its name at a server"}
	return slices.Concat(
		under(toLook,
			looking("status", "", "show how the crawl is doing", status),
			topCommand(),
			looking("hosts", "", "list hosts, and what each waits for", hosts, n, after,
				&cli.StringFlag{Name: "scope", Usage: "only `hosts` of *.domain"}, &cli.StringFlag{Name: "reason", Usage: "only those that wait for this `reason`: delay, back-off, paused ..."},
				&cli.StringFlag{Name: "match", Usage: "only names that contain this `text`"}, &cli.StringFlag{Name: "sort", Value: "domain", Usage: "`order`: domain, or waiting"},
				&cli.BoolFlag{Name: "sunk", Usage: "only those that were moved down"}),
			looking("explain", "URL|HOST", "explain what became of a URL, or why a URL or a host is not fetched yet", explain, crawl),
			looking("urls", "[SCOPE]", "list waiting URLs", urls, n, after),
			endsCommand(),
			reportCommand(),
			looking("leases", "[SCOPE]", "list the URLs that clients of a server have, the oldest first", leases,
				&cli.IntFlag{Name: "n", Value: 20, Usage: "`number` of rows at most, up to 10000"}, &cli.StringFlag{Name: "client", Usage: "only those of the `client` with this name or address"}),
			looking("rules", "", "list what pause, block, delay, priority and limit have set", rules),
		),
		under(toChange,
			doing("pause", "", "stop fetching from some hosts until unpause", plain("pause")),
			doing("unpause", "", "let paused hosts go on", plain("resume")),
			doing("block", "", "stop fetching from some hosts for some time", blockAction,
				&cli.DurationFlag{Name: "for", Usage: "`time`, as in 90m; 0 ends a block"}, &cli.TimestampFlag{Name: "until", Usage: "`moment`, as in 2027-01-31T08:00:00Z", Config: cli.TimestampConfig{Layouts: []string{time.RFC3339}}}),
			doing("delay", " TIME | FACTOR MIN MAX | none", "set the pause between two requests to a host", delayAction),
			doing("priority", " NUMBER | none", "set the priority of some hosts, whatever their URLs have", priorityAction),
			doingToHost("standing", " up|down LEVELS | none", "move the priorities of a host's URLs up or down", standingAction),
			doing("limit", " [none]", "limit the pages, bytes or errors of some hosts", limitAction,
				&cli.BoolFlag{Name: "each", Usage: "for each host alone, instead of all together"}, &cli.Int64Flag{Name: "pages", Usage: "`number` of fetches"}, &cli.StringFlag{Name: "bytes", Usage: "`bytes` transferred; k, M, G may follow"},
				&cli.Int64Flag{Name: "errors", Usage: "`number` of failed fetches"}, &cli.Int64Flag{Name: "waiting", Usage: "`number` of URLs that wait"}, &cli.IntFlag{Name: "depth", Usage: "`number` of links from a seed"},
				&cli.DurationFlag{Name: "period", Usage: "`time` after which pages, bytes and errors are counted from zero again"}),
			doing("clear", "", "remove all that was set for some hosts", plain("clear")),
			doingToHost("forget", "", "forget what was learned about a host: its failures, its Crawl-delay", plain("forget")),
			endLeasesCommand(),
			deleteCommand(),
			reaching(reachScope, "add", "URL...", "add URLs to the crawl, if they are in its scope", adding("add"), crawl),
			reaching(reachScope, "now", "URL...", "fetch URLs before everything else, also those that were fetched before", adding("crawl-now"), crawl),
			retryCommand(),
			changedCommand(),
		),
		under(toKeep,
			looking("checkpoint", "", "copy a running crawl, for backup", checkpoint),
			stopCommand(),
			drainCommand(),
			memberCommand(),
			looking("export", "[FILE]", "write the whole crawl as text, to a file or to the standard output", export),
			importCommand(),
			repairCommand(),
		),
	)
}

func status(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	s, err := c.Status(ctx)
	of, _ := askFleet(ctx, cmd.String("dir"), "GET", "") // nil without a fleet
	if err != nil && of != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(of.Lines(), "\n"))
	} else if err != nil {
		return err
	}
	return out.status(s, c.running, of)
}

func hosts(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	if err := rows(cmd); err != nil {
		return err
	}
	if sort := cmd.String("sort"); sort != "domain" && sort != "waiting" {
		return usageError(fmt.Sprintf("hosts: -sort is %q; want domain or waiting", sort))
	}
	q := console.HostsQuery{
		Scope: cmd.String("scope"), After: cmd.String("after"), N: cmd.Int("n"), Reason: cmd.String("reason"), Match: cmd.String("match"), Sort: cmd.String("sort"), Sunk: cmd.Bool("sunk"),
	}
	var all console.HostList
	for { // a part may be short because the search took long
		x, err := c.Hosts(ctx, q)
		if err != nil {
			return mistyped(err)
		}
		x.Hosts = append(all.Hosts, x.Hosts...)
		all = x
		q.After, q.N = x.Next, cmd.Int("n")-len(all.Hosts)
		if x.Next == "" || q.N <= 0 {
			return out.hosts(all)
		}
	}
}

func explain(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	args := cmd.Args().Slice()
	if len(args) != 1 {
		return usageError("explain what? Want one URL or host")
	}
	if strings.Contains(args[0], "/") {
		of := crawlOf(cmd)
		if of.Name != "" {
			return usageError(fmt.Sprintf("explain: -crawl is %q; want a number: of a crawl with a name the server tells at /v1/urls?crawl=NAME&url=URL", of.Name))
		}
		x, err := c.URL(ctx, of.Number, args[0])
		if e, ok := errors.AsType[*console.APIError](err); ok && e.Code == http.StatusUnprocessableEntity {
			return usageError("explain: " + strings.TrimPrefix(e.Message, "console: "))
		} else if err != nil {
			return err
		}
		return out.became(x, cmd.String("dir"))
	}
	if cmd.IsSet("crawl") {
		return usageError("explain: -crawl is for a URL, and this is a host")
	}
	x, err := c.Host(ctx, args[0])
	if err != nil {
		return mistyped(err)
	}
	reasons, err := robotsOfHost(cmd.String("dir"), x.Host)
	return cmp.Or(err, out.host(x, reasons...))
}

// rows checks -n.
func rows(cmd *cli.Command) error {
	if n := cmd.Int("n"); n < 1 || n > 1000 {
		return usageError(fmt.Sprintf("%s: -n is %d; want 1 to 1000", cmd.Name, n))
	}
	return nil
}

func urls(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	if err := rows(cmd); err != nil {
		return err
	}
	var all console.URLList
	for after, n := cmd.String("after"), cmd.Int("n"); ; { // a part may be short
		x, err := c.URLs(ctx, cmd.Args().First(), after, n-len(all.URLs))
		if err != nil {
			return mistyped(err)
		}
		x.URLs = append(all.URLs, x.URLs...)
		all, after = x, x.Next
		if after == "" || len(all.URLs) >= n {
			return out.urls(all)
		}
	}
}

func rules(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	x, err := c.Rules(ctx)
	if err != nil {
		return err
	}
	return out.rules(x)
}

func blockAction(cmd *cli.Command, args []string) (console.Action, error) {
	a := console.Action{Do: "block"}
	switch {
	case cmd.IsSet("for") && cmd.IsSet("until"):
		return a, usageError("block: want -for or -until, not both")
	case !cmd.IsSet("for") && !cmd.IsSet("until"):
		return a, usageError("block: how long? Want -for or -until")
	case cmd.IsSet("for"):
		if a.For = console.Duration(cmd.Duration("for")); a.For < 0 {
			return a, usageError(fmt.Sprintf("block: -for is %v; want >= 0", cmd.Duration("for")))
		}
		if a.For == 0 {
			a.Until = &time.Time{} // ends the block
		}
	default:
		t := cmd.Timestamp("until")
		if a.Until = &t; !t.After(time.Now()) {
			return a, usageError(fmt.Sprintf("block: -until is %s, and that has passed; -for 0 ends a block", t.UTC().Format(time.RFC3339)))
		}
	}
	return a, noMore(args)
}

func delayAction(_ *cli.Command, args []string) (console.Action, error) {
	a := console.Action{Do: "delay"}
	if len(args) > 3 {
		return a, noMore(args[3:])
	}
	wrong := usageError("delay: want a time as in 5s, a factor with a least and a greatest time as in 10 1s 30s, or none")
	times := make([]console.Duration, len(args))
	for i, s := range args {
		if len(args) == 3 && i == 0 || s == "none" {
			continue
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 {
			return a, wrong
		}
		times[i] = console.Duration(d)
	}
	switch {
	case len(args) == 1 && args[0] == "none":
		a.None = true
	case len(args) == 1:
		a.Delay = &console.Delay{Fixed: &times[0]}
	case len(args) == 3:
		k, err := strconv.ParseFloat(args[0], 64)
		if err != nil || !(k >= 0) || math.IsInf(k, 1) || times[1] > times[2] {
			return a, wrong
		}
		a.Delay = &console.Delay{Factor: &k, Min: times[1], Max: times[2]}
	default:
		return a, wrong
	}
	return a, nil
}

func priorityAction(_ *cli.Command, args []string) (console.Action, error) {
	a := console.Action{Do: "priority"}
	if a.None = len(args) == 1 && args[0] == "none"; a.None {
		return a, nil
	}
	var err error
	if a.N, err = strconv.Atoi(strings.Join(args, " ")); err != nil || a.N < 0 {
		return a, usageError("priority: want a number from 1 on, or none")
	}
	a.None = a.N == 0
	return a, nil
}

func standingAction(_ *cli.Command, args []string) (console.Action, error) {
	a := console.Action{Do: "standing"}
	if len(args) == 1 && args[0] == "none" {
		return a, nil
	}
	if len(args) != 2 || args[0] != "up" && args[0] != "down" {
		return a, usageError("standing: want up or down and a number of levels, or none")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 {
		return a, usageError(fmt.Sprintf("standing: %q levels; want a number from 1 on", args[1]))
	}
	if a.N = n; args[0] == "down" {
		a.N = -n
	}
	return a, nil
}

func limitAction(cmd *cli.Command, args []string) (console.Action, error) {
	a := console.Action{Do: "limit", Limits: console.Limits{
		Served: cmd.Int64("pages"), Errors: cmd.Int64("errors"), Waiting: cmd.Int64("waiting"), Depth: cmd.Int("depth"), Period: console.Duration(cmd.Duration("period")),
	}}
	if cmd.Bool("each") {
		a.Do = "host-limit"
	}
	if s := cmd.String("bytes"); s != "" {
		var b byteSize
		if err := b.Set(s); err != nil {
			return a, usageError(fmt.Sprintf("limit: -bytes: %v", err))
		}
		a.Limits.Bytes = int64(b)
	}
	for name, n := range map[string]int64{"pages": a.Limits.Served, "errors": a.Limits.Errors, "waiting": a.Limits.Waiting, "depth": int64(a.Limits.Depth), "period": int64(a.Limits.Period)} {
		if n < 0 {
			return a, usageError(fmt.Sprintf("limit: -%s is negative; want >= 0", name))
		}
	}
	if a.Limits.Period > 0 && a.Limits.Served == 0 && a.Limits.Bytes == 0 && a.Limits.Errors == 0 {
		return a, usageError("limit: -period needs -pages, -bytes or -errors")
	}
	none := a.Limits
	none.Period = 0
	if a.None = len(args) == 1 && args[0] == "none"; a.None == (none != console.Limits{}) {
		return a, usageError("limit: want limits (-pages, -bytes, -errors, -waiting, -depth), or none to take them back")
	} else if a.None {
		args = nil
	}
	return a, noMore(args)
}

// reachScope finds a folder's crawl with its scope, which a crawl at rest has in its stored settings, if
// it ever began.
func reachScope(ctx context.Context, dir string) (*reached, error) {
	return reachOr(ctx, dir, func(ctx context.Context, dir string) (*reached, error) {
		if !exists(filepath.Join(dir, keptConfig)) {
			return openAtRest(ctx, dir)
		}
		return openAsBegun(ctx, dir)
	})
}

// crawlOf returns what -crawl says.
func crawlOf(cmd *cli.Command) console.CrawlID {
	n, err := strconv.ParseUint(cmp.Or(cmd.String("crawl"), "0"), 10, 32)
	if err != nil {
		return console.CrawlID{Name: cmd.String("crawl")}
	}
	return console.CrawlID{Number: uint32(n)}
}

// adding returns a command that adds URLs.
func adding(do string) func(context.Context, *reached, *cli.Command, *printer) error {
	return func(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
		if cmd.NArg() == 0 {
			return usageError("which URLs?")
		}
		return out.do(ctx, c, console.Action{Do: do, URLs: cmd.Args().Slice(), Crawl: crawlOf(cmd)})
	}
}

// checkpoint copies a running crawl.
func checkpoint(ctx context.Context, c *reached, _ *cli.Command, out *printer) error {
	if !c.running {
		return errors.New("it does not run: its folder can be copied as it is")
	}
	return out.do(ctx, c, console.Action{Do: "checkpoint"})
}

// export writes a complete file or none.
func export(ctx context.Context, c *reached, cmd *cli.Command, out *printer) error {
	name := cmd.Args().First()
	if cmd.NArg() == 0 || name == "-" {
		return c.Export(ctx, cmd.Root().Writer)
	}
	if err := wantFile(name, `{"frontier":`); err != nil {
		return err
	}
	if err := durablefs.WriteFile(name, 0o600, func(w io.Writer) error { return c.Export(ctx, w) }); err != nil {
		return err
	}
	return out.result(console.Result{Said: "the crawl is exported to " + name, Path: name})
}

func repairCommand() *cli.Command {
	return &cli.Command{
		Name: "repair", ArgsUsage: "NEW-FOLDER", Usage: "rescue what can be read of a damaged crawl into a new folder", Flags: []cli.Flag{dirFlag(), jsonFlag()},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			if cmd.NArg() != 1 {
				return usageError("repair: into which new folder?")
			}
			if cmd.String("dir") == "" {
				return errNoDir
			}
			if !exists(cmd.String("dir")) {
				return hasCrawl(cmd.String("dir"))
			}
			r, err := spill.Repair(ctx, cmd.String("dir"), cmd.Args().First(), spill.Options{})
			if err == nil {
				err = copyConfig(cmd.String("dir"), cmd.Args().First())
			}
			if err != nil {
				return err
			}
			if err = newPrinter(cmd).repaired(r); err == nil && r.Blocks+r.Batches+r.Rows == 0 && r.Marks == 0 && len(r.Lost) > 0 {
				err = fmt.Errorf("nothing of a crawl can be read in %s, so %s is empty", cmd.String("dir"), cmd.Args().First())
			}
			return err
		},
	}
}
