// Package kv is the seam between the layout of a spill and the engine that keeps
// it: ordered bytes with atomic writes, and files beside them.
//
// Badger is the engine for production, Disk the one for tests, and Faulty makes
// either of them fail.
package kv

import (
	"errors"
	"io"
	"io/fs"
)

// DB is an ordered map from bytes to bytes that outlives the process.
//
// Write is called by one goroutine at a time, Reclaim by one beside it, the others
// by any number. Close waits for nothing: callers end their calls before.
type DB interface {
	// Write applies b wholly or not at all. With sync it returns when b, and
	// everything written before it, survives a loss of power. After an error the
	// outcome is unknown until b's keys are written again.
	Write(b *Batch, sync bool) error

	// Sync returns when all that was written before survives a loss of power. Any
	// number of goroutines may call it.
	Sync() error

	// Confirm notes that all writes which number n stands for have returned. It is
	// cheap. Confirmed is the number that was noted last before the DB was opened,
	// or an earlier one, or 0: if one that is not higher is missing, data is lost.
	Confirm(n uint64)
	Confirmed() uint64

	// Fits tells whether Write takes b.
	Fits(b *Batch) bool

	Reader

	// Snapshot returns the DB as it is now: every write that has returned, none
	// that begins later. Any number of goroutines may call it.
	Snapshot() (Snapshot, error)

	// Footprint is how many bytes of memory the engine needs at most.
	Footprint() int64

	// Wasteful reports whether Reclaim has something to do. It is cheap.
	Wasteful() bool
	// Reclaim gives space on disk back that holds nothing of use, in small steps.
	// It calls pause between them, and ends early when that returns false.
	Reclaim(pause func() bool) error

	Files

	Close() error
}

// Reader is what can be read of a DB.
type Reader interface {
	// Get calls fn with the value of key, which is valid during the call.
	Get(key []byte, fn func(value []byte) error) (found bool, err error)

	// Iterate calls fn with the keys from <= key < to, in order, until fn
	// returns an error, which it returns. The arguments are valid during the
	// call. Writes that begin later are not seen.
	Iterate(from, to []byte, fn func(key []byte, value func() ([]byte, error)) error) error
}

// Files keeps what is written once, in order, and searched in place. A name is
// that of a folder, a slash and that of a file. Any number of goroutines may call.
type Files interface {
	// CreateFile makes a file that will have about size bytes, in place of any
	// with the name. It fails while there is no space for that many.
	CreateFile(name string, size int64) (FileWriter, error)

	// OpenFile opens a file that is complete. If there is none the error wraps
	// fs.ErrNotExist.
	OpenFile(name string) (FileReader, error)

	// RemoveFile removes a file that nobody has open. None is no error.
	RemoveFile(name string) error

	// ListFiles returns the names of the files in a folder, in any order.
	ListFiles(folder string) ([]string, error)
}

// FileWriter fills a file. What was not written below the end of the file is
// zero, or damaged. Not safe for concurrent use.
type FileWriter interface {
	io.WriterAt

	// Sync returns when the file and its name survive a loss of power.
	Sync() error
	Close() error
}

// FileReader reads a file. Any number of goroutines may call ReadAt.
type FileReader interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// ErrStop ends an Iterate early; callers of Iterate look for it.
var ErrStop = fs.SkipAll

// ErrDamaged is wrapped by read errors that tell of damage below the engine.
var ErrDamaged = errors.New("engine cannot read the value")

// Batch collects what one Write applies. A later operation on a key wins. Keys
// and values belong to the batch from then on.
type Batch struct {
	Ops   []Op
	Bytes int // of keys and values

	// Spare lets the write use space that the engine keeps in reserve: it
	// finishes or completes what is stored already.
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
