// This file finds out which sites sink although they are real.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
)

// useful crawls all sites at once, the most linked pages first, and prints what package importance thinks of them.
func (c *comparison) useful(ctx context.Context) error {
	w, err := c.serve(ctx, "useful")
	if err != nil {
		return err
	}
	dir := c.fresh("state")
	_, err = c.frontier(ctx, w, dir, append(c.impolite(), "-order", "links", "-seen", c.fresh("seen"))...)
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	est, err := importance.New(importance.Options{})
	if err == nil {
		err = est.Load(filepath.Join(dir, "importance"))
	}
	if err != nil {
		return err
	}
	set, _, err := w.answered()
	asked, missing := map[string]int{}, map[string]int{}
	for _, r := range set {
		asked[r.Host]++
		if r.Status == 404 {
			missing[r.Host]++
		}
	}
	of := func(site string) importance.Explanation {
		return est.Explain(frontier.Entry{URL: "http://" + site + "/"})
	}
	slices.SortFunc(c.sites, func(a, b string) int { return cmp.Compare(of(a).Useful, of(b).Useful) })
	fmt.Println("| site | answers | not found | useful | levels down |\n|---|---|---|---|---|")
	for _, site := range c.sites {
		x := of(site)
		fmt.Printf("| %s | %d | %d | %.0f %% | %d |\n", site, asked[site], missing[site], 100*x.Useful, x.Sunk)
	}
	return err
}
