// This file finds the keys whose values are missing.
//
// A key may point to a value that never reached the medium, or to one whose file was removed because
// a later transaction deleted or moved it. Only the latest version of a key counts.

package kv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-7440039f/frontier/spill/internal/badgerfiles"
)

// contents is what the store knows about values. Its functions may be nil.
type contents struct {
	whole func(key, value []byte) bool     // see Config.Whole
	needs func(key, value []byte) []string // see Config.Needs
}

// holes are the keys without a value, after some transactions.
type holes struct {
	contents
	dir      string
	values   window
	keys     map[string]bool
	suspects map[string]uint64 // keys of tables; highest version seen in the second look
}

// openHoles opens the values of a folder.
func openHoles(dir string, c contents) (*holes, error) {
	blobs, err := readBlobs(dir)
	if err != nil {
		return nil, err
	}
	return &holes{contents: c, dir: dir, values: window{blobs: blobs}, keys: map[string]bool{}, suspects: map[string]uint64{}}, nil
}

func (h *holes) close() { _ = h.values.blobs.close() } // they were only read

// apply notes what a transaction wrote. With thorough its values are read; others were on the medium
// once, so they are whole unless they are gone.
func (h *holes) apply(txn []badgerfiles.Cell, thorough bool) {
	for _, c := range txn {
		if h.has(c, thorough) {
			delete(h.keys, string(c.Key))
		} else {
			h.keys[string(c.Key)] = true
		}
	}
}

// suspect notes keys of tables that have a version without its value.
func (h *holes) suspect(c badgerfiles.Cell) {
	if !h.has(c, false) {
		h.suspects[string(c.Key)] = 0
	}
}

// settle looks at all versions of the suspects again, in any order.
func (h *holes) settle(c badgerfiles.Cell) {
	seen, ok := h.suspects[string(c.Key)]
	if !ok || c.Version < seen {
		return
	}
	// A value of the value log that was moved has the version of the old one.
	if has := h.has(c, false); has || c.Version > seen {
		h.apply([]badgerfiles.Cell{c}, false)
	}
	h.suspects[string(c.Key)] = c.Version
}

// has reports whether the value of a cell exists; with thorough, whether it is whole, too.
func (h *holes) has(c badgerfiles.Cell, thorough bool) bool {
	switch {
	case c.Meta&badgerfiles.MetaDelete != 0:
		return true
	case c.Meta&badgerfiles.MetaPointer != 0:
		return h.inValueLog(c)
	case c.UserMeta == metaApart:
		return h.inBlob(c, thorough)
	case h.needs == nil:
		return true
	}
	for _, name := range h.needs(c.Key, c.Value) {
		if _, err := os.Stat(filepath.Join(h.dir, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

func (h *holes) inBlob(c badgerfiles.Cell, thorough bool) bool {
	p, err := readPlace(c.Value)
	if err != nil {
		return false
	}
	if !thorough {
		f := h.values.blobs.files[p.file]
		return f != nil && int64(p.at)+int64(p.n) <= f.size.Load()
	}
	v, err := h.values.value(p)
	return err == nil && (h.whole == nil || h.whole(c.Key, v))
}

// inValueLog reports whether the value of a cell is in badger's value log. The cell holds the
// number of the file, the length of the entry, and its position.
func (h *holes) inValueLog(c badgerfiles.Cell) bool {
	if len(c.Value) != 12 {
		return false
	}
	id, n, at := binary.NativeEndian.Uint32(c.Value), binary.NativeEndian.Uint32(c.Value[4:]), binary.NativeEndian.Uint32(c.Value[8:])
	f, err := os.Open(filepath.Join(h.dir, valueLogName(int(id))))
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || int64(at)+int64(n) > info.Size() {
		return false
	}
	b := make([]byte, n)
	if _, err := f.ReadAt(b, int64(at)); err != nil {
		return false
	}
	e, length := badgerfiles.LogEntry(b)
	return length == len(b) && bytes.Equal(e.Key, c.Key) && e.Version == c.Version
}
