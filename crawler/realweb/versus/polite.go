// This file crawls all sites at once, politely, and lets the checker judge the server's log.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
)

// report is the checker's result.
type report struct {
	Totals struct {
		Requests, Distinct, Refetches int
		Seconds                       float64
		MinGap                        float64 `json:"min_gap_ms"`
		Late                          float64 `json:"p50_late_ms"`
		VeryLate                      float64 `json:"p99_late_ms"`
	}
	Checks map[string]struct {
		On         bool
		Violations int
	}
}

// polite waits ten times as long as a fetch took, up to a second. The sites take 20 to 40 ms for an
// answer, so that overlapping requests are detected.
func (c *comparison) polite(ctx context.Context) error {
	w, err := c.serve(ctx, "polite", "-latency", "20ms", "-jitter", "20ms")
	if err != nil {
		return err
	}
	n, err := c.frontier(ctx, w, c.fresh("state"), "-delay-factor", "10", "-min-delay", "0s", "-max-delay", "1s",
		"-max-pages-per-host", strconv.Itoa(c.sitePages))
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	got, cut, err := w.answered()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "check"), "-factor", "10", "-max-delay", "1s",
		"-min-requests", strconv.Itoa(2*len(c.sites)), w.log)
	out, fault := cmd.Output() // fails if there are violations
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		return errors.Join(fault, err)
	}
	t := r.Totals
	fmt.Printf("%d sites, %d workers, at most %d pages of each: %d pages with %d contacts in %.0f s, %.1f s CPU, peak memory %d MiB\n",
		len(c.sites), c.workers, c.sitePages, pages(got, cut), t.Requests, n.wall.Seconds(), n.cpu.Seconds(), n.memory>>20)
	fmt.Printf("least gap %.0f ms; later than owed by %.1f ms in the median, %.0f ms in the 99th percentile\n", t.MinGap, t.Late, t.VeryLate)
	for name, check := range r.Checks {
		if check.On {
			fmt.Printf("violations of %s: %d\n", name, check.Violations)
		}
	}
	if fault != nil {
		return fmt.Errorf("the crawl was not polite: %w", fault)
	}
	return nil
}
