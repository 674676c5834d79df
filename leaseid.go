// This file writes leases as text, and finds them again: for clients in other processes.

package frontier

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dchest/siphash"
)

// leaseIDBytes is what an ID encodes: the number of the lease's record and its token.
const leaseIDBytes = 4 + 8

// leaseIDKey enciphers the IDs of this process: a client cannot derive the ID of a lease
// from those that it has.
var leaseIDKey = randomKey()

// half is one half of what an ID encodes: 48 bits.
const half = 1<<48 - 1

// sealed is a Feistel cipher of four rounds over 96 bits, with SipHash as its function. It
// undoes itself if the halves are exchanged before and after, and the rounds run backwards.
func sealed(left, right uint64, rounds [4]uint64) (uint64, uint64) {
	var b [8]byte
	for _, round := range rounds {
		binary.LittleEndian.PutUint64(b[:], right|round<<48)
		left, right = right, left^siphash.Hash(leaseIDKey[0], leaseIDKey[1], b[:])&half
	}
	return left, right
}

// ID returns a text of 16 letters, digits, dashes and underscores that stands for the
// lease: LeaseByID finds it again. A program in another process can store it. It cannot
// be derived from the IDs of other leases. The ID of the zero Lease is empty.
func (l Lease) ID() string {
	if l.token == 0 {
		return ""
	}
	var b [leaseIDBytes]byte
	left, right := sealed(uint64(l.record)<<16|l.token>>48, l.token&half, [4]uint64{0, 1, 2, 3})
	binary.BigEndian.PutUint32(b[:], uint32(left>>16))
	binary.BigEndian.PutUint64(b[4:], left<<48|right)
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
	if err == nil && len(b) != leaseIDBytes { // it skips line breaks
		err = errors.New("it has line breaks")
	}
	if err != nil {
		return Lease{}, fmt.Errorf("frontier: lease ID %q: %w", id, err)
	}
	token := binary.BigEndian.Uint64(b[4:])
	right, left := sealed(token&half, uint64(binary.BigEndian.Uint32(b))<<16|token>>48, [4]uint64{3, 2, 1, 0})
	l.record, l.token = uint32(left>>16), left<<48|right
	return l, nil
}
