// This file holds the one value that says which generations, which part of the
// log, and which files of marks are valid.
//
//	seal 5 | adopted generation | through | floor | next block | count, for each run:
//	  id | level 1 | marks | crc of its footer 4

package spill

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// Version is the format of the store. A change of any layout in this package but rows
// and bodies, which are the frontier's, changes it. A store of another version is
// refused, and left as it is, until this package can read it.
const Version = 1

// state is what a checkpoint sets in one write.
type state struct {
	adopted uint32 // last generation that is valid
	through uint64 // last batch that need not be replayed
	floor   uint32 // no log key lies in a generation below
	next    uint32 // no block has this number or a higher one, except newer ones
	runs    []runRef
}

func (t state) value(key []byte) []byte {
	v := appendSeal(nil)
	v = binary.AppendUvarint(v, uint64(t.adopted))
	v = binary.AppendUvarint(v, t.through)
	v = binary.AppendUvarint(v, uint64(t.floor))
	v = binary.AppendUvarint(v, uint64(t.next))
	v = binary.AppendUvarint(v, uint64(len(t.runs)))
	for _, r := range t.runs {
		v = binary.AppendUvarint(v, uint64(r.id))
		v = append(v, r.level)
		v = binary.AppendUvarint(v, r.count)
		v = binary.BigEndian.AppendUint32(v, r.sum)
	}
	closeSeal(key, v)
	return v
}

func readState(key, value []byte) (t state, err error) {
	content, err := unseal(key, value)
	if err != nil {
		return t, err
	}
	s := scanner{b: content}
	t.adopted = uint32(s.limited(fixed - 1))
	t.through = s.uvarint()
	t.floor = uint32(s.limited(1<<32 - 1))
	t.next = uint32(s.limited(1<<32 - 1))
	for n := s.uvarint(); n > 0 && s.err == nil; n-- {
		r := runRef{id: uint32(s.limited(1<<32 - 1)), level: s.byte(), count: s.uvarint()}
		if sum := s.take(4); sum != nil {
			r.sum = binary.BigEndian.Uint32(sum)
		}
		t.runs = append(t.runs, r)
	}
	return t, s.end()
}

// loadState reads the state; a store without one is new.
func loadState(db kv.Reader) (state, error) {
	t := state{floor: 1, next: 1}
	key := prefixKey(fixed, kindState)
	_, err := db.Get(key, func(v []byte) (err error) {
		if t, err = readState(key, v); err != nil {
			return corrupt(key, err)
		}
		return nil
	})
	return t, err
}

// checkVersion stamps a new store and refuses one of another version.
func checkVersion(db kv.DB) error {
	found, err := knownVersion(db)
	if found || err != nil {
		return err
	}
	key := prefixKey(fixed, kindVersion)
	// Only an empty store may be stamped: one without a stamp is not ours.
	err = db.Iterate([]byte{0}, prefixKey(fixed, 255), func([]byte, func() ([]byte, error)) error {
		return errors.New("it holds keys of something else")
	})
	if err != nil {
		return err
	}
	var b kv.Batch
	b.Set(key, binary.AppendUvarint(nil, Version))
	return db.Write(&b, true)
}

// knownVersion reports whether a store has a stamp. It returns ErrVersion if that is not of this
// version. The stamp is a plain number, readable by every version.
func knownVersion(db kv.Reader) (found bool, err error) {
	key := prefixKey(fixed, kindVersion)
	return db.Get(key, func(v []byte) error {
		s := scanner{b: v}
		stored := s.uvarint()
		if err := s.end(); err != nil {
			return corrupt(key, err)
		}
		if stored == 0 {
			return corrupt(key, errors.New("version is 0"))
		}
		return otherVersion(stored)
	})
}

// otherVersion is ErrVersion, unless v is this version.
func otherVersion(v uint64) error {
	if v == Version {
		return nil
	}
	return fmt.Errorf("it has version %d, this program knows %d: %w", v, Version, frontier.ErrVersion)
}

func corrupt(key []byte, err error) error {
	return &frontier.CorruptError{Key: append([]byte(nil), key...), Err: err}
}
