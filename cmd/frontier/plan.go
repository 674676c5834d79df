// This file implements plan: what it takes to see every page of a crawl within a time, and what a budget
// achieves. It reads saved state and changes nothing.

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/incremental"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/recrawl/plan"
)

// maxPeriods bounds a plan, whose time grows with the square of the periods.
const maxPeriods = 1000

// strategies are the ways to weigh the periods of a plan, by name.
var strategies = map[string]plan.Strategy{"even": plan.Even, "last": plan.Last, "mixed": plan.Mixed}

// outlook is plan's output.
type outlook struct {
	Saved time.Time `json:"saved,omitzero"` // when the data were saved
	Model string    `json:"model,omitempty"`

	Pages  float64 `json:"pages"`  // known
	New    float64 `json:"new"`    // known and never crawled
	Period float64 `json:"period"` // seconds; 0: unknown, for a model from a file
	Within int     `json:"within"` // periods
	Cover  float64 `json:"cover"`  // fetches per period that show every page within these periods

	Budget float64    `json:"budget"` // fetches per period to plan with; 0: none
	Plan   *plan.Plan `json:"plan,omitempty"`
}

func planCommand() *cli.Command {
	var budget rate
	return &cli.Command{
		Name:  "plan",
		Usage: "estimate the budget with which a recrawl sees every page in time",
		Flags: []cli.Flag{dirFlag(), jsonFlag(),
			&cli.IntFlag{Name: "periods", Value: 14, Usage: "`number` of periods within which every page is to be seen"},
			&cli.DurationFlag{Name: "period", Value: 24 * time.Hour, Usage: "`time` that a period has"},
			&cli.GenericFlag{Name: "budget", Value: &getter{&budget}, HideDefault: true, Usage: "`fetches` per second, or 1000/m, 50000/h, 1000000/d, to plan with (default: the crawl's)"},
			&cli.StringFlag{Name: "strategy", Value: "even", Usage: "periods that `count`: even, last, mixed"},
			&cli.StringFlag{Name: "model", Usage: "plan the model in a `file` of JSON instead (recrawl/plan.Model)"}},
		Action: func(ctx context.Context, cmd *cli.Command) error {
			m, o, err := planned(ctx, cmd, budget)
			if err != nil {
				return err
			}
			if o.Cover, _, err = m.Cover(); err != nil {
				return err
			}
			if o.Budget > 0 {
				if o.Plan, err = plan.Solve(ctx, m, plan.Options{}); err != nil {
					return err
				}
			}
			return newPrinter(cmd).plan(o)
		},
	}
}

// getter adapts a rate to package cli.
type getter struct{ *rate }

func (g *getter) Get() any { return float64(*g.rate) }

// planned returns the model for a command line.
func planned(ctx context.Context, cmd *cli.Command, budget rate) (*plan.Model, *outlook, error) {
	strategy, ok := strategies[cmd.String("strategy")]
	switch n, period := cmd.Int("periods"), cmd.Duration("period"); {
	case cmd.NArg() > 0:
		return nil, nil, noMore(cmd.Args().Slice())
	case !ok:
		return nil, nil, usageError(fmt.Sprintf("plan: -strategy is %q; want even, last or mixed", cmd.String("strategy")))
	case n < 1 || n > maxPeriods:
		return nil, nil, usageError(fmt.Sprintf("plan: -periods is %d; want 1 to %d", n, maxPeriods))
	case period <= 0:
		return nil, nil, usageError(fmt.Sprintf("plan: -period is %v; want > 0", period))
	case cmd.IsSet("model"):
		for _, name := range []string{"periods", "period", "budget", "strategy"} {
			if cmd.IsSet(name) {
				return nil, nil, usageError(fmt.Sprintf("plan: -%s cannot be combined with -model, which has its own", name))
			}
		}
		return readModel(cmd.String("model"))
	}
	return live(ctx, cmd, float64(budget), strategy)
}

// readModel reads a model from a file.
func readModel(name string) (*plan.Model, *outlook, error) {
	text, err := os.ReadFile(name)
	if err = cmp.Or(wantFile(name, ""), err); err != nil {
		return nil, nil, err
	}
	m := &plan.Model{}
	if err := jsonl.Decode(bytes.NewReader(text), m); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	o := &outlook{Model: name, New: m.New, Within: m.Periods, Budget: m.Budget.At(1)}
	for _, n := range m.Pages {
		o.Pages += n
	}
	return m, o, nil
}

// live returns a model of a crawl's pages as last saved, and of the frontier's never crawled pages as of
// now.
func live(ctx context.Context, cmd *cli.Command, budget float64, strategy plan.Strategy) (*plan.Model, *outlook, error) {
	dir := cmd.String("dir")
	if dir == "" {
		return nil, nil, errNoDir
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, nil, hasCrawl(dir)
	}
	s, saved, err := incremental.ReadSchedule(filepath.Join(dir, recrawlFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s has no crawl with -recrawl, or a new one: %w", dir, err)
	}
	if err != nil {
		return nil, nil, err
	}
	c, err := lookAt(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	state, err := c.Status(ctx)
	if err = join(err, c.close()); err != nil {
		return nil, nil, err
	}
	x := s.Stats()
	unseen := console.Unseen(x.Pages, state)
	if x.Pages+unseen == 0 {
		return nil, nil, fmt.Errorf("no pages are known in %s yet", dir)
	}
	budget = cmp.Or(budget, x.Budget)
	period := cmd.Duration("period")
	m := plan.Live(s, float64(unseen), period, cmd.Int("periods"), budget, strategy)
	o := &outlook{Saved: saved, Pages: float64(x.Pages), New: float64(unseen), Period: period.Seconds(), Within: m.Periods, Budget: budget * period.Seconds()}
	return m, o, nil
}

// plan prints an outlook.
func (p *printer) plan(o *outlook) error {
	count := func(x float64) string { return console.Count(int64(math.Round(x))) }
	of := func(x float64) string {
		if o.Period == 0 {
			return fmt.Sprintf("%.5g seconds in each period", x)
		}
		return fmt.Sprintf("%s fetches in each period of %s (%.4g a second)", count(math.Ceil(x)), short(time.Duration(o.Period*float64(time.Second))), x/o.Period)
	}
	lines := []string{row("pages", count(o.Pages)+" known, "+count(o.New)+" more never crawled")}
	if !o.Saved.IsZero() {
		lines = append(lines, row("as of", o.Saved.Format(time.RFC3339)))
	}
	lines = append(lines, row("all seen within", fmt.Sprintf("%d periods: with %s", o.Within, of(o.Cover))))
	if o.Plan == nil {
		return p.show(o, append(lines, row("budget", "none is set or measured: -budget plans with one"))...)
	}
	lines = append(lines, row("budget", of(o.Budget)), row("objective", fmt.Sprintf("%.6g obsolete pages, summed over the periods as these count; no plan has less than %.6g", o.Plan.Objective, o.Plan.Bound)))
	if err := p.show(o, lines...); err != nil || p.json {
		return err
	}
	return p.periods(o.Plan)
}

// periods prints the plan for each period.
func (p *printer) periods(x *plan.Plan) error {
	count := func(x float64) string { return console.Count(int64(math.Round(x))) }
	lines := []string{"", row("period", "fetched again", "new", "obsolete after it", "never crawled")}
	stale := x.Stale()
	for t := 1; t < len(x.Old); t++ {
		sum := 0.
		for _, n := range x.Old[t] {
			sum += n
		}
		lines = append(lines, row(t, count(sum), count(x.New[t]), count(stale[t]), count(x.Known[t])))
	}
	return p.table(lines...)
}
