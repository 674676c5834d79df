// This file compares the URLs that the crawler requested with those of wget.

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// difference is a URL that only one of the two got an answer for.
type difference struct {
	request
	alone bool   // only the crawler; otherwise only wget
	cause string // empty if none is known
}

// String formats a line of the file of differences.
func (d *difference) String() string {
	sign := "-"
	if d.alone {
		sign = "+"
	}
	return fmt.Sprintf("%s %d %s\t%s", sign, d.Status, d.url(), d.cause)
}

// sets crawls all sites with both, without politeness, and prints tables.
func (c *comparison) sets(ctx context.Context) error {
	if c.logs {
		return c.judgeLogs(ctx)
	}
	mine, cut, err := c.crawled(ctx, "sets-frontier", func(w *web) (cost, error) { return c.frontier(ctx, w, c.fresh("state")) })
	if err != nil {
		return err
	}
	theirs, _, err := c.crawled(ctx, "sets-wget", func(w *web) (cost, error) { return c.wget(ctx, w) })
	if err != nil {
		return err
	}
	return c.judge(ctx, mine, cut, theirs)
}

// crawled runs one crawler on a separate server.
func (c *comparison) crawled(ctx context.Context, name string, run func(*web) (cost, error)) (set, cut answers, err error) {
	w, err := c.serve(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	n, err := run(w)
	if err := errors.Join(err, w.stop()); err != nil {
		return nil, nil, err
	}
	fmt.Printf("%s: %.0f s, %.0f s CPU\n", name, n.wall.Seconds(), n.cpu.Seconds())
	return w.answered()
}

// judgeLogs judges the logs of an earlier run.
func (c *comparison) judgeLogs(ctx context.Context) error {
	mine, cut, err := (&web{log: filepath.Join(c.work, "sets-frontier.jsonl")}).answered()
	if err != nil {
		return err
	}
	theirs, _, err := (&web{log: filepath.Join(c.work, "sets-wget.jsonl")}).answered()
	if err != nil {
		return err
	}
	elsewhere := func(u string, r request) bool { return !slices.Contains(c.sites, r.Host) }
	for _, set := range []answers{mine, cut, theirs} {
		maps.DeleteFunc(set, elsewhere)
	}
	return c.judge(ctx, mine, cut, theirs)
}

// judge explains the differences and prints them; a difference without a cause is an error.
func (c *comparison) judge(ctx context.Context, mine, cut, theirs answers) error {
	w, err := c.serve(ctx, "sets-explain") // for reading pages again
	if err != nil {
		return err
	}
	defer w.stop()
	x, err := newExplainer(ctx, w.addr, mine, cut, theirs)
	if err != nil {
		return err
	}
	all := x.differences()
	file, err := os.Create(filepath.Join(c.work, "differences"))
	if err != nil {
		return err
	}
	unknown := 0
	for _, d := range all {
		x.explain(d)
		if d.cause == "" {
			unknown++
			fmt.Printf("without a cause: %s (from %s)\n", d, d.Referer)
		}
		fmt.Fprintln(file, d)
	}
	if err := file.Close(); err != nil {
		return err
	}
	printSites(c.sites, mine, theirs, all)
	printCauses(all)
	if unknown > 0 {
		return fmt.Errorf("%d differences without a cause", unknown)
	}
	return nil
}

// tally counts for one site or cause.
type tally struct{ mine, theirs, alone, missing int }

func printSites(sites []string, mine, theirs answers, all []*difference) {
	by := map[string]*tally{"all": {}}
	for _, s := range sites {
		by[s] = &tally{}
	}
	count := func(host string, f func(*tally)) {
		for _, name := range []string{host, "all"} {
			if t := by[name]; t != nil {
				f(t)
			}
		}
	}
	for _, r := range mine {
		count(r.Host, func(t *tally) { t.mine++ })
	}
	for _, r := range theirs {
		count(r.Host, func(t *tally) { t.theirs++ })
	}
	for _, d := range all {
		count(d.Host, func(t *tally) {
			if d.alone {
				t.alone++
			} else {
				t.missing++
			}
		})
	}
	fmt.Println("\n| site | answers to frontier | to wget | frontier alone | wget alone |\n|---|---|---|---|---|")
	same := 0
	for _, s := range append(slices.Clone(sites), "all") {
		t := by[s]
		if t.alone+t.missing == 0 && s != "all" {
			same++
			continue
		}
		fmt.Printf("| %s | %d | %d | %d | %d |\n", s, t.mine, t.theirs, t.alone, t.missing)
	}
	fmt.Printf("\nThe sets of %d other sites are equal.\n", same)
}

func printCauses(all []*difference) {
	by, of := map[string]*tally{}, map[string][]string{}
	for _, d := range all {
		t := by[d.cause]
		if t == nil {
			t = &tally{}
			by[d.cause] = t
		}
		if d.alone {
			t.alone++
		} else {
			t.missing++
		}
		if !slices.Contains(of[d.cause], d.Host) {
			of[d.cause] = append(of[d.cause], d.Host)
		}
	}
	fmt.Println("\n| cause | frontier alone | wget alone | sites |\n|---|---|---|---|")
	for _, cause := range slices.Sorted(maps.Keys(by)) {
		fmt.Printf("| %s | %d | %d | %s |\n", cause, by[cause].alone, by[cause].missing, strings.Join(of[cause], ", "))
	}
}
