//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// started is the command in a process of its own, until it has logged what the pattern says.
func started(t *testing.T, until string, args ...string) (cmd *exec.Cmd, log *lockedBuffer) {
	t.Helper()
	cmd, log = exec.Command(os.Args[0], args...), &lockedBuffer{}
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.Eventually(t, func() bool { return regexp.MustCompile(until).MatchString(log.String()) }, 30*time.Second, time.Millisecond, "%s", log)
	return cmd, log
}

// ended fails unless a process has ended: only the system may have something to do.
func ended(t *testing.T, cmd *exec.Cmd, log any) (status int) {
	t.Helper()
	over := time.AfterFunc(3*time.Second, func() { t.Errorf("the process goes on:\n%s", log) })
	_ = cmd.Wait()
	over.Stop()
	return cmd.ProcessState.ExitCode()
}

// A script that stops a process can use its folder and its addresses at once.
func TestStopWaitsForTheEnd(t *testing.T) {
	folder := func() string {
		dir, err := os.MkdirTemp("", "fr") // a socket's path is short
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	t.Run("a server finishes its requests", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(folder(), "state")
		cmd, log := started(t, "msg=serving", "serve", "-dir", dir, "-http", "127.0.0.1:0", "-grpc", "off", "-grace", "6s")
		c, err := net.Dial("tcp", regexp.MustCompile(`msg=serving http=(\S+)`).FindStringSubmatch(log.String())[1])
		require.NoError(t, err)
		defer c.Close()
		_, err = fmt.Fprint(c, "POST /v1/urls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // it reads the request

		ctx, ctrlC := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer ctrlC()
		var out, said bytes.Buffer
		assert.Equal(t, exitError, run(ctx, []string{"stop", "-dir", dir}, nil, &out, &said))
		assert.Contains(t, said.String(), "it stops, but has not ended yet: this command waits no more")
		assert.NoError(t, cmd.Process.Signal(syscall.Signal(0)))

		code, text, wrong := operate(t, "stop", "-dir", dir)
		assert.Zero(t, ended(t, cmd, log))
		assert.Zero(t, code, wrong)
		assert.Equal(t, "it stops\n", text)
		require.NoError(t, os.Rename(dir, dir+"-moved"))
	})
	t.Run("a crawl finishes its fetches", func(t *testing.T) {
		t.Parallel()
		arrived, gate := make(chan bool, 1000), make(chan bool)
		web := httptest.NewServer(slowly(arrived, gate))
		defer web.Close()
		dir := filepath.Join(folder(), "state")
		cmd, log := started(t, "the crawl has a page", "crawl", "-dir", dir, "-page", "127.0.0.1:0", "-no-groups", "-resolve", "*.example="+strings.TrimPrefix(web.URL, "http://"), "http://a.example/1")
		<-arrived
		time.AfterFunc(5*time.Second, func() { close(gate) })
		code, _, wrong := operate(t, "stop", "-dir", dir)
		assert.Equal(t, exitStopped, ended(t, cmd, log))
		assert.Zero(t, code, wrong)
	})
}
