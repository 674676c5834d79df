// This file runs the web that is crawled, and reads its access log.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// web is a running server with its log.
type web struct {
	addr string // of the proxy for all hosts
	log  string
	cmd  *exec.Cmd
}

// serve starts a server; name is the prefix of its files in the work folder.
func (c *comparison) serve(ctx context.Context, name string, flags ...string) (*web, error) {
	file := filepath.Join(c.work, name)
	w := &web{log: file + ".jsonl"}
	_ = os.Remove(file + ".addr")
	args := append([]string{"-root", c.root, "-listen", "127.0.0.1:0", "-addr-file", file + ".addr", "-log", w.log}, flags...)
	w.cmd = exec.CommandContext(ctx, filepath.Join(c.bin, "serve"), args...)
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if b, err := os.ReadFile(file + ".addr"); err == nil && len(b) > 0 {
			w.addr = strings.TrimSpace(string(b))
			return w, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("the server does not start"), w.stop())
}

// stop ends the server and completes its log.
func (w *web) stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return w.cmd.Wait()
}

// request is a line of the log: a request that was answered.
type request struct {
	Kind       string
	Host       string
	Path       string
	Status     int
	Referer    string
	ClientGone bool `json:"client_gone"`
}

// url returns the requested URL.
func (r *request) url() string { return "http://" + r.Host + r.Path }

// requests reads the log. Those of robots.txt are left out.
func (w *web) requests() ([]request, error) {
	f, err := os.Open(w.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []request
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 {
			return all, nil
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", w.log, err)
		}
		if r.Kind == "req" && r.Path != "/robots.txt" {
			all = append(all, r)
		}
		if err != nil {
			return all, nil
		}
	}
}

// answers are the URLs that got a final answer, and the first request for each.
type answers map[string]request

// answered reads the successful answers from the log: no errors that are retried, and nothing that
// the crawler cut; the latter are in cut.
func (w *web) answered() (set, cut answers, err error) {
	all, err := w.requests()
	set, cut = answers{}, answers{}
	for _, r := range all {
		into := set
		switch r.Status {
		case 200, 301, 302, 403, 404, 410:
			if r.ClientGone {
				into = cut
			}
			if _, again := into[r.url()]; !again {
				into[r.url()] = r
			}
		}
	}
	return set, cut, err
}

// pages counts the answers with status 200, including cut ones: on a busy machine, a client that
// has received its last page completely may seem to have hung up.
func pages(set, cut answers) (n int) {
	for _, r := range set {
		if r.Status == 200 {
			n++
		}
	}
	for u, r := range cut {
		if _, counted := set[u]; !counted && r.Status == 200 {
			n++
		}
	}
	return n
}
