// This file holds the errors of a store that a frontier or its user handles differently.

package storage

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("frontier: closed")

// ErrInUse is returned by Open when another frontier uses the Spill, and by spill.Open when another
// process uses the folder.
var ErrInUse = errors.New("frontier: store in use")

// ErrVersion is returned by spill.Open, spill.Repair and Open for a store, and by transfer.Import for an
// export, whose format this version cannot read. The data is not damaged: the version that wrote it
// can read it.
var ErrVersion = errors.New("frontier: another version's format")

// ErrReopen is wrapped by errors of a Spill that can no longer be used, for example because the
// disk failed in the middle of a write. The Spill and its frontier refuse further calls until they
// are opened again. Nothing that was accepted is lost.
var ErrReopen = errors.New("frontier: store must be opened again")

// ErrMoved is wrapped beside ErrReopen by errors of a Spill whose store another process has now, or
// soon this one again. The same call may succeed there.
var ErrMoved = errors.New("the store is opened elsewhere")

// CorruptError reports a stored record that cannot be decoded, or a damaged file of the store. The
// damaged data is left in place: whether to delete it is for the caller to decide. spill.Repair
// salvages the rest.
type CorruptError struct {
	Key  []byte // store key of the bad record; nil for a whole file
	File string // in the store's folder; empty if unknown
	Err  error  // cause reported by the decoder
}

// Error implements error.
func (e *CorruptError) Error() string {
	switch {
	case e.File == "":
		return fmt.Sprintf("frontier: corrupt record %x: %v", e.Key, e.Err)
	case len(e.Key) == 0:
		return fmt.Sprintf("frontier: corrupt file %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("frontier: corrupt record %x in %s: %v", e.Key, e.File, e.Err)
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }
