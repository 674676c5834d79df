// Package leaseid makes texts that stand for leases. It owns the key of this process: a client cannot
// derive the ID of a lease from those that it has.
package leaseid

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/dchest/siphash"
)

// key enciphers the IDs of this process.
var key = func() (k [2]uint64) {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return [2]uint64{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}()

const (
	idBytes = 4 + 8     // what an ID encodes: the number of a lease's record and its token
	half    = 1<<48 - 1 // the bits of one half of it
)

// sealed is a Feistel cipher of four rounds over 96 bits, with SipHash as its function. It
// undoes itself if the halves are exchanged before and after, and the rounds run backwards.
func sealed(left, right uint64, rounds [4]uint64) (uint64, uint64) {
	var b [8]byte
	for _, round := range rounds {
		binary.LittleEndian.PutUint64(b[:], right|round<<48)
		left, right = right, left^siphash.Hash(key[0], key[1], b[:])&half
	}
	return left, right
}

// Seal returns the ID of a lease: 16 letters, digits, dashes and underscores.
func Seal(record uint32, token uint64) string {
	var b [idBytes]byte
	left, right := sealed(uint64(record)<<16|token>>48, token&half, [4]uint64{0, 1, 2, 3})
	binary.BigEndian.PutUint32(b[:], uint32(left>>16))
	binary.BigEndian.PutUint64(b[4:], left<<48|right)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Open is the inverse of Seal. An ID may have a tail, which begins with a full stop: see package fleet/route.
func Open(id string) (record uint32, token uint64, tail string, err error) {
	own, _, _ := strings.Cut(id, ".")
	if want := base64.RawURLEncoding.EncodedLen(idBytes); len(own) != want {
		return 0, 0, "", fmt.Errorf("a lease ID of %d characters; want %d", len(own), want)
	}
	b, err := base64.RawURLEncoding.DecodeString(own)
	if err == nil && len(b) != idBytes { // it skips line breaks
		err = errors.New("it has line breaks")
	}
	if err != nil {
		return 0, 0, "", fmt.Errorf("lease ID %q: %w", id, err)
	}
	low := binary.BigEndian.Uint64(b[4:])
	right, left := sealed(low&half, uint64(binary.BigEndian.Uint32(b))<<16|low>>48, [4]uint64{3, 2, 1, 0})
	return uint32(left >> 16), left<<48 | right, id[len(own):], nil
}
