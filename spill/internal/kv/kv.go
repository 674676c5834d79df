// Package kv is the interface between the layout of a spill and its storage engine: ordered bytes
// with atomic writes, and files beside them. It owns the engine's folder.
//
// Badger is the engine. Package kvtest has one in memory for tests, and one that fails.
package kv

import (
	"errors"
	"io"
	"io/fs"
)

// DB is an ordered map from bytes to bytes that outlives the process.
//
// Write may be called from one goroutine at a time, Reclaim from one other, the rest from any
// number. Close does not wait: callers must have ended their calls.
type DB interface {
	// Write applies b completely or not at all. With sync it returns when b, and everything written
	// before it, survives a loss of power. After an error the outcome is unknown until b's keys are
	// written again.
	Write(b *Batch, sync bool) error

	// Sync returns when everything written before survives a loss of power. It may be called from
	// any number of goroutines.
	Sync() error

	// Confirm records that all writes up to the one with number n have returned. It is cheap.
	// Confirmed returns the number that was last recorded before the DB was opened, or an earlier
	// one, or 0: if a write with a number up to that is missing, data was lost.
	Confirm(n uint64)
	Confirmed() uint64

	// Fits reports whether Write accepts b.
	Fits(b *Batch) bool

	Reader

	// Locate returns the place of the value of key if Peek may find it there, as long as the value
	// is not replaced or deleted.
	Locate(key []byte) (Place, bool)
	// Peek calls fn with what lies at a place, unless it must wait for the disk to read it, and
	// reports whether fn was called and returned no error. What lies there may be something else by
	// now, so fn must verify it. It is for values that are not replaced.
	Peek(at Place, fn func(value []byte) error) bool

	// Snapshot returns the current state of the DB: every write that has returned, none that begins
	// later. It may be called from any number of goroutines.
	Snapshot() (Snapshot, error)

	// Footprint is how many bytes of memory the engine needs at most.
	Footprint() int64

	// Wasteful reports whether Reclaim has something to do. It is cheap.
	Wasteful() bool
	// Reclaim frees disk space that holds only obsolete data, in small steps. It calls pause
	// between them, and ends early when pause returns false.
	Reclaim(pause func() bool) error

	Files

	Close() error
}

// Place is where a value lies.
type Place struct{ file, at, n uint32 }

// Reader reads a DB.
type Reader interface {
	// Get calls fn with the value of key, which is valid during the call.
	Get(key []byte, fn func(value []byte) error) (found bool, err error)

	// Iterate calls fn with the keys from <= key < to, in order, until fn returns an error, which
	// Iterate returns. The arguments are valid only during the call. Writes that begin later are
	// not seen.
	Iterate(from, to []byte, fn func(key []byte, value func() ([]byte, error)) error) error
}

// Files stores files that are written once, in order, and read at any position. A name is that of a
// folder, a slash and that of a file. It may be called from any number of goroutines.
type Files interface {
	// CreateFile creates a file that will have about size bytes, replacing any with the same name.
	// It fails if there is not enough space.
	CreateFile(name string, size int64) (FileWriter, error)

	// OpenFile opens a complete file. If there is none the error wraps fs.ErrNotExist.
	OpenFile(name string) (FileReader, error)

	// RemoveFiles removes files that are not open, when everything written before survives a loss
	// of power: no state that one may leave then needs them. It is not an error if there are none
	// of these names.
	RemoveFiles(names ...string) error

	// ListFiles returns the names of the files in a folder, in any order.
	ListFiles(folder string) ([]string, error)
}

// FileWriter writes a file. Gaps below the end of the file are zero, or damaged. Not safe for
// concurrent use.
type FileWriter interface {
	io.WriterAt

	// Sync returns when the file and its name survive a loss of power.
	Sync() error
	Close() error
}

// FileReader reads a file. ReadAt may be called from any number of goroutines.
type FileReader interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// ErrStop ends an Iterate early; callers of Iterate check for it.
var ErrStop = fs.SkipAll

// ErrDamaged is wrapped by read errors that indicate damage below the engine.
var ErrDamaged = errors.New("engine cannot read the value")

// Batch collects what one Write applies. A later operation on a key wins. Keys
// and values belong to the batch from then on.
type Batch struct {
	Ops   []Op
	Bytes int // of keys and values

	// Spare allows the write to use space that the engine keeps in reserve: it finishes or
	// completes stored data.
	Spare bool
}

// Op is one change: a nil Value deletes.
type Op struct {
	Key, Value []byte
}

// Set puts value under key.
func (b *Batch) Set(key, value []byte) {
	if value == nil {
		value = []byte{}
	}
	b.add(Op{key, value})
}

// Delete removes key.
func (b *Batch) Delete(key []byte) { b.add(Op{Key: key}) }

func (b *Batch) add(o Op) {
	b.Ops = append(b.Ops, o)
	b.Bytes += len(o.Key) + len(o.Value)
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Ops)
	b.Ops, b.Bytes, b.Spare = b.Ops[:0], 0, false
}
