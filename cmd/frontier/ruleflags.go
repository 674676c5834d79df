// This file reads crawl's rules: settings for some hosts only.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// ruleFlags are the rules, first as text.
type ruleFlags struct {
	texts repeated
	rules []rule
}

// rule holds the settings of a scope's hosts. Zero fields are not set.
type rule struct {
	scope       scope.Scope
	delay       frontier.DelayPolicy
	priority    int
	concurrency int
	limits      *scope.Limits // of each host, or of the crawl
	weight      int           // of a crawl
}

func (r *ruleFlags) define(fs *flagSet) {
	fs.Var(&r.texts, "rule", "`rule` for a host, *.domain, * or crawl:NUMBER, as in '*.example.org delay=30s priority=3 concurrency=1 limit-pages=1000 limit-period=24h'; "+
		"also delay-factor with min-delay and max-delay, and all of the -limit flags; repeatable. Rules are kept with -dir until others are given")
}

// apply checks the rules by setting them in a temporary frontier.
func (r *ruleFlags) apply(s *settings) {
	f, err := frontier.Open(context.Background(), frontier.Options{HostConcurrency: 1})
	if err != nil {
		s.report(err)
		return
	}
	defer f.Close()
	for _, text := range r.texts {
		x, err := parseRule(text)
		if err == nil && slices.ContainsFunc(r.rules, func(y rule) bool { return x.scope == y.scope }) {
			err = errors.New("another rule has the same hosts; want one with all settings")
		}
		if err == nil {
			err = x.set(f)
		}
		if err != nil {
			s.item("rule", text, fmt.Errorf("%s %q: %w", s.shown("rule"), text, err))
			continue
		}
		r.rules = append(r.rules, x)
	}
}

// set sets the rules before the first hand-out.
func (r *ruleFlags) set(f *frontier.Frontier) error {
	for _, x := range r.rules {
		if err := x.set(f); err != nil {
			return err
		}
	}
	return nil
}

func (x *rule) set(f *frontier.Frontier) error {
	_, isCrawl := x.scope.Crawl()
	return f.UpdateRule(x.scope, func(r *frontier.Rule) {
		if x.delay != nil {
			r.Delay = x.delay
		}
		if x.priority != 0 {
			r.Priority, r.Priorities = x.priority, frontier.PriorityMap{}
		}
		if x.concurrency != 0 {
			r.Concurrency = x.concurrency
		}
		if x.weight != 0 {
			r.Weight = x.weight
		}
		switch {
		case x.limits == nil:
		case isCrawl:
			r.Limits = *x.limits
		default:
			r.HostLimits = *x.limits
		}
	})
}

// parseRule parses a rule: a scope, and named values.
func parseRule(text string) (x rule, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return x, errors.New("want a host, *.domain, * or crawl:NUMBER, and what holds for it, as in delay=30s")
	}
	if err = notAll(words[0]); err != nil {
		return x, err
	}
	if x.scope, err = console.ParseScope(words[0]); err != nil {
		return x, err
	}
	fs := flag.NewFlagSet("rule", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	delay := fs.Duration("delay", 0, "")
	factor := fs.Float64("delay-factor", 10, "")
	least := fs.Duration("min-delay", time.Second, "")
	most := fs.Duration("max-delay", 30*time.Second, "")
	fs.IntVar(&x.priority, "priority", 0, "")
	fs.IntVar(&x.concurrency, "concurrency", 0, "")
	fs.IntVar(&x.weight, "weight", 0, "")
	var limits limitFlags
	limits.define(&flagSet{FlagSet: fs})
	given := map[string]bool{}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok || given[name] || fs.Lookup(name) == nil {
			return x, fmt.Errorf("%q: want delay, delay-factor, min-delay, max-delay, priority, concurrency, weight or limit-..., each once, with = and a value", w)
		}
		if fs.Set(name, value) != nil {
			return x, fmt.Errorf("%q: want %s", w, (&option{Flag: fs.Lookup(name)}).kind().wanted)
		}
		given[name] = true
	}
	byFactor := given["delay-factor"] || given["min-delay"] || given["max-delay"]
	switch {
	case given["delay"] && byFactor:
		return x, errors.New("delay cannot be combined with delay-factor, min-delay or max-delay")
	case given["delay"]:
		x.delay = frontier.FixedDelay(*delay)
	case byFactor:
		x.delay = frontier.FactorDelay(*factor, *least, *most)
	}
	for _, name := range []string{"priority", "concurrency", "weight"} {
		if given[name] && fs.Lookup(name).Value.String() == "0" {
			return x, fmt.Errorf("%s is 0; want >= 1", name)
		}
	}
	limits.Bytes = int64(limits.bytes)
	for name := range given {
		if strings.HasPrefix(name, "limit-") {
			x.limits = &limits.Limits
		}
	}
	if given["limit-period"] && limits.Served == 0 && limits.Bytes == 0 && limits.Errors == 0 {
		return x, errors.New("limit-period needs limit-pages, limit-bytes or limit-errors")
	}
	return x, nil
}
