// This file stores large values outside badger's tables, in separate files to which badger's keys
// point.
//
// In tables such values would be copied several times, and space would be reclaimed only where a
// compaction happens to run. In badger's value log, values that die within minutes would be mixed
// with others that stay for weeks. Here each file holds values of one expected Life, and the amount
// of live data in it is always known; collect.go uses that.
//
//	file:   entries, one behind the other
//	entry:  length of key, length of value (varints), key, value
//	place:  file 4, position of the value 4, length of the value 4
//
// The key is for collect.go. The writer of a value verifies it when it is read.

package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Life is how long a value is likely to be of use.
type Life uint8

// The lives. Values that die together should lie together.
const (
	Inline  Life = iota // small or often replaced: stays in the tables
	Brief               // dies soon, in about the order of writing
	Lasting             // may stay for long
	moved               // has outlived most of its first file
	lives
)

const (
	blobFolder = "blobs"
	maxBlobs   = 16 << 20 // bytes of one Write
	apartFrom  = 256      // bytes from which on a value is stored separately
	placeLen   = 12
	keptBuffer = 1 << 20
)

var lifeNames = [lives]string{Brief: ".brief", Lasting: ".lasting", moved: ".moved"}

// blob is one file.
type blob struct {
	id   uint32
	life Life
	size atomic.Int64 // bytes written; only the holder of Badger.turn changes it

	use  sync.RWMutex // held for reading while file is read; for writing to close it
	file *os.File

	// Guarded by Badger.turn.
	live    int64 // bytes of entries that a key points to
	durable int64 // number of bytes from the beginning that are on the medium
	fault   error // a sync failed: what was not on the medium then may be lost
	stuck   bool  // collecting it failed

	dropped bool // guarded by blobs.mu; only readers of a snapshot want it
}

func (f *blob) dead() int64     { return f.size.Load() - f.live }
func (f *blob) unsynced() int64 { return f.size.Load() - f.durable }

// blobs are the files of a folder.
type blobs struct {
	path  string
	sizes sizes
	safe  bool                 // a new file's name is synced
	flush func(*os.File) error // to the medium
	write func(f *os.File, p []byte, at int64) (int, error)

	mu    sync.RWMutex
	files map[uint32]*blob // guarded by mu
	pins  int              // guarded by mu; readers of snapshots, whose files must stay
	gone  []*blob          // guarded by mu; to be removed when pins is 0

	// Guarded by Badger.turn.
	filling  [lives]*blob
	next     uint32
	unsynced []*blob // files with bytes that a loss of power may cost
}

// place is the location of a value.
type place = Place

func (p Place) bytes() []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, placeLen), p.file)
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, p.at), p.n)
}

func readPlace(b []byte) (place, error) {
	if len(b) != placeLen {
		return place{}, fmt.Errorf("%w: place of a value has %d bytes", ErrDamaged, len(b))
	}
	return place{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}, nil
}

// entryLen returns the bytes of a file that a key and its value take.
func entryLen(key, value int) int64 {
	return int64(varintLen(key) + varintLen(value) + key + value)
}

func varintLen(n int) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}

func appendEntry(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(append(dst, key...), value...)
}

// openBlobs opens the files below dir, which are on the medium. They are only read from now on: the
// end of the last one may be torn.
func openBlobs(dir string, c Config) (*blobs, error) {
	if err := os.MkdirAll(filepath.Join(dir, blobFolder), 0o755); err != nil {
		return nil, err
	}
	b, err := readBlobs(dir)
	if err != nil {
		return nil, err
	}
	b.sizes, b.safe, b.flush, b.write = c.sizes, c.Sync, c.flush, c.write
	return b, nil
}

// openBlob opens a file if its name is that of a blob.
func openBlob(folder, name string) (*blob, error) {
	for life := Brief; life < lives; life++ {
		number, ok := strings.CutSuffix(name, lifeNames[life])
		id, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil {
			continue
		}
		f := &blob{id: uint32(id), life: life}
		if f.file, err = os.Open(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
		info, err := f.file.Stat()
		if err != nil {
			return nil, errors.Join(err, f.file.Close())
		}
		f.size.Store(info.Size())
		f.durable = info.Size()
		return f, nil
	}
	return nil, nil
}

func (b *blobs) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, f := range b.files {
		f.use.Lock()
		errs = append(errs, f.file.Close())
		f.use.Unlock()
	}
	clear(b.files)
	return errors.Join(errs...)
}

// fileFor returns the file for n more bytes of a life.
func (b *blobs) fileFor(life Life, n int64) (*blob, error) {
	limit := b.sizes.file
	if life == Brief {
		limit = b.sizes.brief
	}
	if f := b.filling[life]; f != nil && f.fault == nil && (f.size.Load() == 0 || f.size.Load()+n <= limit) {
		return f, nil
	}
	f := &blob{id: b.next, life: life}
	name := filepath.Join(b.path, fmt.Sprintf("%08d%s", f.id, lifeNames[life]))
	var err error
	if f.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644); err != nil {
		return nil, err
	}
	if b.safe || life == moved {
		if err := durablefs.SyncFolder(b.path); err != nil {
			return nil, errors.Join(err, f.file.Close(), os.Remove(name))
		}
	}
	b.next++
	b.mu.Lock()
	b.files[f.id] = f
	b.mu.Unlock()
	b.filling[life] = f
	return f, nil
}

// append writes entries to the current file for values of a life, and returns where they begin.
func (b *blobs) append(life Life, entries []byte) (*blob, int64, error) {
	f, err := b.fileFor(life, int64(len(entries)))
	if err != nil {
		return nil, 0, err
	}
	at := f.size.Load()
	if _, err := b.write(f.file, entries, at); err != nil {
		return nil, 0, err // what was written is behind the end, and will be overwritten
	}
	if f.unsynced() == 0 {
		b.unsynced = append(b.unsynced, f)
	}
	f.size.Store(at + int64(len(entries)))
	return f, at, nil
}

// sync makes everything written so far survive a loss of power. own is how much of each file belongs to
// the current Write: if the sync of a file fails, that Write fails; but earlier data of others may be
// lost, too, and a later sync might succeed regardless. So the file is not synced again.
func (b *blobs) sync(own [lives]int64) error {
	var kept []*blob
	var errs []error
	for _, f := range b.unsynced {
		if f.fault == nil {
			if err := b.flush(f.file); err != nil {
				f.fault = fmt.Errorf("sync of %s: %w", f.file.Name(), err)
				errs = append(errs, f.fault)
				if f == b.filling[f.life] && f.unsynced() == own[f.life] {
					f.durable = f.size.Load()
				}
			} else {
				f.durable = f.size.Load()
			}
		}
		if f.unsynced() > 0 {
			kept = append(kept, f)
			errs = append(errs, f.fault)
		}
	}
	b.unsynced = kept
	return errors.Join(errs...)
}

// synced notes that all of f is on the medium, or need not be.
func (b *blobs) synced(f *blob) {
	f.durable = f.size.Load()
	b.unsynced = slices.DeleteFunc(b.unsynced, func(u *blob) bool { return u == f })
}
