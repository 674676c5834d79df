// This file kills a process that adds URLs and measures how long it takes until another one can
// continue.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
)

// fill runs in the killed process: it adds the URLs of the run, and then others, and reports after
// each call how many the frontier has acknowledged.
func fill(r *run) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	s, err := openStore(r.ctx, filepath.Join(r.work, "resume"), r.cfg, r.cfg.options())
	if err != nil {
		return err
	}
	l := r.loader(s, src)
	for i := 0; ; i += perCall {
		err := l.call(perCall, r.numbered(i))
		if err == nil {
			_, err = fmt.Println(i + perCall)
		}
		if err != nil {
			return errors.Join(err, s.close())
		}
	}
}

// numbered returns the URLs of the run, and after them fresh ones.
func (r *run) numbered(first int) func(int) (int, bool) {
	return func(i int) (int, bool) {
		if n := first + i; n < r.cfg.URLs {
			return n, false
		}
		return first + i - r.cfg.URLs, true
	}
}

func resume(r *run) error {
	acknowledged, err := r.killed()
	if err != nil {
		return err
	}
	r.measure("acknowledged", float64(acknowledged), "")
	begun := time.Now()
	read, err := readFolder(r.dir())
	if err != nil {
		return err
	}
	r.measure("folder", float64(read), "B")
	r.measure("read.folder", time.Since(begun).Seconds(), "s")
	from := usageNow()
	w := r.watch("reopen", nil, func() int64 { return 0 }, nil)
	s, err := openStore(r.ctx, r.dir(), r.cfg, r.cfg.options())
	if err != nil {
		w.stop()
		return err
	}
	r.measure("reopen", time.Since(from.at).Seconds(), "s")
	r.measure("reopen.cpu", (cpuTime() - from.cpu).Seconds(), "s")
	w.stop()
	r.measure("anon.peak", w.peak, "B")
	r.measure("stats.memory", float64(s.Stats().MemoryBytes), "B")
	return errors.Join(r.nothingLost(s, acknowledged), s.checkSmall(), s.close())
}

// killed starts the process, and kills it when it has added all URLs and is adding more. It returns
// how many URLs were acknowledged.
func (r *run) killed() (int, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd, err := startChild(r.ctx, job{Scenario: "fill", Config: r.cfg, Work: r.work}, in)
	in.Close()
	if err != nil {
		return 0, err
	}
	acknowledged, last := 0, ""
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // a line that was cut off is ignored
			break
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			last = line
			continue
		}
		if acknowledged = n; n%1_000_000 == 0 {
			r.logf("%s acknowledged", count(float64(n)))
		}
		if n == (r.cfg.URLs+perCall-1)/perCall*perCall+10*perCall {
			if err := cmd.Process.Kill(); err != nil {
				return 0, err
			}
		}
	}
	ended := cmd.Wait()
	if acknowledged < r.cfg.URLs {
		return 0, fmt.Errorf("the process that was to be killed ended by itself: %v %s", ended, last)
	}
	return acknowledged, r.ctx.Err()
}

// nothingLost adds all acknowledged URLs again: none of them may be new.
func (r *run) nothingLost(s *subject, acknowledged int) error {
	src, err := r.source()
	if err != nil {
		return err
	}
	begun := time.Now()
	l, err := s.Next(r.ctx)
	if err != nil {
		return err
	}
	r.measure("first.next", float64(time.Since(begun))/1e3, "us")
	if err := s.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}); err != nil {
		return err
	}
	waiting := s.Stats().Waiting
	second := r.loader(s, src)
	from := usageNow()
	for i := 0; i < acknowledged; i += perCall {
		if err := second.call(perCall, r.numbered(i)); err != nil {
			return err
		}
	}
	r.cost("again", int64(acknowledged), from, 0)
	lost := second.added.Load()
	r.measure("lost", float64(lost), "")
	// The interrupted call may have been admitted or not.
	if least := int64(acknowledged - second.refused); lost > 0 || waiting < least || waiting > least+perCall {
		return fmt.Errorf("%d URLs were acknowledged and not refused, %d wait after reopening, %d are lost", least, waiting, lost)
	}
	return nil
}

// readFolder reads all files once: no reopening that must read all of them can be faster. They are
// then in the page cache.
func readFolder(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := io.Copy(io.Discard, f)
		bytes += n
		return err
	})
	return bytes, err
}
