//go:build unix

// This file makes the transcript of docs/first-five-minutes.md, and compares it with the document.

package doccheck

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a step may take. CI's machines are slow.
const patience = 5 * time.Minute

// newcomer types the commands.
type newcomer struct {
	t   *testing.T
	dir string // where they are
	bin string // where go install puts programs
}

// command is a line for the shell. What go does is done in the module's root.
func (n *newcomer) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	cmd.Dir = n.dir
	if strings.HasPrefix(line, "go ") {
		cmd.Dir = root
	}
	cmd.Env = append(os.Environ(), "GOBIN="+n.bin, "PATH="+n.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "FRONTIER_DIR=")
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// types returns the output of a command: all of it or, of a command that keeps running, the first
// line.
func (n *newcomer) types(line string) string {
	line, goesOn := strings.CutSuffix(line, " &")
	if goesOn {
		return n.starts(line)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := n.command(ctx, line).CombinedOutput()
	require.NoError(n.t, err, "%s: %s", line, out)
	return string(out)
}

// starts runs a command until the test ends, and returns its first line.
func (n *newcomer) starts(line string) string {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := n.command(ctx, "exec "+line+" 2>&1")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	first, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		first <- line
		_, _ = lines.WriteTo(new(strings.Builder))
		ended <- cmd.Wait()
	}()
	n.t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case said := <-first:
		return said
	case <-time.After(patience):
		n.t.Fatalf("%s says nothing", line)
		return ""
	}
}

// waits returns once a condition holds.
func (n *newcomer) waits(condition string) {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		out, err := n.command(ctx, condition).CombinedOutput()
		cancel()
		if err == nil {
			return
		}
		require.False(n.t, time.Now().After(end), "in vain: %s: %s", condition, out)
	}
}

func TestTheFirstFiveMinutes(t *testing.T) {
	page := filepath.Join(root, "docs", "first-five-minutes.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "fm") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &newcomer{t, dir, t.TempDir()}
	commands := 0
	retold := Retell(string(text), func(s Step) string {
		commands++
		if s.Until != "" {
			n.waits(s.Until)
		}
		said := n.types(s.Command)
		if said != "" && !strings.HasSuffix(said, "\n") {
			said += "\n"
		}
		if !*update {
			assert.Equal(t, Alike(s.Said), Alike(said), "$ %s\n%s\nwrite it with: go test -run FirstFiveMinutes ./internal/doccheck -frontier.update", s.Command, said)
		}
		return said
	})
	assert.Greater(t, commands, 10)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(retold), 0o644))
	}
}

func TestRetell(t *testing.T) {
	text := "a\n```console\n$ x\nold\n$ y\n```\n<!-- wait: z -->\n```console\n$ w\n```\nb\n"
	var steps []Step
	retold := Retell(text, func(s Step) string { steps = append(steps, s); return s.Command + "!\n" })
	assert.Equal(t, []Step{{"x", "old\n", ""}, {"y", "", ""}, {"w", "", "z"}}, steps)
	assert.Equal(t, "a\n```console\n$ x\nx!\n$ y\ny!\n```\n<!-- wait: z -->\n```console\n$ w\nw!\n```\nb\n", retold)
	assert.Equal(t, Alike("a   1.5 s, 3\u202f456 in 20 ms token=AB"), Alike("a 12 min, 3 now token=XYZ"))
	assert.Equal(t, Alike("waiting 1\npriority 7  1 waiting\nrule: x\n"), Alike("waiting 20\nmay be contacted  now\nrule: x\n"))
	assert.NotEqual(t, Alike("a 1"), Alike("b 1"))
}
