// This file watches the memory of a long crawl.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// sample is the state of the crawl at one moment.
type sample struct {
	pages, waiting int // according to the crawl's latest progress
	live           int // MB: the heap in use after the last collection
	resident       int // MiB, of the process's own, mapped files excepted
}

// memory crawls a generated web and prints the memory of the process over time.
func (c *comparison) memory(ctx context.Context) error {
	w, err := c.serve(ctx, "memory", "-many", strconv.Itoa(c.hosts), "-many-pages", strconv.Itoa(c.pages))
	if err != nil {
		return err
	}
	defer w.stop()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "frontier"), "crawl", "-dir", c.fresh("state"), "-proxy", "http://"+w.addr,
		"-workers", strconv.Itoa(c.workers), "-delay", "0s", "-no-groups", "-memory", strconv.Itoa(c.budget)+"M",
		"-scope-domains", "many.test", "http://h0.many.test/")
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	told, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	began := time.Now()
	all, last := watch(cmd.Process.Pid, told)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, last)
	}
	return c.judgeMemory(all, spent(cmd, began))
}

var (
	collected = regexp.MustCompile(`^gc \d+ .* \d+->\d+->(\d+) MB`)
	progress  = regexp.MustCompile(` pages=(\d+) .* waiting=(\d+)`)
)

// watch takes ten samples a second until told ends, and returns the last line of progress.
func watch(pid int, told io.Reader) (all []sample, last string) {
	var mu sync.Mutex
	var now sample // guarded by mu
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(told)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			last = lines.Text()
			mu.Lock()
			if m := collected.FindStringSubmatch(lines.Text()); m != nil {
				now.live, _ = strconv.Atoi(m[1])
			} else if m := progress.FindStringSubmatch(lines.Text()); m != nil {
				now.pages, _ = strconv.Atoi(m[1])
				now.waiting, _ = strconv.Atoi(m[2])
			}
			mu.Unlock()
		}
		_, _ = io.Copy(io.Discard, told) // after a line that is too long
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return all, last
		case <-tick.C:
		}
		mu.Lock()
		s := now
		mu.Unlock()
		if s.resident = anonymous(pid); s.resident > 0 {
			all = append(all, s)
		}
	}
}

var rssAnon = regexp.MustCompile(`RssAnon:\s+(\d+) kB`)

// anonymous returns the anonymous memory of a process, in MiB; 0 if unknown.
func anonymous(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := rssAnon.FindSubmatch(text)
	if m == nil {
		return 0
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// judgeMemory prints ten stretches of equally many pages.
func (c *comparison) judgeMemory(all []sample, n cost) error {
	if len(all) == 0 {
		return errors.New("no samples: this needs Linux, and a longer crawl")
	}
	pages := all[len(all)-1].pages
	most := 0
	fmt.Println("| pages | waiting URLs | live heap, least and most | anonymous memory, most |\n|---|---|---|---|")
	for tenth := 1; tenth <= 10; tenth++ {
		least, live, resident, last := 1<<30, 0, 0, sample{}
		for _, s := range all {
			if s.pages > pages*tenth/10 || tenth > 1 && s.pages <= pages*(tenth-1)/10 {
				continue
			}
			least, live, resident, last = min(least, s.live), max(live, s.live), max(resident, s.resident), s
		}
		if least <= live {
			fmt.Printf("| %d | %d | %d, %d MB | %d MiB |\n", last.pages, last.waiting, least, live, resident)
		}
		most = max(most, resident)
	}
	fmt.Printf("\n%d pages of %d hosts in %.0f s, %.2f ms CPU a page, budget %d MiB, peak resident memory %d MiB\n",
		pages, c.hosts, n.wall.Seconds(), n.cpu.Seconds()*1000/float64(max(1, pages)), c.budget, n.memory>>20)
	if most > c.most {
		return fmt.Errorf("%d MiB of anonymous memory; at most %d", most, c.most)
	}
	return nil
}
