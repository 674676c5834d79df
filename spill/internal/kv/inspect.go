// This file looks for damage in a folder before badger opens it: badger cuts off damaged logs,
// skips damaged tables, and removes what a damaged manifest does not list. This file changes
// nothing. It finds the torn ends of logs after a loss of power, which tail.go cuts off.

package kv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
)

// DamageError reports a damaged file.
type DamageError struct {
	File string // its name in the folder
	Err  error
}

// Error implements error.
func (e *DamageError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *DamageError) Unwrap() []error { return []error{e.Err, ErrDamaged} }

var (
	errHead    = errors.New("head is malformed")
	errUnnamed = errors.New("a table is not named, and nothing else has what it holds")
	errInLog   = errors.New("there is damage before the end of the log")
	errMissing = errors.New("the manifest names it, and it is missing")
)

// inspector is the state of an inspection of a folder.
type inspector struct {
	dir       string
	names     []string
	confirmed uint64 // no version up to this may be missing
	lost      bool   // power may have been lost since: later data may be torn
	contents  contents
	holes     *holes // if lost
	named     map[uint64]badger.TableManifest
	merged    map[uint64]bool // the manifest listed them before
	last      uint64          // version in the tables that are named
	logs      []walState
	tail      tail // of no use
}

// walState is the content of a log of keys.
type walState struct {
	name        string
	first, last uint64 // version of complete transactions
	garbage     []byte // what follows them
}

// inspect returns a *DamageError if a folder is damaged. before is what must exist. It returns the
// remains of a loss of power after the latest state that is whole.
func inspect(dir string, before noted, c contents) (tail, error) {
	x := inspector{dir: dir, confirmed: before.known().version, lost: before.lost, contents: c}
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return tail{}, err
	}
	for _, e := range entries {
		x.names = append(x.names, e.Name())
	}
	if !slices.Contains(x.names, badger.ManifestFilename) {
		return tail{}, nil // it is new
	}
	if x.lost {
		if x.holes, err = openHoles(dir, c); err != nil {
			return tail{}, err
		}
		defer x.holes.close()
	}
	steps := []func() error{x.keys, x.manifest, x.tables, x.valueLogs, x.keyLogs, x.unnamed}
	for i, step := range steps {
		if err := step(); err != nil {
			return tail{}, err
		}
		if i == 1 && x.format() != inspected {
			return tail{}, errFormat
		}
	}
	return x.tail, nil
}

// inspected is the format of badger's files that can be inspected. Tables and logs of another
// format are left to badger.
var inspected = uint16(badgerfiles.Format)

var errFormat = errors.New("the engine's files have a format that is not inspected")

// format returns the format of badger's files, or 0 if the manifest cannot be read.
func (x *inspector) format() uint16 {
	b, err := x.read(badger.ManifestFilename)
	if err != nil {
		return 0
	}
	return badgerfiles.FormatOf(b)
}

func (x *inspector) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(x.dir, name)) }

func (x *inspector) with(ext string) (names []string) {
	for _, n := range x.names {
		if filepath.Ext(n) == ext {
			names = append(names, n)
		}
	}
	return names
}

// keys checks the registry of encryption keys, which must be empty.
func (x *inspector) keys() error {
	const name, vector, text = badger.KeyRegistryFileName, 16, "Hello Badger"
	if !slices.Contains(x.names, name) {
		return nil // badger makes it
	}
	b, err := x.read(name)
	if err != nil {
		return err
	}
	if len(b) != vector+len(text) || string(b[vector:]) != text {
		return &DamageError{name, errHead}
	}
	return nil
}

func (x *inspector) manifest() error {
	f, err := os.Open(filepath.Join(x.dir, badger.ManifestFilename))
	if err != nil {
		return err
	}
	defer f.Close()
	m, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(x.dir).WithLogger(nil))
	if err != nil {
		return &DamageError{badger.ManifestFilename, err}
	}
	x.named = m.Tables
	b, err := x.read(badger.ManifestFilename)
	x.merged = badgerfiles.MergedTables(b)
	return err
}

func tableName(id uint64) string { return fmt.Sprintf("%06d.sst", id) }

// tables verifies the tables listed in the manifest.
func (x *inspector) tables() error {
	for id, t := range x.named {
		if t.KeyID != 0 || t.Compression != 0 {
			continue // not of the store: badger will report it
		}
		last, err := x.table(tableName(id), x.suspect)
		if err != nil {
			return err
		}
		x.last = max(x.last, last)
	}
	if x.holes == nil || len(x.holes.suspects) == 0 {
		return nil
	}
	for id := range x.named {
		if _, err := x.table(tableName(id), x.holes.settle); err != nil {
			return err
		}
	}
	return nil
}

func (x *inspector) suspect(c badgerfiles.Cell) {
	if x.holes != nil {
		x.holes.suspect(c)
	}
}

// table verifies a table, and calls fn with its entries.
func (x *inspector) table(name string, fn func(badgerfiles.Cell)) (last uint64, err error) {
	data, err := x.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, &DamageError{name, errMissing}
	}
	if err != nil {
		return 0, err
	}
	blocks, last, err := badgerfiles.TableBlocks(data)
	for i, b := range blocks {
		if err == nil {
			if err = badgerfiles.BlockCells(b, fn); err != nil {
				err = fmt.Errorf("block %d: %w", i, err)
			}
		}
	}
	if err != nil {
		return 0, &DamageError{name, err}
	}
	return last, nil
}

// keyLogs looks for damage in the logs of keys. The last transaction of the last log may be torn:
// it was never confirmed.
func (x *inspector) keyLogs() error {
	names := x.with(keyLogSuffix)
	sortKeyLogs(names)
	if x.lost {
		return x.tornLogs(names)
	}
	for i, name := range names {
		data, err := x.read(name)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			continue // about to be made
		}
		if len(data) < badgerfiles.LogHead || !allZero(data[:8]) {
			return &DamageError{name, errHead}
		}
		w := walState{name: name}
		end := badgerfiles.LogCells(data, badgerfiles.LogHead, func(c badgerfiles.Cell) {
			w.first = cmp.Or(w.first, c.Version)
			w.last = max(w.last, c.Version)
		})
		w.garbage = data[end:]
		x.logs = append(x.logs, w)
		if allZero(w.garbage) {
			continue
		}
		if i < len(names)-1 && !x.emptyFrom(names[i+1:]) || x.goesOn(w.garbage) {
			return &DamageError{name, errInLog}
		}
	}
	known := x.last
	for _, w := range x.logs {
		known = max(known, w.last)
	}
	for _, w := range x.logs {
		if known < x.confirmed && !allZero(w.garbage) {
			return &DamageError{w.name, errInLog}
		}
	}
	return nil
}

// emptyFrom reports whether nothing was written to logs.
func (x *inspector) emptyFrom(names []string) bool {
	for _, name := range names {
		if data, err := x.read(name); err != nil || len(data) > badgerfiles.LogHead && !allZero(data[badgerfiles.LogHead:]) {
			return false
		}
	}
	return true
}

// goesOn reports whether more than one transaction follows damage.
func (x *inspector) goesOn(data []byte) bool {
	first := uint64(0)
	for at := badgerfiles.NextLogEntry(data, 0, metaApart); at >= 0; {
		c, n := badgerfiles.LogEntry(data[at:])
		first = cmp.Or(first, c.Version)
		if c.Version != first {
			return true
		}
		at = badgerfiles.NextLogEntry(data, at+n, metaApart)
	}
	return false
}

// valueLogs checks the headers of the value logs: their contents are verified when they are read.
// The end of the last one may be torn.
func (x *inspector) valueLogs() error {
	for _, name := range x.with(valueLogSuffix) {
		data, err := x.read(name)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			continue
		}
		if len(data) < badgerfiles.LogHead || !allZero(data[:8]) {
			return &DamageError{name, errHead}
		}
		rest := data[badgerfiles.LogCells(data, badgerfiles.LogHead, func(badgerfiles.Cell) {}):]
		if !allZero(rest) && x.goesOn(rest) {
			return &DamageError{name, errInLog}
		}
	}
	return nil
}

// unnamed looks for tables that are missing from the manifest. A crash leaves tables that were about to
// be listed, whose contents are also in a log or in other tables. It also leaves tables that were about
// to be removed; their contents are elsewhere, too, except for the latest deletions.
func (x *inspector) unnamed() error {
	for _, name := range x.with(".sst") {
		id, err := strconv.ParseUint(strings.TrimSuffix(name, ".sst"), 10, 64)
		if err != nil {
			continue
		}
		if _, ok := x.named[id]; ok || x.merged[id] {
			continue
		}
		last, err := x.table(name, func(badgerfiles.Cell) {})
		if err != nil || last <= x.last || x.lost && last > x.confirmed {
			continue
		}
		inLog := slices.ContainsFunc(x.logs, func(w walState) bool { return w.first <= last && last <= w.last })
		if !inLog {
			return &DamageError{badger.ManifestFilename, fmt.Errorf("%w: %s", errUnnamed, name)}
		}
	}
	return nil
}

// hintsAreGood reports whether a file of hints, which badger trusts, has badger's format: pairs of
// the number of a value log and how much of it is obsolete, up to the first zero. With the number
// of a missing log, badger would search for it forever.
func hintsAreGood(dir string) bool {
	const least, pair = 1 << 20, 16
	b, err := os.ReadFile(filepath.Join(dir, hintsName))
	if err != nil || len(b) == 0 {
		return true // badger makes it
	}
	if len(b) < least {
		return false
	}
	for ; len(b) >= pair; b = b[pair:] {
		id, bytes := binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])
		if id == 0 {
			return allZero(b[:pair])
		}
		if id > math.MaxUint32 || bytes > math.MaxInt64 {
			return false
		}
	}
	return false
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }
