// This file measures the crawlers in turns.

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// speed crawls the sites with each crawler, several times, and prints medians.
func (c *comparison) speed(ctx context.Context) error {
	all := c.contestants()
	rates, cpus, peaks := make([][]float64, len(all)), make([][]float64, len(all)), make([][]float64, len(all))
	found := make([]int, len(all))
	for turn := range c.turns {
		for k := range all {
			i := (turn + k) % len(all) // another one first each time
			w, err := c.serve(ctx, "speed")
			if err != nil {
				return err
			}
			n, err := all[i].run(ctx, w)
			if stopped := w.stop(); err == nil {
				err = stopped
			}
			if err != nil {
				return fmt.Errorf("%s: %w", all[i].name, err)
			}
			got, cut, err := w.answered()
			if err != nil {
				return err
			}
			found[i] = pages(got, cut)
			p := float64(max(1, found[i]))
			rates[i] = append(rates[i], p/n.wall.Seconds())
			cpus[i] = append(cpus[i], float64(n.cpu)/float64(time.Millisecond)/p)
			peaks[i] = append(peaks[i], float64(n.memory)/(1<<20))
			fmt.Printf("turn %d, %s: %d pages in %.1f s, %.1f s CPU\n", turn+1, all[i].name, found[i], n.wall.Seconds(), n.cpu.Seconds())
		}
	}
	fmt.Printf("\n%d sites, %d workers, medians of %d turns (least to most)\n\n", len(c.sites), c.workers, c.turns)
	fmt.Println("| crawler | pages | pages a second | CPU a page | peak memory |\n|---|---|---|---|---|")
	for i := range all {
		fmt.Printf("| %s | %d | %s | %s ms | %s MiB |\n", all[i].name, found[i], spread("%.0f", rates[i]), spread("%.2f", cpus[i]), spread("%.0f", peaks[i]))
	}
	return nil
}

// spread formats the median and the extremes.
func spread(format string, x []float64) string {
	s := slices.Sorted(slices.Values(x))
	return fmt.Sprintf(format+" ("+format+" to "+format+")", s[len(s)/2], s[0], s[len(s)-1])
}
