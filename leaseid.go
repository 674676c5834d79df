// This file writes leases as text, and finds them again: for clients in other processes.

package frontier

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

// leaseIDBytes is what an ID encodes: the number of the lease's record and its token.
const leaseIDBytes = 4 + 8

// ID returns a text of 16 letters, digits, dashes and underscores that stands for the
// lease: LeaseByID finds it again. A program in another process can store it. The ID of
// the zero Lease is empty.
func (l Lease) ID() string {
	if l.token == 0 {
		return ""
	}
	var b [leaseIDBytes]byte
	binary.BigEndian.PutUint32(b[:], l.record)
	binary.BigEndian.PutUint64(b[4:], l.token)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// LeaseByID returns the lease with this ID, as it is now, without its Due. It returns
// ErrNotLeased if the lease has ended or the store was opened since, and another error if
// id is not an ID.
func (f *Frontier) LeaseByID(id string) (Lease, error) {
	l, err := RestoreLease(id, Lease{})
	if err != nil {
		return Lease{}, err
	}
	f.lock()
	if _, err := f.leaseOutLocked(&l); err != nil {
		f.mu.Unlock()
		return Lease{}, err
	}
	var found Lease
	f.newLeaseLocked(&found, l.record)
	f.mu.Unlock()
	f.setGap(&found)
	return found, nil
}

// RestoreLease gives a lease its ID back: it returns l with that ID. It is for clients that
// receive the fields of a lease and its ID from the process of the frontier. In that
// process use LeaseByID, which knows when the lease began.
func RestoreLease(id string, l Lease) (Lease, error) {
	if want := base64.RawURLEncoding.EncodedLen(leaseIDBytes); len(id) != want {
		return Lease{}, fmt.Errorf("frontier: a lease ID of %d characters; want %d", len(id), want)
	}
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err == nil {
		l.record, l.token = binary.BigEndian.Uint32(b), binary.BigEndian.Uint64(b[4:])
		if l.record == 0 || l.token == 0 {
			err = errors.New("no lease has it")
		}
	}
	if err != nil {
		return Lease{}, fmt.Errorf("frontier: lease ID %q: %w", id, err)
	}
	return l, nil
}
