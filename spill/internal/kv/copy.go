// This file copies a DB, as it was at one moment, into a folder that OpenBadger opens.
//
// Files that are no longer written are hard-linked, where the volume supports it: they are never
// changed, only removed. Badger's own files change while they are read, so their contents are
// copied instead: keys, small values and places.

package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
)

// Copier is a Snapshot that CopyTo makes a folder of.
type Copier interface {
	// CopyTo fills an empty folder with all of the snapshot's keys, and the named files. number is what
	// the copy records as confirmed. The copy need not survive a loss of power when CopyTo returns.
	CopyTo(ctx context.Context, dir string, number uint64, files []string) error
}

const (
	copyBytes = 64 << 10 // of keys and values in one transaction
	copyTable = 1 << 20  // of the copy's tables while it is made
)

// CopyTo is for the store.
func (s *badgerSnapshot) CopyTo(ctx context.Context, dir string, number uint64, files []string) error {
	c := &copying{ctx: ctx, from: s, named: map[uint32]bool{}}
	var err error
	config := Config{Reserve: int64(s.db.reserve), Logger: s.db.log, sizes: s.db.sizes, table: copyTable}
	if c.to, err = OpenBadger(dir, config); err != nil {
		return err
	}
	err = c.all(files)
	if err == nil {
		c.to.confirmed.safe = true // by the time that anybody reads it
		c.to.Confirm(number)
	}
	return errors.Join(err, c.to.Close())
}

// copying is one CopyTo.
type copying struct {
	ctx   context.Context
	from  *badgerSnapshot
	to    *Badger
	named map[uint32]bool // blobs already in the copy
	txn   *badger.Txn
	items int // in txn
	bytes int // of them
}

func (c *copying) all(files []string) error {
	if err := c.to.space(0); err != nil {
		return err
	}
	for _, name := range files {
		if err := c.file(c.from.db.file(name), name, -1); err != nil {
			return err
		}
	}
	c.txn = c.to.db.NewTransaction(true)
	defer func() { c.txn.Discard() }()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	it := c.from.txn.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := c.item(it.Item()); err != nil {
			return err
		}
	}
	return c.flush()
}

// item copies one key, with the file that it points to.
func (c *copying) item(item *badger.Item) error {
	value, err := item.ValueCopy(nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if item.UserMeta() == metaApart {
		p, err := readPlace(value)
		if err == nil {
			err = c.blob(p.file)
		}
		if err != nil {
			return err
		}
	}
	n := len(item.Key()) + len(value)
	if c.bytes > 0 && c.bytes+n > copyBytes {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.items, c.bytes = c.items+1, c.bytes+n
	entry := badger.NewEntry(item.KeyCopy(nil), value).WithMeta(item.UserMeta())
	if err = c.txn.SetEntry(entry); errors.Is(err, badger.ErrTxnTooBig) { // many small ones
		if err = c.flush(); err == nil {
			c.items, c.bytes = 1, n
			err = c.txn.SetEntry(entry)
		}
	}
	return err
}

// flush writes the collected keys.
func (c *copying) flush() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if err := c.to.space(int64(c.bytes)); err != nil {
		return err
	}
	c.to.turn.Lock()
	err := c.to.apply(c.txn, c.items, int64(c.bytes))
	c.to.turn.Unlock()
	if err != nil {
		return err
	}
	c.to.version.Store(c.txn.ReadTs() + 1)
	c.txn, c.items, c.bytes = c.to.db.NewTransaction(true), 0, 0
	return nil
}

// blob adds a file of values to the copy. A file that is still being written is copied, because a
// link would grow with it.
func (c *copying) blob(id uint32) error {
	if c.named[id] {
		return nil
	}
	f := c.from.blobs.hold(id)
	if f == nil {
		return errNoBlob(id)
	}
	defer f.use.RUnlock()
	c.named[id] = true
	d := c.from.db
	d.turn.Lock()
	filling, size := d.blobs.filling[f.life] == f, f.size.Load()
	d.turn.Unlock()
	if !filling {
		size = -1
	}
	return c.file(f.file.Name(), blobFolder+"/"+filepath.Base(f.file.Name()), size)
}

// file adds a file to the copy: a link if size is negative, for a file that does not change;
// otherwise the first size bytes.
func (c *copying) file(from, name string, size int64) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	to := c.to.file(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if size < 0 {
		if real, err := filepath.EvalSymlinks(from); err == nil && os.Link(real, to) == nil {
			return nil
		}
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	if size < 0 {
		info, err := src.Stat()
		if err != nil {
			return err
		}
		size = info.Size()
	}
	dst, err := c.to.CreateFile(name, size)
	if err != nil {
		return err
	}
	_, err = io.CopyN(&offsetWriter{c.ctx, dst, 0}, src, size)
	return errors.Join(err, dst.Close())
}

// offsetWriter writes a file from its beginning, until its context ends.
type offsetWriter struct {
	ctx context.Context
	to  FileWriter
	at  int64
}

func (w *offsetWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.to.WriteAt(p, w.at)
	w.at += int64(n)
	return n, err
}
