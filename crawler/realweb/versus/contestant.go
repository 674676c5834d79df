// This file runs each crawler, and measures the cost of a run.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// contestant is a crawler.
type contestant struct {
	name string
	run  func(ctx context.Context, w *web) (cost, error)
}

// cost is the cost of a run. Memory is the peak; if there were several processes, of the largest.
type cost struct {
	wall, cpu time.Duration
	memory    int64 // bytes
}

// contestants returns the crawlers that speed compares.
func (c *comparison) contestants() []contestant {
	return []contestant{
		{"frontier crawl -dir", func(ctx context.Context, w *web) (cost, error) { return c.frontier(ctx, w, c.fresh("state")) }},
		{"frontier crawl, in memory", func(ctx context.Context, w *web) (cost, error) { return c.frontier(ctx, w, "") }},
		{"gocolly", c.colly},
		{"wget -r", c.wget},
	}
}

// fresh makes an empty folder.
func (c *comparison) fresh(name string) string {
	dir := filepath.Join(c.work, name)
	_ = os.RemoveAll(dir)
	return dir
}

func (c *comparison) seeds() (urls []string) {
	for _, s := range c.sites {
		urls = append(urls, "http://"+s+"/")
	}
	return urls
}

// impolite returns the flags that switch politeness off; all crawlers obey robots.txt.
func (c *comparison) impolite() []string {
	each := (c.workers + len(c.sites) - 1) / len(c.sites)
	return []string{"-delay", "0s", "-host-concurrency", strconv.Itoa(each), "-no-groups"}
}

func (c *comparison) frontier(ctx context.Context, w *web, dir string, flags ...string) (cost, error) {
	args := []string{"crawl", "-proxy", "http://" + w.addr, "-workers", strconv.Itoa(c.workers)}
	if dir != "" {
		args = append(args, "-dir", dir)
	}
	if len(flags) == 0 {
		flags = c.impolite()
	}
	args = append(append(args, flags...), c.seeds()...)
	n, err := measure(exec.CommandContext(ctx, filepath.Join(c.bin, "frontier"), args...))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 4 && slices.Contains(flags, "-max-pages-per-host") {
		err = nil // the limit that was asked for was reached
	}
	return n, err
}

func (c *comparison) colly(ctx context.Context, w *web) (cost, error) {
	args := append([]string{"-proxy", "http://" + w.addr, "-workers", strconv.Itoa(c.workers)}, c.seeds()...)
	return measure(exec.CommandContext(ctx, filepath.Join(c.bin, "colly"), args...))
}

// wget runs one process per site, up to the number of workers at once. Its options make it follow
// what a crawler follows, except link elements, since it cannot distinguish rel=next from
// rel=stylesheet. Its exit status is nonzero after any 404, which real sites have.
func (c *comparison) wget(ctx context.Context, w *web) (total cost, err error) {
	dir := c.fresh("wget")
	began := time.Now()
	slots := make(chan struct{}, c.workers)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, site := range c.sites {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			one, fault := c.wgetSite(ctx, w, filepath.Join(dir, site), site)
			mu.Lock()
			defer mu.Unlock()
			total.cpu += one.cpu
			total.memory = max(total.memory, one.memory)
			err = errors.Join(err, fault)
		})
	}
	all.Wait()
	total.wall = time.Since(began)
	return total, errors.Join(err, os.RemoveAll(dir))
}

func (c *comparison) wgetSite(ctx context.Context, w *web, dir, site string) (cost, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return cost{}, err
	}
	cmd := exec.CommandContext(ctx, "wget", "-q", "-r", "-l", "inf", "--delete-after", "--follow-tags=a,area,frame,iframe,meta", "http://"+site+"/")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "http_proxy=http://"+w.addr)
	n, err := measure(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 8 { // the server sent an error
		err = nil
	}
	return n, err
}

// measure runs a command to its end.
func measure(cmd *exec.Cmd) (cost, error) {
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out[max(0, len(out)-2000):])
	}
	if cmd.ProcessState == nil {
		return cost{}, err
	}
	return spent(cmd, began), err
}

// spent returns the cost of a process that has ended.
func spent(cmd *exec.Cmd, began time.Time) cost {
	s := cmd.ProcessState
	return cost{time.Since(began), s.UserTime() + s.SystemTime(), peak(s)}
}
