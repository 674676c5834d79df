// Package durablefs creates folders and files that appear completely or not at all and survive a loss
// of power, locks folders, and reports the free space of a volume. It has no state.
package durablefs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ErrLocked is returned by Lock, wrapped, for a folder that is locked already, in this process or another.
var ErrLocked = errors.New("the folder is in use")

// partial is part of the names of folders and files that are not complete, or not any more.
const partial = ".partial-"

// MakeFolder creates folder dir, which must not exist, and its parents. fill writes the contents
// into an empty folder, which is then synced to the medium and renamed to dir. Until then it is
// called .NAME.partial-NUMBER, in the same folder, and after an error nothing of it is left.
func MakeFolder(ctx context.Context, dir string, fill func(dir string) error) error {
	if dir == "" {
		return errors.New("no folder given")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if err := absent(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+partial)
	if err != nil {
		return err
	}
	if err := finish(ctx, temp, dir, fill); err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return SyncFolder(parent)
}

func finish(ctx context.Context, temp, dir string, fill func(dir string) error) error {
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	if err := fill(temp); err != nil {
		return err
	}
	if err := SyncAll(ctx, temp); err != nil {
		return err
	}
	if err := absent(dir); err != nil { // another process has made it meanwhile
		return err
	}
	return os.Rename(temp, dir)
}

// absent fails if there is something.
func absent(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// RemoveFolder removes a folder. A partly removed folder cannot be mistaken for the complete one.
func RemoveFolder(dir string) error {
	parent, name := filepath.Split(filepath.Clean(dir))
	temp, err := os.MkdirTemp(filepath.Clean(parent), "."+name+partial)
	if err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(temp, name)); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.RemoveAll(temp)
}

// Partial reports whether a folder of this name was left by MakeFolder or RemoveFolder when the
// process died, and returns the name of the complete folder.
func Partial(name string) (whole string, ok bool) {
	whole, number, found := strings.Cut(strings.TrimPrefix(name, "."), partial)
	return whole, found && whole != "" && name[0] == '.' && number != ""
}

// CopyFile copies a file to a name that is free. Only its user may read it.
func CopyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// WriteFile makes or replaces a file. write writes its contents, which are then synced to the medium. Until
// then the file is called as a folder of MakeFolder is.
func WriteFile(name string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+partial)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder makes the names in a folder survive a loss of power. On Windows it does nothing, and
// nothing is needed.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncAll makes a folder with all its contents survive a loss of power.
func SyncAll(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return SyncFolder(path)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// Space returns an error that wraps syscall.ENOSPC unless the given number of bytes can be written
// to the volume of a folder and reserve bytes stay free.
func Space(dir string, bytes, reserve uint64) error {
	free, ok := Free(dir)
	if !ok || free >= reserve && free-reserve >= bytes {
		return nil
	}
	return fmt.Errorf("%d bytes free on the volume of %s, %d are kept in reserve: %w", free, dir, reserve, syscall.ENOSPC)
}
