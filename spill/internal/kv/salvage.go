// This file reads the remains of a damaged folder without badger.
//
// It reads all tables and logs, one block or entry at a time. For each key the latest readable
// version counts: if its deletion is unreadable, a deleted value reappears.

package kv

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
	"github.com/seed-7440039f/frontier/spill/internal/wire"
)

// Salvage is a Reader of a damaged folder, and of the files beside badger's. It changes nothing.
// Only its reading methods are safe for concurrent use.
type Salvage struct {
	folder

	// Damage lists the damage found.
	Damage []*DamageError

	latest map[string]badgerfiles.Cell
	keys   []string // keys of latest, sorted, without deleted ones
	blobs  *blobs
}

// ErrInUse is returned by OpenSalvage while a process uses the folder.
var ErrInUse = errors.New("the folder is open")

// inUse is ErrInUse, and says in which process if badger's file says that it is this one.
func inUse(dir string) error {
	where := "in another process or in this one"
	if b, err := os.ReadFile(filepath.Join(dir, "LOCK")); err == nil && strings.TrimSpace(string(b)) == strconv.Itoa(os.Getpid()) {
		where = "in this process: close it first"
	}
	return fmt.Errorf("%w, %s", ErrInUse, where)
}

// OpenSalvage reads a folder that no process uses.
func OpenSalvage(dir string) (*Salvage, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	s := &Salvage{folder: folder{path: dir}, latest: map[string]badgerfiles.Cell{}}
	if free, err := alone(dir, s.load); err != nil {
		return nil, err
	} else if !free {
		return nil, inUse(dir)
	}
	return s, nil
}

// Confirmed is as of a DB.
func (s *Salvage) Confirmed() uint64 { return readConfirmed(s.path).known().number }

// Close closes the files.
func (s *Salvage) Close() error { return s.blobs.close() }

func (s *Salvage) damaged(file string, err error) {
	s.Damage = append(s.Damage, &DamageError{file, err})
}

func (s *Salvage) load() (err error) {
	x := inspector{dir: s.path}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		x.names = append(x.names, e.Name())
	}
	tables := x.with(".sst")
	if whole := s.manifest(&x); whole {
		tables = tables[:0]
		for id := range x.named {
			tables = append(tables, tableName(id))
		}
		slices.Sort(tables)
	}
	for _, name := range tables {
		if err := s.table(&x, name); err != nil {
			return err
		}
	}
	for _, name := range x.with(".mem") {
		if err := s.log(&x, name); err != nil {
			return err
		}
	}
	s.sort()
	s.blobs, err = readBlobs(s.path)
	return err
}

// manifest reports whether the manifest shows which tables are valid. Without it all of them are
// read: some may be older than others.
func (s *Salvage) manifest(x *inspector) (whole bool) {
	if !slices.Contains(x.names, badger.ManifestFilename) {
		s.damaged(badger.ManifestFilename, errMissing)
		return false
	}
	if err := x.manifest(); err != nil {
		s.damaged(badger.ManifestFilename, err)
		return false
	}
	for id := range x.named {
		if last, err := x.table(tableName(id), func(badgerfiles.Cell) {}); err == nil {
			x.last = max(x.last, last)
		}
	}
	for _, name := range x.with(".mem") { // for unnamed
		if data, err := x.read(name); err == nil && len(data) > badgerfiles.LogHead {
			w := walState{name: name}
			badgerfiles.LogCells(data, badgerfiles.LogHead, func(c badgerfiles.Cell) {
				w.first = cmp.Or(w.first, c.Version)
				w.last = max(w.last, c.Version)
			})
			x.logs = append(x.logs, w)
		}
	}
	if err := x.unnamed(); err != nil {
		s.damaged(badger.ManifestFilename, err)
		return false
	}
	return true
}

// see notes a version of a key.
func (s *Salvage) see(c badgerfiles.Cell) {
	if old, ok := s.latest[string(c.Key)]; ok && old.Version > c.Version {
		return
	}
	k := string(c.Key)
	if strings.HasPrefix(k, "!badger!") {
		return
	}
	c.Key, c.Value = nil, append([]byte(nil), c.Value...)
	s.latest[k] = c
}

func (s *Salvage) table(x *inspector, name string) error {
	data, err := x.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		s.damaged(name, errMissing)
		return nil
	}
	if err != nil {
		return err
	}
	blocks, _, err := badgerfiles.TableBlocks(data)
	if err != nil {
		s.damaged(name, err)
		return nil
	}
	for i, b := range blocks {
		if err := badgerfiles.BlockCells(b, s.see); err != nil {
			s.damaged(name, fmt.Errorf("block %d of %d: %w", i, len(blocks), err))
		}
	}
	return nil
}

func (s *Salvage) log(x *inspector, name string) error {
	data, err := x.read(name)
	if err != nil {
		return err
	}
	if len(data) <= badgerfiles.LogHead {
		return nil
	}
	end := badgerfiles.LogCells(data, badgerfiles.LogHead, s.see)
	for at := badgerfiles.NextLogEntry(data, end, metaApart); at >= 0; {
		if at > end {
			s.damaged(name, fmt.Errorf("%w: %d bytes at %d", errInLog, at-end, end))
		}
		c, n := badgerfiles.LogEntry(data[at:])
		if c.Meta&badgerfiles.MetaFinTxn == 0 {
			s.see(c)
		}
		end = at + n
		at = badgerfiles.NextLogEntry(data, end, metaApart)
	}
	return nil
}

// Strays calls fn with each entry of the files of values that no key points to, in the order of
// writing, if some key points to a file that is missing or other files are; lost says whether the
// entry's key is one of these. If fn returns true the key points there from now on. An earlier
// version cut logs after a loss of power whose end was needed: files had been removed because of
// what was cut off.
func (s *Salvage) Strays(others bool, fn func(key, value []byte, lost bool) bool) error {
	h := holes{dir: s.path, values: window{blobs: s.blobs}}
	lost := map[string]bool{}
	for _, k := range s.keys {
		if c := s.latest[k]; c.UserMeta == metaApart && !h.has(c, false) {
			lost[k] = true
		}
	}
	if len(lost) == 0 && !others {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(s.blobs.files)) {
		in := scanner{f: s.blobs.files[id]}
		for {
			key, value, p, err := in.entry()
			if errors.Is(err, io.EOF) || errors.Is(err, ErrDamaged) {
				break // what follows has no beginning
			}
			if err != nil {
				return err
			}
			k := string(key)
			if _, known := s.latest[k]; known && !lost[k] || !fn(key, value, lost[k]) {
				continue
			}
			s.latest[k] = badgerfiles.Cell{Value: p.bytes(), UserMeta: metaApart, Version: s.latest[k].Version}
		}
	}
	s.keys = s.keys[:0]
	s.sort()
	return nil
}

// sort lists the keys.
func (s *Salvage) sort() {
	for k, c := range s.latest {
		if c.Meta&badgerfiles.MetaDelete == 0 {
			s.keys = append(s.keys, k)
		}
	}
	slices.Sort(s.keys)
}

// Get is as for a DB.
func (s *Salvage) Get(key []byte, fn func([]byte) error) (bool, error) {
	c, ok := s.latest[string(key)]
	if !ok || c.Meta&badgerfiles.MetaDelete != 0 {
		return false, nil
	}
	v, err := s.value(key, c)
	if err != nil {
		return true, err
	}
	return true, fn(v)
}

// Iterate is as for a DB.
func (s *Salvage) Iterate(from, to []byte, fn func([]byte, func() ([]byte, error)) error) error {
	at, _ := slices.BinarySearch(s.keys, string(from))
	for ; at < len(s.keys) && s.keys[at] < string(to); at++ {
		key := []byte(s.keys[at])
		if err := fn(key, func() ([]byte, error) { return s.value(key, s.latest[string(key)]) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *Salvage) value(key []byte, c badgerfiles.Cell) ([]byte, error) {
	if c.Meta&badgerfiles.MetaPointer != 0 {
		v, err := s.valueLog(key, c.Value)
		if err != nil {
			return nil, err
		}
		c.Value = v
	}
	if c.UserMeta != metaApart {
		return c.Value, nil
	}
	p, err := readPlace(c.Value)
	if err != nil {
		return nil, err
	}
	w := window{blobs: s.blobs}
	return w.value(p)
}

// valueLog reads a value that lies in badger's value log: file, length and offset of
// its entry, 4 bytes each, little-endian.
func (s *Salvage) valueLog(key, pointer []byte) ([]byte, error) {
	if len(pointer) != 12 {
		return nil, fmt.Errorf("%w: place in the value log has %d bytes", ErrDamaged, len(pointer))
	}
	name := fmt.Sprintf("%06d.vlog", binary.LittleEndian.Uint32(pointer))
	length, at := binary.LittleEndian.Uint32(pointer[4:]), binary.LittleEndian.Uint32(pointer[8:])
	data, err := os.ReadFile(filepath.Join(s.path, name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if uint64(at)+uint64(length) > uint64(len(data)) {
		return nil, fmt.Errorf("%w: %s is too short", ErrDamaged, name)
	}
	c, n := badgerfiles.LogEntry(data[at:][:length])
	if n == 0 || string(c.Key) != string(key) {
		return nil, fmt.Errorf("%w: entry of %s: %w", ErrDamaged, name, wire.ErrChecksum)
	}
	return c.Value, nil
}
