// This file says what a fleet needs of the engine that its nodes share.

package fleet

import (
	"context"
	"errors"
)

// ErrConflict is returned by calls of an Engine that changed nothing, because something else had been
// changed before: the entry is there already, or has another revision, or the log has another end.
var ErrConflict = errors.New("fleet: changed by another")

// Engine keeps the logs and the table of a fleet on several machines. A write that returns nil
// survives the loss of any one of them, and of power on all. After ErrConflict it has changed nothing,
// and never will; after any other error its outcome is unknown: it may even take effect later.
//
// All methods may be called from any number of goroutines. Each waits for the engine until ctx ends.
type Engine interface {
	Table

	// Append adds a record behind the one with number last, which is 0 for the first, and returns its
	// number, which is higher. If last is not the end of the log any more, it returns ErrConflict.
	Append(ctx context.Context, partition int, last uint64, record []byte) (uint64, error)
	// Last returns the number and the data of the last record, or 0 if there never was one. It sees
	// every Append that returned before. record is nil if the record was purged.
	Last(ctx context.Context, partition int) (number uint64, record []byte, err error)
	// Read calls fn with the records after number after, in order, until it has reached the one with
	// number through. fn must not keep record. Purged records are left out.
	Read(ctx context.Context, partition int, after, through uint64, fn func(number uint64, record []byte) error) error
	// Purge removes the records up to number through. The end of the log stays as it is.
	Purge(ctx context.Context, partition int, through uint64) error
}

// Table holds small entries, and numbers every change.
type Table interface {
	// Get returns an entry. Its Revision is 0 if there is none. It sees every change that returned
	// before.
	Get(ctx context.Context, key string) (Entry, error)
	// Put stores value as the entry of key, if its revision is still the given one; 0: if there is none.
	Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Watch calls fn with all entries there are, and then with changes, until ctx ends or the engine
	// fails, and returns why. Changes may arrive late and in any order, and those of an entry that has
	// changed again may be left out. There is one call of fn at a time.
	Watch(ctx context.Context, fn func([]Entry)) error
}

// Entry is one entry of a Table.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64 // rises with every change of any entry; never used twice
}
