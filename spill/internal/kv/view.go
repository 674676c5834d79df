// This file makes a second folder from a folder that is not open, to be opened in its place: writes
// go to the second folder.
//
// Files that no engine will ever write again get symbolic links: blobs, and those in the given
// folders. Badger opens all of its own files for writing, so these are copied; they hold only keys,
// rows and places.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// viewRoom is the minimum space that must remain on the volume of a view when it is made.
const viewRoom = 64 << 20

// MakeView fills the empty folder to with a view of folder from; folders are those in it whose
// files do not change. The error is ErrInUse if a process uses from; otherwise no process can open
// it until unlock is called.
func MakeView(from, to string, folders ...string) (unlock func() error, err error) {
	if from, err = filepath.Abs(from); err != nil {
		return nil, err
	}
	unlock, err = share(from)
	if err != nil {
		return nil, err
	}
	if err = fillView(from, to, append([]string{blobFolder}, folders...), false); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// fillView does so. With link the tables, which badger only removes, get hard links, and the volume
// may become full.
func fillView(from, to string, folders []string, link bool) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	var own []string
	var size int64
	for _, e := range entries {
		if !badgers(e.Name()) {
			continue
		}
		if link && filepath.Ext(e.Name()) == tableSuffix && os.Link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())) == nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		own, size = append(own, e.Name()), size+info.Size()
	}
	room := uint64(viewRoom)
	if link {
		room = 0
	}
	if err := durablefs.Space(to, uint64(size), room); err != nil {
		return fmt.Errorf("a copy of the keys needs room in %s: %w", filepath.Dir(to), err)
	}
	for _, name := range own {
		if err := durablefs.CopyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		if err := linkAll(filepath.Join(from, folder), filepath.Join(to, folder)); err != nil {
			return err
		}
	}
	return nil
}

// badgers reports whether badger or confirm.go writes to a file.
func badgers(name string) bool {
	switch name {
	case badger.ManifestFilename, badger.KeyRegistryFileName, "DISCARD", confirmedName:
		return true
	}
	switch filepath.Ext(name) {
	case ".sst", ".mem", ".vlog":
		return true
	}
	return false
}

// linkAll makes a folder with a link to each file of another, or a copy where there are
// no links. A folder that is missing stays so.
func linkAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Mkdir(to, 0o700)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		a, b := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if os.Symlink(a, b) == nil {
			continue
		}
		if err := durablefs.CopyFile(a, b); err != nil {
			return err
		}
	}
	return nil
}
