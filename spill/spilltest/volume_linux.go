// This file gives tests a real volume whose power can be cut.

package spilltest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Volume is a mounted file system in a file. A loss of power costs what the kernel has not yet
// written into the file: names, pages and the journal of the file system alike.
type Volume struct {
	Dir     string // mount point
	image   string
	options string // of mount
}

// Quiet are options of a volume that the kernel writes on its own after minutes only: a loss of
// power leaves what was synced, and little else.
const Quiet = "commit=300"

// NewVolume creates a volume of the given size in bytes, and mounts it with options: Quiet, or those
// of another ext4. It skips the test if mounting is not permitted.
func NewVolume(tb testing.TB, bytes int64, options string) *Volume {
	tb.Helper()
	image := filepath.Join(imageFolder(tb), "image")
	f, err := os.Create(image)
	if err == nil {
		err = f.Truncate(bytes)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-E", "nodiscard", image).CombinedOutput(); err != nil {
		tb.Skipf("no ext4 volume can be made here: %v %s", err, out)
	}
	v, out := mount(tb, image, options)
	if v == nil {
		tb.Skipf("no volume can be mounted here; it takes root and loop devices: %s", out)
	}
	return v
}

// imageFolder returns a folder in memory, if the system has one.
func imageFolder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "volume-")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func mount(tb testing.TB, image, options string) (*Volume, string) {
	tb.Helper()
	v := &Volume{Dir: tb.TempDir(), image: image, options: options}
	out, err := exec.Command("mount", "-o", "loop,noatime,"+options, image, v.Dir).CombinedOutput()
	if err != nil {
		return nil, string(out)
	}
	tb.Cleanup(v.Unmount)
	return v, ""
}

// Unmount unmounts and deletes the volume. Further calls do nothing.
func (v *Volume) Unmount() {
	if v.Dir != "" {
		_ = exec.Command("umount", "-l", v.Dir).Run()
		_ = os.RemoveAll(filepath.Dir(v.image)) // memory, until the test ends
		v.Dir = ""
	}
}

// WriteBack makes the kernel write part of a dirty file, out of order and without the journal, as
// it does on its own when memory is short.
func (v *Volume) WriteBack(path string, from, n int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	return unix.SyncFileRange(int(f.Fd()), from, n, all)
}

// PowerLoss returns a volume with what would remain after a loss of power now. Nothing may be
// writing to v.
func (v *Volume) PowerLoss(tb testing.TB) *Volume {
	tb.Helper()
	image := filepath.Join(imageFolder(tb), "image")
	for same := false; !same; { // repeat if the kernel has written meanwhile
		if err := copyFile(image, v.image); err != nil {
			tb.Fatal(err)
		}
		var err error
		if same, err = sameContent(image, v.image); err != nil {
			tb.Fatal(err)
		}
	}
	x, out := mount(tb, image, v.options)
	if x == nil {
		tb.Fatalf("mount what is left: %s", out)
	}
	return x
}

// copyFile copies the parts of a file that are not holes.
func copyFile(to, from string) error {
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	err = eachExtent(from, func(at int64, data []byte) error {
		_, err := dst.WriteAt(data, at)
		return err
	})
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	return dst.Truncate(info.Size())
}

// sameContent reports whether a and b are equal outside of holes.
func sameContent(a, b string) (bool, error) {
	f, err := os.Open(a)
	if err != nil {
		return false, err
	}
	defer f.Close()
	same, buf := true, make([]byte, extentBuffer)
	err = eachExtent(b, func(at int64, data []byte) error {
		if _, err := f.ReadAt(buf[:len(data)], at); err != nil && err != io.EOF {
			return err
		}
		same = same && bytes.Equal(buf[:len(data)], data)
		return nil
	})
	return same, err
}

const extentBuffer = 1 << 20

// eachExtent reads the parts of a file that are not holes.
func eachExtent(path string, fn func(at int64, data []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, extentBuffer)
	for at := int64(0); ; {
		at, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(int(f.Fd()), at, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		for at < end {
			n, err := f.ReadAt(buf[:min(extentBuffer, end-at)], at)
			if n == 0 {
				return err
			}
			if err := fn(at, buf[:n]); err != nil {
				return err
			}
			at += int64(n)
		}
	}
}
