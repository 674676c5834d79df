// This file tests what crashes leave.

package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Wherever a crash cut a file: complete records are kept, and nothing else, and writing continues.
func TestTornFilesAreMended(t *testing.T) {
	for _, plain := range []bool{false, true} {
		src := t.TempDir()
		w := open(t, src, Options{Plain: plain})
		var ends []int64 // of records
		for i := range 5 {
			require.NoError(t, w.Write(&Record{Type: Resource, TargetURI: fmt.Sprint("http://a.example/", i), Block: strings.NewReader(strings.Repeat("x\r\n\r\n", i))}))
			ends = append(ends, w.size)
		}
		name := w.name
		raw, err := os.ReadFile(filepath.Join(src, name+openSuffix))
		require.NoError(t, err)
		rapid.Check(t, func(rt *rapid.T) {
			cut := rapid.IntRange(0, len(raw)).Draw(rt, "cut")
			dir := t.TempDir()
			require.NoError(rt, os.WriteFile(filepath.Join(dir, name+openSuffix), raw[:cut], 0o644))
			require.NoError(rt, os.WriteFile(filepath.Join(dir, "x.cdxj"+openSuffix), []byte("half a li"), 0o644))
			w, err := Open(dir, Options{Plain: plain})
			require.NoError(rt, err)
			whole := 0
			for _, end := range ends {
				if int64(cut) >= end {
					whole++
				}
			}
			require.NoError(rt, w.Write(&Record{Type: Resource, TargetURI: "http://a.example/more", Block: strings.NewReader("more")}))
			require.NoError(rt, w.Close())
			got := 0
			for _, r := range readFolder(t, dir) {
				if r.Type == Resource && r.TargetURI != "http://a.example/more" {
					assert.Equal(rt, fmt.Sprint("http://a.example/", got), r.TargetURI)
					got++
				}
			}
			assert.Equal(rt, whole, got)
			left, _ := filepath.Glob(filepath.Join(dir, "*.open"))
			assert.Empty(rt, left)
			if index, err := os.ReadFile(filepath.Join(dir, strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".warc")+".cdxj")); whole > 0 {
				require.NoError(rt, err)
				assert.Equal(rt, whole, strings.Count(string(index), "\n"))
			}
		})
	}
}

// One byte of a file is wrong, wherever: either nothing is lost of it, or the file is
// put aside as it is. What damage does to the last record may look like a crash.
func TestDamageIsPutAside(t *testing.T) {
	for _, plain := range []bool{false, true} {
		dir := t.TempDir()
		w := open(t, dir, Options{Plain: plain})
		require.NoError(t, w.Write(&Record{Type: Resource, TargetURI: "http://a.example/1", Block: strings.NewReader("one")}))
		require.NoError(t, w.Write(&Record{Type: Resource, TargetURI: "http://a.example/2", Block: strings.NewReader("two")}))
		last := w.size
		require.NoError(t, w.Write(&Record{Type: Resource, TargetURI: "http://a.example/3", Block: strings.NewReader("three")}))
		raw, err := os.ReadFile(filepath.Join(dir, w.name+openSuffix))
		require.NoError(t, err)
		name := "x" + w.name[strings.Index(w.name, ".warc"):]
		for i := 0; i < int(last); i += 3 {
			wrong := bytes.Clone(raw)
			wrong[i] ^= 0x55
			other := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(other, name+openSuffix), wrong, 0o644))
			require.NoError(t, open(t, other, Options{Logger: slog.New(slog.DiscardHandler)}).Close())
			left, err := filepath.Glob(filepath.Join(other, name+"*"))
			require.NoError(t, err)
			require.Len(t, left, 1, "byte %d", i)
			kept, err := os.ReadFile(left[0])
			require.NoError(t, err)
			require.True(t, bytes.Equal(wrong, kept), "byte %d, %s", i, left[0])
		}
	}
}

// A process is killed while it writes: what Write returned for is there, whole.
func TestKill(t *testing.T) {
	if dir := os.Getenv("WARC_KILL_DIR"); dir != "" {
		w, err := Open(dir, Options{MaxSize: 200_000})
		require.NoError(t, err)
		for i := 0; ; i++ {
			require.NoError(t, w.WriteExchange(page(fmt.Sprintf("http://a.example/%s/%d", os.Getenv("WARC_KILL_ROUND"), i), strings.Repeat(fmt.Sprint(i, " "), 3000))))
			fmt.Println(i)
		}
	}
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), "WARC_KILL_DIR="+dir, fmt.Sprint("WARC_KILL_ROUND=", round))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		last := 0
		for lines.Scan() {
			if last, err = strconv.Atoi(lines.Text()); err != nil || last == 40+30*round {
				break
			}
		}
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.NoError(t, open(t, dir, Options{}).Close())
		seen := map[string]bool{}
		for _, r := range readFolder(t, dir) {
			seen[r.TargetURI] = true
		}
		for i := range last + 1 {
			assert.True(t, seen[fmt.Sprintf("http://a.example/%d/%d", round, i)])
		}
	}
}

// fullDisk accepts n more bytes.
type fullDisk struct {
	file
	left int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n, err := d.file.Write(p[:min(len(p), d.left)])
	if d.left -= n; n < len(p) {
		err = errFull
	}
	return n, err
}

var errFull = errors.New("no space left")

// A write that fails half way leaves nothing of its records, and writing continues when there is
// room again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{})
	require.NoError(t, w.WriteExchange(page("http://a.example/1", "one")))
	disk := &fullDisk{w.file, 500}
	w.file = disk
	require.ErrorIs(t, w.WriteExchange(page("http://a.example/2", "two")), errFull)
	info, err := os.Stat(filepath.Join(dir, w.name+openSuffix))
	require.NoError(t, err)
	assert.Equal(t, w.size, info.Size(), "half a record is cut off at once")
	disk.left = 1 << 20
	require.NoError(t, w.WriteExchange(page("http://a.example/3", "three")))
	require.NoError(t, w.Close())
	assert.Equal(t, []string{Info, Response, Request, Metadata, Response, Request, Metadata}, types(readFolder(t, dir)))
	index, err := filepath.Glob(filepath.Join(dir, "*.cdxj"))
	require.NoError(t, err)
	raw, err := os.ReadFile(index[0])
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(string(raw), "\n"))
}
