// This file opens a store to look at it, and leaves its folder alone.

package spill

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
)

// OpenView opens what the store in folder dir holds, and writes nothing there: the folder
// may be another user's, or on a volume that cannot be written. What is written to the
// Store goes to a folder for temporary files (os.TempDir), which Close removes. The
// engine's own files are copied to it: keys and rows, but neither URLs nor marks.
//
// A folder after the death of its process is shown as Open would recover it. No other
// process can open dir until Recover has returned, or Close. The error wraps
// storage.ErrInUse while a process has the folder.
func OpenView(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("spill: options: %w", err)
	}
	if ours, err := storeFolder(dir); err != nil {
		return nil, fmt.Errorf("spill: open: %w", err)
	} else if !ours {
		return nil, fmt.Errorf("spill: open: there is no store in %s", dir)
	}
	temp, err := os.MkdirTemp("", "frontier-view-")
	if err != nil {
		return nil, fmt.Errorf("spill: open: %w", err)
	}
	s, err := openView(dir, temp, o)
	if err != nil {
		return nil, fmt.Errorf("spill: open %s: %w", dir, errors.Join(openFault(err), os.RemoveAll(temp)))
	}
	return s, nil
}

func openView(dir, temp string, o Options) (*Store, error) {
	unlock, err := kv.MakeView(dir, temp, marks.Folder)
	if err != nil {
		return nil, err
	}
	config := EngineConfig(o)
	config.Sync, config.Reserve = false, 0 // the space it needs is there
	db, err := kv.OpenBadger(temp, config)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	s, err := newStore(db, o, false)
	if err != nil {
		return nil, errors.Join(err, db.Close(), unlock())
	}
	s.view = &view{temp: temp, unlock: unlock}
	return s, nil
}

// view is what a store has that shows the folder of another.
type view struct {
	temp   string
	unlock func() error // nil once it was called
}

// complete lets others open the folder: all its files are open here. A nil view has none.
func (v *view) complete() error {
	if v == nil || v.unlock == nil {
		return nil
	}
	unlock := v.unlock
	v.unlock = nil
	return unlock()
}

// close removes what was copied.
func (v *view) close() error {
	if v == nil {
		return nil
	}
	return errors.Join(v.complete(), os.RemoveAll(v.temp))
}
