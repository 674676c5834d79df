// This file is the engine for production: badger for keys and small values, blob.go for the rest.
//
// With sync every write of badger's own is synced as well: a table rotated
// between a write and a later Sync would not be.

package kv

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

const (
	tables     = 3 // being filled or written
	minTable   = 2 << 20
	maxTable   = 4 << 20 // the contents of tables are small
	smallTable = 32 << 10
	// Memory per byte of the table being filled: four tables with room for a last write, up to 13
	// builders of tables of half the size, 3 MB each for the index of the table, and garbage that
	// was not collected yet. Measured: 25 to 40 MB while URLs come and go; at worst 110 MB,
	// briefly, while half as many rows are written as URLs.
	perTable   = 32
	baseLevel  = 64 << 20
	largeValue = 64 << 10 // of values that stay in the tables; rare
	valueLog   = 1 << 20  // the minimum for badger

	checkEvery = 1 << 20 // bytes written between looks at the free space
	smallWrite = 4 << 10 // allowed while half of the reserve is left, since it may free space

	metaApart = 1 // badger's user meta: the value is a place

	hintsName = "DISCARD" // badger's statistics of its value log
)

// Badger is a DB in a folder.
type Badger struct {
	folder // the files beside badger's

	db    *badger.DB
	sync  bool
	table int64 // bytes of one table being filled
	large int   // length from which on an inline value goes to badger's value log
	life  func(key []byte) Life
	last  []byte // keys from there on lie in the tables
	log   *slog.Logger
	blobs *blobs
	sizes sizes

	down   atomic.Pointer[downError] // set: badger is not touched any more
	faults faults                    // of badger in the background
	spare  spare                     // guarded by turn; for a commit
	gate   *gate                     // of badger's compaction

	confirmed *confirmed
	version   atomic.Uint64 // of the last write

	allowed   int         // bytes that may be written before the next look at the free space; Write's
	syncFault atomic.Bool // badger only logs that a sync of its value log failed
	wasteful  atomic.Bool

	syncing    sync.Mutex  // one Sync at a time; before turn
	inValueLog atomic.Bool // something was written to badger's value log since the last
	early      atomic.Bool // Reclaim is to begin with a Sync

	turn    sync.Mutex    // Write, and the short steps of Reclaim that change something
	logs    *keyLogs      // guarded by turn
	bufs    [lives][]byte // guarded by turn; scratch of Write
	counted bool          // guarded by turn; live of all blobs is right
	surveys int           // guarded by turn; begun or made void
	values  valueLogs
}

// Config configures a Badger.
type Config struct {
	Sync   bool
	Memory int64
	// Reserve is how many bytes of the volume stay free.
	Reserve int64
	Logger  *slog.Logger
	// Life returns how long the value of a key is likely to be needed; it is always the same for a
	// key. Nil means that all values are Inline.
	Life func(key []byte) Life
	// Last is the key from which on all values are Inline.
	Last []byte
	// Whole reports whether a value is intact and belongs to its key. After a loss of power without
	// Sync it shows where the readable writes end. Nil means that this is unknown.
	Whole func(key, value []byte) bool
	// Needs returns the names of the files beside badger's that a value lists. After a loss of power
	// a state with a value that lists a missing file is not valid. Nil means that none does.
	Needs func(key, value []byte) []string
	// Rehearse recovers from a DB like the one that is opened, and closes it. It is called before a
	// log is cut after a loss of power: if it fails, so does opening, and the folder stays as it was.
	// Nil means that nothing is tried.
	Rehearse func(DB) error

	// Small makes tables and files fill up after a few writes. It is for tests: short runs then
	// cover what happens in long ones.
	Small bool

	// Tests have others.
	sizes sizes
	table int64 // 0: as Memory says
	flush func(*os.File) error
	write func(f *os.File, p []byte, at int64) (int, error)
}

// OpenBadger opens or makes the folder path.
func OpenBadger(path string, c Config) (*Badger, error) {
	d := &Badger{folder: folder{path, uint64(c.Reserve)}, sync: c.Sync, table: minTable, large: largeValue, life: c.Life, last: c.Last, log: c.Logger}
	if c.sizes == (sizes{}) {
		c.sizes = usual
		if c.Small {
			c.sizes = small
		}
	}
	d.sizes = c.sizes
	if c.flush == nil {
		c.flush = (*os.File).Sync
	}
	if c.write == nil {
		c.write = (*os.File).WriteAt
	}
	if d.life == nil {
		d.life = func([]byte) Life { return Inline }
	}
	for 4*d.table*perTable <= c.Memory && d.table < maxTable {
		d.table *= 2
	}
	if c.table > 0 {
		d.table = c.table
	}
	if c.Small {
		d.table, d.large = smallTable, smallTable/16
	}
	o := badger.DefaultOptions(path).
		WithSyncWrites(c.Sync).
		WithMemTableSize(d.table).
		WithNumMemtables(tables).
		WithNumCompactors(2).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithValueThreshold(int64(d.large)).
		WithValueLogFileSize(valueLog).
		WithNumVersionsToKeep(1).
		WithDetectConflicts(false).
		WithMetricsEnabled(false).
		WithChecksumVerificationMode(options.OnBlockRead).
		WithVerifyValueChecksum(true).
		WithLogger(logger{c.Logger, d})
	o.BaseTableSize, o.TableSizeMultiplier = d.table/2, 1
	// A generation's writes overlap no other generation: they may move to the lowest level at once.
	o.BaseLevelSize = baseLevel
	before, err := d.settle(path, c)
	if err != nil {
		return nil, err
	}
	d.gate = newGate(path, d.table)
	if err := d.guarded(func() (err error) { d.db, err = badger.Open(o); return err }); err != nil {
		d.gate.close()
		return nil, err
	}
	if d.logs, err = openKeyLogs(path, d.table); err == nil {
		if d.blobs, err = openBlobs(path, c); err == nil {
			d.confirmed, err = openConfirmed(path, c, before)
		}
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.logs.logs[len(d.logs.logs)-1].last = d.db.MaxVersion()
	d.spare.dir, d.values.dir, d.values.flush = path, path, c.flush
	_ = d.spare.take() // ready says so if it matters
	d.counted = len(d.blobs.files) == 0
	d.wasteful.Store(!d.counted) // not known yet
	return d, nil
}

// settle checks a folder, and repairs what a crash or a loss of power left, before badger opens it.
func (d *Badger) settle(path string, c Config) (before noted, err error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return before, err
	}
	free, err := alone(path, func() error {
		before = readConfirmed(path)
		torn, err := inspect(path, before, contents{c.Whole, c.Needs})
		if errors.Is(err, errFormat) {
			d.log.Warn("kv: badger's files are not inspected for damage", "error", err)
		} else if err != nil {
			return err
		}
		if err := d.roomToOpen(); err != nil {
			return err
		}
		if torn.log != "" {
			if err := rehearse(path, c); err != nil {
				return err
			}
			d.log.Warn("kv: power was lost: the latest writes had not reached the medium", "log", torn.log, "bytes", torn.bytes)
		}
		if err := errors.Join(torn.cut(path), removeUnborn(path)); err != nil {
			return err
		}
		if !hintsAreGood(path) {
			d.log.Warn("kv: removed a damaged file of statistics", "file", hintsName)
			if err := os.Remove(filepath.Join(path, hintsName)); err != nil {
				return err
			}
		}
		if before.safe {
			return nil
		}
		return syncEarlier(path, c.flush) // from now on all counts as being on the medium
	})
	if err == nil && !free {
		err = inUse(path)
	}
	return before, err
}

// roomToOpen fails if badger would lack descriptors or space while it opens.
func (d *Badger) roomToOpen() error {
	files, logs := 0, 0
	for _, dir := range []string{"", blobFolder, "marks"} {
		names, err := d.ListFiles(dir)
		if err != nil {
			return err
		}
		files += len(names)
		for _, n := range names {
			if _, ok := keyLogID(n); ok && dir == "" {
				logs++
			}
		}
	}
	if err := enoughFiles(d.path, files+openFiles); err != nil {
		return err
	}
	// A log, and the tables of those that are there.
	return durablefs.Space(d.path, uint64(int64(4+2*logs)*d.table), 0)
}

// Footprint is for the store.
func (d *Badger) Footprint() int64 { return d.table * perTable }

// Close is for the store.
func (d *Badger) Close() error {
	d.turn.Lock()
	d.spare.give()
	d.gate.close()
	err := d.logs.close() // the log made ahead releases its space for the last table
	d.turn.Unlock()
	err = errors.Join(err, d.closeDB())
	if d.blobs != nil {
		err = errors.Join(err, d.blobs.close())
	}
	return errors.Join(err, d.confirmed.close())
}

// Confirm is for the store.
func (d *Badger) Confirm(n uint64) { d.confirmed.set(note{n, d.version.Load()}) }

// Confirmed is for the store.
func (d *Badger) Confirmed() uint64 { return d.confirmed.before.known().number }

// logger passes on badger's messages, and evaluates those that badger reports in no other way.
type logger struct {
	log *slog.Logger
	d   *Badger
}

func (l logger) Errorf(f string, a ...any) {
	news := l.d.faults.note(f, text(f, a))
	if strings.Contains(f, "while curlf sync") {
		l.d.syncFault.Store(true)
	}
	if news {
		l.log.Error(text(f, a))
	}
}
func (l logger) Warningf(f string, a ...any) {
	if l.d.faults.note(f, text(f, a)) {
		l.log.Warn(text(f, a))
	}
}
func (l logger) Infof(string, ...any)      {} // of its levels and tables, which say nothing to an operator
func (l logger) Debugf(f string, a ...any) { l.d.says(f, a) }

func text(f string, a []any) string {
	return "badger: " + strings.TrimSpace(fmt.Sprintf(f, a...))
}
