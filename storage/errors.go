// This file holds the errors of a store that its frontier, or the user of both, tells apart.

package storage

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("frontier: closed")

// ErrInUse is returned by Open when the Spill belongs to another frontier, and
// by spill.Open when another process has the folder.
var ErrInUse = errors.New("frontier: store in use")

// ErrVersion is returned by spill.Open, spill.Repair and Open for a store, and by Import
// for an export, of a format that this version does not read. It is no damage:
// the version that wrote it reads it.
var ErrVersion = errors.New("frontier: another version's format")

// ErrReopen is wrapped by errors of a Spill that failed for good, as when the disk broke
// off in the middle of a write of its engine. It takes no calls until it is opened again,
// and so is the frontier. Nothing that was accepted is lost.
var ErrReopen = errors.New("frontier: store must be opened again")

// CorruptError reports a stored record that cannot be decoded, or a file of the
// store that is damaged. It is left in place: deleting evidence is the caller's
// decision, not ours. spill.Repair salvages the rest.
type CorruptError struct {
	Key  []byte // store key of the bad record; nil: a whole file
	File string // of the store's folder, if the store knows
	Err  error  // what the decoder said
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
