// This file opens a store for reading, and does not change its folder.

package spill

import (
	"errors"
	"fmt"
	"os"

	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
)

// OpenView opens the store in folder dir for reading and writes nothing there: the folder may
// belong to another user, or be on a read-only volume. Writes to the Store go to a temporary folder
// (in os.TempDir), which Close removes. OpenView copies the engine's files there: keys and rows,
// but neither URLs nor marks.
//
// A folder left by a process that died is shown as Open would recover it. No other process can open
// dir until Recover has returned, or Close. The error wraps storage.ErrInUse while a process uses
// the folder.
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
	config.Sync, config.Reserve = false, 0 // the space is known to be available
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

// view is the additional state of a store that shows another folder.
type view struct {
	temp   string
	unlock func() error // nil after it was called
}

// complete lets others open the folder, since all its files are open by now. A nil view has nothing
// to do.
func (v *view) complete() error {
	if v == nil || v.unlock == nil {
		return nil
	}
	unlock := v.unlock
	v.unlock = nil
	return unlock()
}

// close removes the temporary copy.
func (v *view) close() error {
	if v == nil {
		return nil
	}
	return errors.Join(v.complete(), os.RemoveAll(v.temp))
}
