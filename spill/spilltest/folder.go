// This file gives tests stores in real folders whose tables and files are full after a few writes.

package spilltest

import (
	"bytes"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
)

// OpenFolder is spill.Open with an engine whose tables and files fill up soon. It also fills one
// more table before and after each write, so that every write is in a separate table, and a write
// to the next table comes before its confirmation. Background work is done inside Checkpoint.
func OpenFolder(dir string, o spill.Options) (*spill.Store, error) {
	c := spill.EngineConfig(o)
	c.Small = true
	db, err := kv.OpenBadger(dir, c)
	if err != nil {
		return nil, err
	}
	return spill.OpenOn(&rotating{DB: db}, o)
}

// OpenSmall is OpenFolder without the additional writes: tables and files fill up after some
// writes, but not after each.
func OpenSmall(dir string, o spill.Options) (*spill.Store, error) {
	c := spill.EngineConfig(o)
	c.Small = true
	db, err := kv.OpenBadger(dir, c)
	if err != nil {
		return nil, err
	}
	return spill.OpenOn(db, o)
}

// rotating is a DB that fills a table before and after each write.
type rotating struct {
	kv.DB
	begun bool // a store may not find foreign keys before it has written some
}

// fillerKey is not a key of a store, and sorts after all of them.
const fillerKey = "\xff\xff\xff\xff\xfffiller"

// Write is called by the store.
func (r *rotating) Write(b *kv.Batch, sync bool) error {
	if err := r.fill(); err != nil {
		return err
	}
	if err := r.DB.Write(b, sync); err != nil {
		return err
	}
	r.begun = true
	return r.fill()
}

// fill writes as much as a table of a small engine can hold.
func (r *rotating) fill() error {
	if !r.begun {
		return nil
	}
	for range 10 {
		var b kv.Batch
		b.Set([]byte(fillerKey), bytes.Repeat([]byte{'f'}, 1900))
		b.Set([]byte(fillerKey+"2"), bytes.Repeat([]byte{'f'}, 1900))
		if err := r.DB.Write(&b, false); err != nil {
			return err
		}
	}
	return nil
}
