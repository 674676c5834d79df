// This file is the engine for production.
//
// Large values (the log) go to badger's value log, small ones (blocks, marks)
// stay in its tables. With sync every write of badger's own is synced as well,
// those of its value-log collection included: a table rotated between a write
// and a later Sync would not be.

package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

const (
	largeValue   = 8 << 10 // bytes from which on a value goes to the value log
	valueLogFile = 32 << 20
	tables       = 3 // being filled or written
	minTable     = 2 << 20
	baseLevel    = 64 << 20
	// Memory per byte of table size: four tables with room for a last write, and
	// the eight builders that badger keeps, of two tables each. A builder is
	// rounded up to a power of two, so tables are powers of two.
	perTable    = 4*1.3 + 8*2
	checkEvery  = 1 << 20 // bytes written between looks at the free space
	smallWrite  = 4 << 10 // taken even when space is short: it may free some
	flattenFrom = 64 << 20
)

// Badger is a DB in a folder.
type Badger struct {
	folder // the files beside badger's

	db    *badger.DB
	sync  bool
	table int64 // bytes of one table being filled

	allowed   int         // bytes that may be written before the next look at the free space
	syncFault atomic.Bool // badger only logs that a sync of its value log failed
	flattened int64       // bytes after the last flatten; Reclaim's
}

// Config says how a Badger is opened.
type Config struct {
	Sync   bool
	Memory int64
	// Reserve is how many bytes of the volume stay free.
	Reserve int64
	Logger  *slog.Logger
}

// OpenBadger opens or makes the folder path.
func OpenBadger(path string, c Config) (*Badger, error) {
	d := &Badger{folder: folder{path, uint64(c.Reserve)}, sync: c.Sync, table: minTable}
	for float64(2*d.table)*perTable <= float64(c.Memory) {
		d.table *= 2
	}
	o := badger.DefaultOptions(path).
		WithSyncWrites(c.Sync).
		WithMemTableSize(d.table).
		WithNumMemtables(tables).
		WithNumCompactors(2).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithValueThreshold(largeValue).
		WithValueLogFileSize(valueLogFile).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithLogger(logger{c.Logger, d})
	// Badger keeps eight builders of twice a table; larger ones would grow them.
	o.BaseTableSize, o.TableSizeMultiplier = d.table, 1
	// What a generation wrote overlaps no other: it may go far down at once.
	o.BaseLevelSize = baseLevel
	db, err := badger.Open(o)
	if err != nil {
		return nil, err
	}
	d.db = db
	return d, nil
}

// Write is for the store.
func (d *Badger) Write(b *Batch, sync bool) error {
	if err := d.room(b); err != nil {
		return err
	}
	txn := d.db.NewTransaction(true)
	defer txn.Discard()
	for _, o := range b.Ops {
		var err error
		if o.Value == nil {
			err = txn.Delete(o.Key)
		} else {
			err = txn.Set(o.Key, o.Value)
		}
		if err != nil {
			return err
		}
	}
	if err := txn.Commit(); err != nil {
		return err
	}
	if d.syncFault.Swap(false) {
		return errors.New("kv: value log could not be synced")
	}
	if sync && !d.sync {
		return d.db.Sync()
	}
	return nil
}

// room refuses large writes when the volume is nearly full: badger writes to
// mapped files, and a page that finds no space kills the process. Deletions
// alone are always taken: they are what frees space, and Recover needs them.
func (d *Badger) room(b *Batch) error {
	if b.Bytes <= d.allowed {
		d.allowed -= b.Bytes
		return nil
	}
	if b.Spare || b.Bytes < smallWrite || !slices.ContainsFunc(b.Ops, func(o Op) bool { return o.Value != nil }) {
		return nil
	}
	if err := d.space(0); err != nil {
		d.allowed = 0
		return err
	}
	d.allowed = max(0, checkEvery-b.Bytes)
	return nil
}

// Fits is for the store.
func (d *Badger) Fits(b *Batch) bool {
	if int64(len(b.Ops)) > d.db.MaxBatchCount()/2 {
		return false
	}
	var size int64
	for _, o := range b.Ops {
		size += int64(len(o.Key)) + 64
		if len(o.Value) < largeValue {
			size += int64(len(o.Value))
		}
	}
	return size < d.db.MaxBatchSize()*3/4 && b.Bytes < valueLogFile/2
}

// Get is for the store.
func (d *Badger) Get(key []byte, fn func([]byte) error) (bool, error) {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var theirs error
	err = item.Value(func(v []byte) error { theirs = fn(v); return theirs })
	if err != nil && theirs == nil {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return true, err
}

// Iterate is for the store.
func (d *Badger) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	o.Prefix = commonPrefix(from, to)
	it := txn.NewIterator(o)
	defer it.Close()
	var buf []byte
	for it.Seek(from); it.Valid(); it.Next() {
		item := it.Item()
		key := item.Key()
		if string(key) >= string(to) {
			return nil
		}
		err := fn(key, func() ([]byte, error) {
			v, err := item.ValueCopy(buf)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
			}
			buf = v[:0]
			return v, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// Footprint is for the store.
func (d *Badger) Footprint() int64 { return int64(float64(d.table) * perTable) }

// Reclaim collects the value log, and merges the tables when most of what they
// hold is dead: badger would leave the last level alone.
func (d *Badger) Reclaim(live int64) error {
	for {
		err := d.db.RunValueLogGC(0.5)
		if errors.Is(err, badger.ErrNoRewrite) || errors.Is(err, badger.ErrRejected) {
			break
		}
		if err != nil {
			return err
		}
	}
	size := d.tableBytes()
	if size < flattenFrom || size < 2*live || size < d.flattened+flattenFrom {
		d.flattened = min(d.flattened, size)
		return nil
	}
	err := d.db.Flatten(1)
	d.flattened = d.tableBytes()
	return err
}

func (d *Badger) tableBytes() (n int64) {
	for _, l := range d.db.Levels() {
		n += l.Size
	}
	return n
}

// Close is for the store.
func (d *Badger) Close() error { return d.db.Close() }

// logger passes on what badger says, and takes note of what it only says.
type logger struct {
	log *slog.Logger
	d   *Badger
}

func (l logger) Errorf(f string, a ...any) {
	if strings.Contains(f, "while curlf sync") {
		l.d.syncFault.Store(true)
	}
	l.log.Error(text(f, a))
}
func (l logger) Warningf(f string, a ...any) { l.log.Warn(text(f, a)) }
func (l logger) Infof(f string, a ...any)    { l.log.Debug(text(f, a)) }
func (l logger) Debugf(string, ...any)       {}

func text(f string, a []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...))
}
