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

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/spill/internal/marks"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
	"github.com/seed-7440039f/frontier/storage"
)

// Version is the format version of the store. It changes with every layout in this package except rows
// and bodies, which the frontier encodes. A store of another version is refused and left unchanged.
const Version = wire.Version

// state is what a checkpoint changes in one write.
type state struct {
	adopted uint32 // last generation that is valid
	through uint64 // last batch that need not be replayed
	floor   uint32 // no log key lies in a generation below
	next    uint32 // all block numbers in use are lower, except newer ones
	runs    []marks.Ref
}

func (t state) value(key []byte) []byte {
	v := wire.AppendSeal(nil)
	v = binary.AppendUvarint(v, uint64(t.adopted))
	v = binary.AppendUvarint(v, t.through)
	v = binary.AppendUvarint(v, uint64(t.floor))
	v = binary.AppendUvarint(v, uint64(t.next))
	v = binary.AppendUvarint(v, uint64(len(t.runs)))
	for _, r := range t.runs {
		v = binary.AppendUvarint(v, uint64(r.ID))
		v = append(v, r.Level)
		v = binary.AppendUvarint(v, r.Count)
		v = binary.BigEndian.AppendUint32(v, r.Sum)
	}
	wire.CloseSeal(key, v)
	return v
}

func readState(key, value []byte) (t state, err error) {
	content, err := wire.Unseal(key, value)
	if err != nil {
		return t, err
	}
	s := wire.Scanner{B: content}
	t.adopted = uint32(s.Limited(keys.Fixed - 1))
	t.through = s.Uvarint()
	t.floor = uint32(s.Limited(1<<32 - 1))
	t.next = uint32(s.Limited(1<<32 - 1))
	for n := s.Uvarint(); n > 0 && s.Err == nil; n-- {
		r := marks.Ref{ID: uint32(s.Limited(1<<32 - 1)), Level: s.Byte(), Count: s.Uvarint()}
		if sum := s.Take(4); sum != nil {
			r.Sum = binary.BigEndian.Uint32(sum)
		}
		t.runs = append(t.runs, r)
	}
	return t, s.End()
}

// runsOf returns the names of the files of marks that a value lists, if it is a state.
func runsOf(key, value []byte) (names []string) {
	if string(key) != string(keys.Prefix(keys.Fixed, keys.KindState)) {
		return nil
	}
	t, err := readState(key, value)
	if err != nil {
		return nil // reported when it is loaded
	}
	for _, r := range t.runs {
		names = append(names, marks.NameOf(r.ID))
	}
	return names
}

// loadState reads the state; a store without one is new.
func loadState(db kv.Reader) (state, error) {
	t := state{floor: 1, next: 1}
	key := keys.Prefix(keys.Fixed, keys.KindState)
	_, err := db.Get(key, func(v []byte) (err error) {
		t, err = readState(key, v)
		return keys.Corrupt(key, err)
	})
	return t, err
}

// checkVersion stamps a new store and refuses one of another version.
func checkVersion(db kv.DB) error {
	found, err := knownVersion(db)
	if found || err != nil {
		return err
	}
	key := keys.Prefix(keys.Fixed, keys.KindVersion)
	// Only an empty store may be stamped: a folder with keys but no stamp is not a store.
	err = db.Iterate([]byte{0}, keys.Prefix(keys.Fixed, 255), func([]byte, func() ([]byte, error)) error {
		return errors.New("it holds keys of something else")
	})
	if err != nil {
		return err
	}
	var b kv.Batch
	b.Set(key, binary.AppendUvarint(nil, Version))
	return db.Write(&b, true)
}

// knownVersion reports whether a store has a stamp. It returns ErrVersion if the stamp is another
// version's. The stamp is a plain number that every version can read.
func knownVersion(db kv.Reader) (found bool, err error) {
	key := keys.Prefix(keys.Fixed, keys.KindVersion)
	return db.Get(key, func(v []byte) error {
		s := wire.Scanner{B: v}
		stored := s.Uvarint()
		if err := s.End(); err != nil {
			return keys.Corrupt(key, err)
		}
		if stored == 0 {
			return keys.Corrupt(key, errors.New("version is 0"))
		}
		return otherVersion(stored)
	})
}

// otherVersion is ErrVersion, unless v is this version.
func otherVersion(v uint64) error {
	if v == Version {
		return nil
	}
	return fmt.Errorf("it has version %d, this program knows %d: %w", v, Version, storage.ErrVersion)
}
