// This file keeps badger's compaction from losing keys. If badger cannot make one of its tables
// during compaction, it ignores that, continues, and removes the tables that contained the keys.
//
// The only hooks are the messages that badger logs during compaction: before a table is made, while
// the tables of a range are being made, and at the end. So compaction is held up before a table
// while none can be made, and before the removal until all tables exist, identified by their
// numbers of keys. If one does not appear, compaction never continues: its input is still there
// when the store is opened again.

package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
)

// Parts of badger's words.
const (
	beforeTable    = "LOG Compact. Added" // number of the compactor, keys in the table, ...
	afterRange     = "Discard stats"
	afterCompacted = "Compaction for level"
)

const (
	tableSuffix   = ".sst"
	rehearsalName = "REHEARSAL"
	gateStep      = 100 * time.Millisecond
	tableStep     = 5 * time.Millisecond
)

// gate is where badger's compaction waits.
type gate struct {
	dir   string
	table int64
	looks int // polls for a missing table; time would pass while the machine is suspended

	mu    sync.Mutex
	spare spare           // guarded by mu; released for the tables being made
	shut  bool            // guarded by mu; no descriptors are kept any more
	due   map[uint64]int  // guarded by mu; expected tables, by number of keys
	seen  map[string]bool // guarded by mu; tables that came

	stuck atomic.Bool // a table did not appear
}

func newGate(dir string, table int64) *gate {
	g := &gate{dir: dir, table: table, looks: 2000, spare: spare{dir: dir}, due: map[uint64]int{}}
	g.refill()
	return g
}

// says receives the messages of badger's compaction.
func (d *Badger) says(format string, args []any) {
	switch {
	case strings.Contains(format, beforeTable):
		keys, _ := args[1].(uint64)
		for err := d.gate.expect(keys); err != nil; err = d.gate.expect(keys) {
			d.waits(err)
			time.Sleep(gateStep)
		}
	case strings.Contains(format, afterRange):
		for n := 0; ; time.Sleep(tableStep) {
			missing, err := d.gate.came()
			if err == nil && missing == 0 {
				return
			}
			if n++; err != nil {
				d.waits(err)
			} else if n >= d.gate.looks {
				d.lost(missing)
			}
		}
	case strings.Contains(format, afterCompacted):
		d.gate.refill()
	}
}

// waits logs why compaction is held up.
func (d *Badger) waits(err error) {
	if d.faults.note(beforeTable, err.Error()) {
		d.log.Error("kv: compaction waits until it can make tables", "error", err)
	}
}

// lost never returns.
func (d *Badger) lost(tables int) {
	err := fmt.Errorf("compaction could not make %d of its tables", tables)
	d.gate.stuck.Store(true)
	_ = d.fail(err)
	for ; ; time.Sleep(time.Second) {
		d.faults.note(afterRange, err.Error())
	}
}

// expect returns an error if a table with this number of keys cannot be made. Otherwise it releases
// the descriptors reserved for it, and expects the table to appear, unless it has no keys.
func (g *gate) expect(keys uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := durablefs.Space(g.dir, uint64(4*g.table), 0)
	if err == nil {
		err = g.spare.take()
	}
	if err == nil {
		err = g.rehearse()
	}
	if err == nil {
		err = g.look() // the existing one is another table
	}
	if err == nil || g.shut {
		g.spare.give()
	}
	if err == nil && keys > 0 {
		g.due[keys]++
	}
	return err
}

// rehearse makes a file as badger makes a table, and removes it.
func (g *gate) rehearse() error {
	path := filepath.Join(g.dir, rehearsalName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(g.table), f.Close(), os.Remove(path))
}

// came returns how many tables are still missing.
func (g *gate) came() (missing int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.look(); err != nil {
		return 0, err
	}
	for _, n := range g.due {
		missing += n
	}
	return missing, nil
}

// look looks for tables that have appeared, which may include others than those of compaction.
func (g *gate) look() error {
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != tableSuffix {
			continue
		}
		if g.seen[name] || len(g.due) == 0 {
			there[name] = true
			continue
		}
		keys, whole, err := g.keysOf(name)
		if err != nil {
			return err
		}
		if !whole {
			continue
		}
		if there[name], g.seen[name] = true, true; g.due[keys] > 1 {
			g.due[keys]--
		} else {
			delete(g.due, keys)
		}
	}
	g.seen = there
	return nil
}

// keysOf returns the number of keys in a table, if it is intact and on the medium.
func (g *gate) keysOf(name string) (keys uint64, whole bool, err error) {
	f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	index, _, err := badgerfiles.TableIndex(f, info.Size())
	if err != nil {
		return 0, false, nil
	}
	if err := f.Sync(); err != nil { // badger's own sync may fail unnoticed
		return 0, false, err
	}
	return uint64(fb.GetRootAsTableIndex(index, 0).KeyCount()), true, nil
}

// refill keeps descriptors for the next compaction.
func (g *gate) refill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		_ = g.spare.take() // ready says so if it matters
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	g.spare.give()
}
