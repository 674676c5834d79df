// This file makes a partition's store from a copy and the log behind it.
//
// A store that this node had before is never used again: others may have owned the partition since,
// and their changes name blocks of theirs.

package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
)

// restore opens the store of a partition whose log is fenced. It returns the leases that the owner before
// left if it ended in order, and nil otherwise.
func (n *Node) restore(ctx context.Context, l *logged) (leases []byte, err error) {
	base, folder, least, err := n.bestCopy(ctx, l.partition)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(n.o.Dir, fmt.Sprint("partition-", l.partition))
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if folder != "" {
		if err := cloneStore(folder, dir); err != nil {
			return nil, err
		}
	}
	if l.store, err = n.o.open(dir, n.o.Store); err != nil {
		return nil, err
	}
	l.change = base.Change
	if leases, err = n.replay(ctx, l, base); err == nil && l.change < least {
		err = fmt.Errorf("what is here goes to change %d, and the newest copy, which no node that is alive has, to change %d", l.change, least)
	}
	if err != nil {
		return nil, errors.Join(err, l.store.Close())
	}
	return leases, nil
}

// replay commits to a store what the log has behind a copy.
func (n *Node) replay(ctx context.Context, l *logged, base copyRow) (leases []byte, err error) {
	var at end
	if err := l.store.Recover(ctx, &at); err != nil {
		return nil, err
	}
	value, found, err := l.store.Row(positionKey)
	if err == nil && found {
		change, size := binary.Uvarint(value)
		if size <= 0 {
			err = fmt.Errorf("row %s is malformed", positionKey)
		}
		l.change = max(l.change, change)
	}
	var pieces assembler
	var b storage.Batch
	apply := func(number uint64, data []byte) error {
		c, whole, err := pieces.add(number, data)
		switch {
		case err != nil || !whole || c.kind == kindFence || c.number <= l.change:
			return err
		case c.number != l.change+1:
			return fmt.Errorf("the log goes on with change %d after %d: it was cut for a newer copy", c.number, l.change)
		}
		l.change, leases = c.number, nil
		l.size += int64(len(c.data))
		if c.kind == kindRelease {
			leases = append([]byte{}, c.data...)
			return nil
		}
		if err := spill.ReadBatch(&b, c.data); err != nil {
			return err
		}
		at.last++
		b.ID = at.last
		return l.store.Commit(positioned(&b, c.number))
	}
	if err == nil {
		err = n.o.Engine.Read(ctx, l.partition, base.Last, l.last, apply)
	}
	return leases, errors.Join(err, l.store.Release())
}

// end is a storage.Recovery that only notes the number of the last batch.
type end struct{ last uint64 }

func (e *end) Begin(func(string) ([]byte, bool, error)) error { return nil }
func (e *end) Marks(int64) error                              { return nil }
func (e *end) Dead(uint32, []byte) error                      { return nil }
func (e *end) Part(storage.Queue, storage.Part) error         { return nil }
func (e *end) Timed(storage.TimedBlock) error                 { return nil }
func (e *end) Row(string, []byte) error                       { return nil }
func (e *end) Batch(b *storage.Batch) error {
	e.last = b.ID
	return nil
}

// cloneStore makes a store of a copy that stays as it is. Files of blocks and known URLs never change,
// so the clone shares them.
func cloneStore(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(at, 0o777)
		}
		if first, _, ok := strings.Cut(filepath.ToSlash(name), "/"); ok && (first == "blobs" || first == "marks") && os.Link(path, at) == nil {
			return nil
		}
		return durablefs.CopyFile(path, at)
	})
}
