// This file types the transcripts of documents, and compares what the commands print.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/doccheck"
)

// transcript types the transcript of a document, and returns how many commands it has. With update
// it writes what they print into the document; without, an error says what differs.
func transcript(tmp string, d doccheck.Document, update bool) (commands int, err error) {
	dir, err := os.MkdirTemp("", "fm") // a socket's path is short
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	n := &newcomer{root: root, dir: dir, bin: filepath.Join(tmp, "bin")}
	defer n.leave()
	retold := doccheck.Retell(d.Text, func(s doccheck.Step) string {
		commands++
		said, fault := s.Said, err
		if fault == nil && s.Until != "" {
			fault = n.waits(s.Until)
		}
		if fault == nil {
			said, fault = n.types(s.Command)
		}
		if said != "" && !strings.HasSuffix(said, "\n") {
			said += "\n"
		}
		if fault == nil && !update && doccheck.Alike(s.Said) != doccheck.Alike(said) {
			fault = fmt.Errorf("$ %s\nprints\n%sand the document has\n%swrite it with -update", s.Command, said, s.Said)
		}
		err = fault // what follows a command that failed is not typed
		return said
	})
	if err != nil || !update || commands == 0 {
		return commands, err
	}
	return commands, os.WriteFile(d.Path, []byte(retold), 0o644)
}

// newcomer types the commands.
type newcomer struct {
	root  string   // of the module: what go does is done there
	dir   string   // where the newcomer is
	bin   string   // where go install puts programs
	leaks []func() // end what goes on
}

func (n *newcomer) leave() {
	for _, end := range n.leaks {
		end()
	}
}

func (n *newcomer) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = n.dir
	if strings.HasPrefix(line, "go ") {
		cmd.Dir = n.root
	}
	cmd.Env = append(os.Environ(), "GOBIN="+n.bin, "PATH="+n.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "FRONTIER_DIR=")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// types returns the output of a command: all of it or, of a command that keeps running, the first
// line.
func (n *newcomer) types(line string) (string, error) {
	line, goesOn := strings.CutSuffix(line, " &")
	if goesOn {
		return n.starts(line)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := n.command(ctx, line).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("$ %s: %w\n%s", line, err, out)
	}
	return string(out), err
}

// starts runs a command until the newcomer leaves, and returns its first line.
func (n *newcomer) starts(line string) (string, error) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := n.command(ctx, "exec "+line+" 2>&1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", err
	}
	first, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		first <- line
		_, _ = lines.WriteTo(new(strings.Builder))
		ended <- cmd.Wait()
	}()
	n.leaks = append(n.leaks, func() {
		cancel()
		<-ended
	})
	select {
	case said := <-first:
		return said, nil
	case <-time.After(limit):
		return "", fmt.Errorf("$ %s: it says nothing", line)
	}
}

// waits returns once a condition holds.
func (n *newcomer) waits(condition string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		out, err := n.command(ctx, condition).CombinedOutput()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("in vain: %s: %s", condition, out)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
