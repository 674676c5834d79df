// This file encodes the records of a partition's log.
//
// A record says who wrote it, in an epoch that no other owner has, and which change of the partition it
// belongs to: changes are counted from 1. A large change has several records; the last one makes
// it valid. So an owner that does not know whether a record arrived can recognize it, and a reader
// notices a change that is missing.

package fleet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

type kind byte

const (
	kindFence   kind = 1 // a new owner begins: what an earlier one did not finish is void
	kindBatch   kind = 2 // a batch of the store
	kindRelease kind = 3 // the owner has stopped: the leases that clients still have
)

// pieceBytes is the most data of one record.
const pieceBytes = 1 << 20

type record struct {
	kind   kind
	epoch  uint64 // revision of the claim
	change uint64 // of the partition; the same in all pieces
	piece  uint64
	pieces uint64
	data   []byte
}

var errRecord = errors.New("malformed record")

func (r *record) append(dst []byte) []byte {
	dst = append(dst, byte(r.kind))
	for _, n := range [...]uint64{r.epoch, r.change, r.piece, r.pieces} {
		dst = binary.AppendUvarint(dst, n)
	}
	return append(dst, r.data...)
}

func readRecord(b []byte) (r record, err error) {
	if len(b) == 0 {
		return r, errRecord
	}
	r.kind, b = kind(b[0]), b[1:]
	for _, n := range [...]*uint64{&r.epoch, &r.change, &r.piece, &r.pieces} {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return r, errRecord
		}
		*n, b = v, b[size:]
	}
	if r.kind < kindFence || r.kind > kindRelease || r.piece >= r.pieces {
		return r, errRecord
	}
	r.data = b
	return r, nil
}

// change is one whole change of a partition.
type change struct {
	kind   kind
	epoch  uint64
	number uint64
	data   []byte
}

// assembler puts changes together from the records of a log.
type assembler struct {
	open change // pieces so far
	next uint64 // piece that is expected
}

// add takes the next record of the log. It returns a change once its last piece is there.
func (a *assembler) add(number uint64, b []byte) (c change, whole bool, err error) {
	r, err := readRecord(b)
	if err != nil {
		return c, false, fmt.Errorf("record %d: %w", number, err)
	}
	if r.epoch != a.open.epoch || r.change != a.open.number || r.kind != a.open.kind || r.piece != a.next {
		if r.piece != 0 {
			return c, false, fmt.Errorf("record %d: %w: piece %d of change %d without those before", number, errRecord, r.piece, r.change)
		}
		a.open = change{kind: r.kind, epoch: r.epoch, number: r.change}
	}
	a.open.data, a.next = append(a.open.data, r.data...), r.piece+1
	if a.next < r.pieces {
		return c, false, nil
	}
	c, a.open, a.next = a.open, change{}, 0
	return c, true, nil
}
