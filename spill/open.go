// This file opens a folder, and reports clearly why it cannot.

package spill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

// Open opens the store in folder dir, and creates it if there is none. The error wraps
// storage.ErrInUse while another process uses the folder, and storage.ErrVersion if the store has a
// format that this version cannot read.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("spill: options: %w", err)
	}
	if err := checkFolder(dir); err != nil {
		return nil, fmt.Errorf("spill: open: %w", err)
	}
	config := EngineConfig(o)
	config.Rehearse = func(db kv.DB) error {
		quiet := o
		quiet.Logger = slog.New(slog.DiscardHandler)
		return recovers(context.Background(), db, quiet)
	}
	db, err := kv.OpenBadger(dir, config)
	if err != nil {
		return nil, fmt.Errorf("spill: open %s: %w", dir, openFault(err))
	}
	s, err := newStore(db, o, false)
	if err != nil {
		return nil, fmt.Errorf("spill: open %s: %w", dir, errors.Join(err, db.Close()))
	}
	return s, nil
}

// recovers recovers from a DB as a frontier would, and closes it.
func recovers(ctx context.Context, db kv.DB, o Options) error {
	s, err := newStore(db, o, false)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	if err = s.Recover(ctx, nobody{}); err == nil {
		err = s.Release()
	}
	return errors.Join(err, s.Close())
}

// nobody is a Recovery that ignores everything.
type nobody struct{}

func (nobody) Begin(func(string) ([]byte, bool, error)) error { return nil }
func (nobody) Marks(int64) error                              { return nil }
func (nobody) Dead(uint32, []byte) error                      { return nil }
func (nobody) Part(storage.Queue, storage.Part) error         { return nil }
func (nobody) Timed(storage.TimedBlock) error                 { return nil }
func (nobody) Batch(*storage.Batch) error                     { return nil }
func (nobody) Row(string, []byte) error                       { return nil }

// EngineConfig returns the configuration with which Open opens its engine. It is for tests of this
// module.
func EngineConfig(o Options) kv.Config {
	o = o.withDefaults()
	return kv.Config{
		Sync: o.Sync, Memory: o.MemoryBudget, Reserve: o.DiskReserve, Logger: o.Logger,
		Life: keys.LifeOf, Last: keys.Prefix(keys.Fixed, 0), Whole: wire.Whole, Needs: runsOf,
	}
}

// openFault wraps the errors that a caller may branch on.
func openFault(err error) error {
	if errors.Is(err, kv.ErrInUse) || strings.Contains(err.Error(), "Another process is using this Badger database") {
		return fmt.Errorf("%w: %w", storage.ErrInUse, err)
	}
	if damage := (*kv.DamageError)(nil); errors.As(err, &damage) {
		return &storage.CorruptError{File: damage.File, Err: damage.Err}
	}
	return err
}

// checkFolder finds problems that badger would report badly, or overwrite. It changes nothing,
// apart from a probe file.
func checkFolder(dir string) error {
	if _, err := storeFolder(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // badger creates it
	} else if err != nil {
		return err
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// storeFolder reports whether a folder contains a store. If it contains none, and none can be
// created in it, the error says why.
func storeFolder(dir string) (bool, error) {
	if dir == "" {
		return false, errors.New("no folder given")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s is not a folder", dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(names, func(n os.DirEntry) bool { return n.Name() == "MANIFEST" }) {
		return true, nil
	}
	if remains(names) {
		return false, &storage.CorruptError{File: "MANIFEST", Err: errors.New("file is missing")}
	}
	if len(names) > 0 && !onlyLock(names) {
		return false, fmt.Errorf("%s has no MANIFEST, but other files (%s): it is no store, or a damaged one", dir, names[0].Name())
	}
	return false, nil
}

// remains reports whether a folder has files of a store.
func remains(names []fs.DirEntry) bool {
	for _, n := range names {
		switch filepath.Ext(n.Name()) {
		case ".sst", ".mem", ".vlog":
			return true
		}
		if n.Name() == "blobs" || n.Name() == marks.Folder {
			return true
		}
	}
	return false
}

// onlyLock reports whether a crash left a folder just after it was created.
func onlyLock(names []fs.DirEntry) bool {
	for _, n := range names {
		switch name := n.Name(); {
		case name == "LOCK", name == "KEYREGISTRY", strings.HasPrefix(name, "MANIFEST-"), strings.HasPrefix(name, ".probe-"):
		default:
			return false
		}
	}
	return true
}
