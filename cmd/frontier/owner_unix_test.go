// This file looks at crawls of other users, and at folders that nothing may be written to.

//go:build unix

package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listing describes each file and folder in dir by what a write would change.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var data []byte
		if info.Mode().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		all[path] = fmt.Sprintf("%v %v %d %d %x", info.Mode(), info.ModTime(), owner, len(data), sha256.Sum256(data))
		return nil
	}))
	return all
}

// looks are commands that look at a crawl.
var looks = [][]string{
	{"status"}, {"status", "-json"}, {"top"}, {"hosts"}, {"hosts", "-sort", "waiting"}, {"explain", "a.example"}, {"explain", "http://a.example/1"}, {"urls"}, {"rules"}, {"export"},
}

// atRest makes a crawl in a folder that is short, and open to other users.
func atRest(t *testing.T) (dir string) {
	t.Helper()
	short, err := os.MkdirTemp("", "fr")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	require.NoError(t, os.Chmod(short, 0o755))
	dir = filepath.Join(short, "state")
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("http://a.example/1\nhttp://a.example/2\nhttp://b.example/1\n"), 0o644))
	code, _, stderr := operate(t, "import", "-dir", dir, list)
	require.Equal(t, exitOK, code, stderr)
	return dir
}

// A look at a crawl at rest changes nothing in its folder, and leaves nothing elsewhere.
func TestLooksWriteNothing(t *testing.T) {
	dir := atRest(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	before := listing(t, dir)
	for _, look := range looks {
		code, out, stderr := operate(t, append(look[:1:1], append([]string{"-dir", dir}, look[1:]...)...)...)
		assert.Equal(t, exitOK, code, "%v: %s", look, stderr)
		assert.NotEmpty(t, out, "%v", look)
		assert.Equal(t, before, listing(t, dir), "%v", look)
	}
	for _, idle := range []string{"stop", "checkpoint"} {
		code, _, stderr := operate(t, idle, "-dir", dir)
		assert.Equal(t, exitError, code)
		assert.Contains(t, stderr, "it does not run")
		assert.Equal(t, before, listing(t, dir), idle)
	}
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

const nobody = 65534

// as runs the command as another user.
func as(t *testing.T, uid uint32, args ...string) (code int, out, stderr string) {
	t.Helper()
	program := filepath.Join(filepath.Dir(args[len(args)-1]), "frontier") // where they may run it
	if _, err := os.Stat(program); err != nil {
		b, err := os.ReadFile(os.Args[0])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(program, b, 0o755))
	}
	var o, e bytes.Buffer
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), asCommand+"=1", "TMPDIR=/tmp")
	c.Stdout, c.Stderr = &o, &e
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	_ = c.Run()
	return c.ProcessState.ExitCode(), o.String(), e.String()
}

// chown gives a crawl to a user.
func chown(t *testing.T, dir string, uid int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	}))
}

// A user who may read a crawl may inspect it, whoever owns it. Only its owner may change it: files that
// others write there would keep the owner out.
func TestCrawlsOfOtherUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	dir := atRest(t)
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o755)) // by itself it is its owner's alone
	}))
	before := listing(t, dir)
	code, out, stderr := as(t, nobody, "status", "-dir", dir)
	require.Equal(t, exitOK, code, stderr)
	assert.Regexp(t, `waiting +3`, out)
	code, _, stderr = as(t, nobody, "pause", "a.example", "-dir", dir)
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "sudo -u root frontier")
	assert.Equal(t, before, listing(t, dir))

	chown(t, dir, nobody)
	before = listing(t, dir)
	for _, look := range looks {
		code, _, stderr := operate(t, append(look[:1:1], append([]string{"-dir", dir}, look[1:]...)...)...)
		assert.Equal(t, exitOK, code, "%v: %s", look, stderr)
	}
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("http://c.example/\n"), 0o644))
	for _, change := range [][]string{{"pause", "a.example"}, {"add", "http://c.example/"}, {"now", "http://c.example/"}, {"import", list}, {"delete", "-yes", "a.example"}} {
		code, _, stderr := operate(t, append(change[:1:1], append([]string{"-dir", dir}, change[1:]...)...)...)
		assert.Equal(t, exitError, code, "%v", change)
		assert.Contains(t, stderr, "sudo -u", "%v", change)
	}
	code, _, stderr = command(t, t.Context(), "-dir", dir, "http://a.example/1")
	assert.Equal(t, exitError, code)
	assert.Contains(t, stderr, "sudo -u")
	assert.Equal(t, before, listing(t, dir))
	code, _, stderr = as(t, nobody, "pause", "a.example", "-dir", dir)
	assert.Equal(t, exitOK, code, stderr)
	code, out, stderr = operate(t, "explain", "-dir", dir, "a.example")
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, out, "it is paused")
}
