// This file moves the live values of a sparse file to another one.
//
// The file is read from its beginning: a value is live if its key still points to it. Writers are
// delayed only while the keys are updated.

package kv

import (
	"encoding/binary"
	"errors"
	"io"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// found is an entry of a file that is being evacuated.
type found struct {
	key []byte
	old place
	at  int64 // of the value in the bytes to be moved
}

// move holds values on their way to another file.
type move struct {
	found []found
	buf   []byte
}

// evacuate moves the live values of f to another file.
func (d *Badger) evacuate(f *blob, pause func() bool) error {
	var m move
	s := scanner{f: f}
	for more := true; more; {
		var err error
		if more, err = d.search(&s, &m); err != nil {
			return err
		}
		if !more || d.full(&m) {
			if err := d.moveOn(f, &m); err != nil {
				return err
			}
		}
		if !pause() {
			return errPaused
		}
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.counted && f.live > 0 { // a part cannot be read: evidence is not removed
		f.stuck = true
		d.log.Warn("kv: not all values of a file are found", "file", filepath.Base(f.file.Name()), "bytes", f.live)
	}
	return nil
}

func (d *Badger) full(m *move) bool {
	return int64(len(m.buf)) >= d.sizes.move || len(m.found) >= moveKeys
}

// search reads the next entries until some are live. It returns false at the end of the file, or of
// its readable part.
func (d *Badger) search(s *scanner, m *move) (more bool, err error) {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	for end := s.next + d.sizes.scan; s.next < end && !d.full(m); {
		key, value, p, err := s.entry()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrDamaged) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		now, ok, err := placeOf(txn, key)
		if err != nil {
			return false, err
		}
		if ok && now == p {
			m.buf = appendEntry(m.buf, key, value)
			m.found = append(m.found, found{append([]byte(nil), key...), p, int64(len(m.buf) - len(value))})
		}
	}
	return true, nil
}

// moveOn writes the collected values, and updates the keys that still point to the old place.
func (d *Badger) moveOn(from *blob, m *move) error {
	if len(m.found) == 0 {
		return nil
	}
	to, base, err := d.copyOut(m.buf)
	if err != nil {
		return err
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	txn := d.db.NewTransaction(true)
	defer txn.Discard()
	var bytes, keys int64
	for _, e := range m.found {
		now, ok, err := placeOf(txn, e.key)
		if err != nil {
			return err
		}
		if !ok || now != e.old {
			continue
		}
		p := place{to.id, uint32(base + e.at), e.old.n}
		if err := txn.SetEntry(badger.NewEntry(e.key, p.bytes()).WithMeta(metaApart)); err != nil {
			return err
		}
		bytes += entryLen(len(e.key), int(p.n))
		keys += int64(len(e.key) + placeLen)
	}
	if err := d.apply(txn, len(m.found), keys); err != nil {
		d.uncounted()
		return err
	}
	d.blobs.synced(to)
	to.live += bytes
	from.live -= bytes
	m.found, m.buf = m.found[:0], m.buf[:0]
	return nil
}

// copyOut appends entries to the file of moved values, and syncs it.
func (d *Badger) copyOut(entries []byte) (*blob, int64, error) {
	d.turn.Lock()
	f, at, err := d.blobs.append(moved, entries)
	d.turn.Unlock()
	if err != nil {
		return nil, 0, err
	}
	if err := d.blobs.flush(f.file); err != nil {
		d.turn.Lock()
		defer d.turn.Unlock()
		f.fault = err // the file is not written any more, and no key points to what was lost
		d.blobs.synced(f)
		return nil, 0, err
	}
	return f, at, nil
}

// scanner reads the entries of a file in order.
type scanner struct {
	f    *blob
	next int64 // where the next entry begins
	at   int64 // of buf in the file
	buf  []byte
}

// entry returns the next entry, valid until the next call. At the end of the file, or of the valid
// entries, it returns io.EOF.
func (s *scanner) entry() (key, value []byte, p place, err error) {
	head, err := s.bytes(2 * binary.MaxVarintLen32)
	if err != nil {
		return nil, nil, p, err
	}
	k, n := binary.Uvarint(head)
	v, m := binary.Uvarint(head[max(n, 0):])
	if n <= 0 || m <= 0 || k > maxBlobs || v > maxBlobs {
		return nil, nil, p, io.EOF
	}
	size := n + m + int(k+v)
	e, err := s.bytes(int64(size))
	if err == nil && len(e) < size {
		err = io.EOF
	}
	if err != nil {
		return nil, nil, p, err
	}
	s.next += int64(size)
	return e[n+m:][:k], e[size-int(v):], place{s.f.id, uint32(s.next - int64(v)), uint32(v)}, nil
}

// bytes returns the next n bytes, or fewer at the end of the file; io.EOF if there are none.
func (s *scanner) bytes(n int64) ([]byte, error) {
	left := s.f.size.Load() - s.next
	if n = min(n, left); n <= 0 {
		return nil, io.EOF
	}
	if s.next < s.at || s.next+n > s.at+int64(len(s.buf)) {
		var err error
		if s.buf, err = s.f.read(s.buf, s.next, max(n, min(windowLen, left))); err != nil {
			return nil, err
		}
		s.at = s.next
	}
	return s.buf[s.next-s.at:][:n], nil
}
