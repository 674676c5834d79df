// This file makes copies of a partition's store and cuts the log behind them.
//
// A copy is a folder that never changes: a store as it was at one moment, and a list of its files with
// their hashes. The owner makes one when the log has grown, all nodes fetch it, and when every node that
// is alive has it, and one besides the owner at least, the log before it goes.

package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

const (
	copiesFolder = "copies"
	storeFolder  = "store"     // in the folder of a copy
	listName     = "copy.json" // beside it
	keptCopies   = 2           // of each partition
	lookAtLog    = time.Second
)

// copyList is what the folder of a copy says about it.
type copyList struct {
	copyRow
	Fleet     string   `json:"fleet"`
	Partition int      `json:"partition"`
	Files     []listed `json:"files"`
}

type listed struct {
	Path string `json:"path"` // in the store, with slashes
	Size int64  `json:"size"`
	Hash string `json:"sha256"`
}

// tidyCopies removes what is left of copies that were never complete.
func tidyCopies(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if _, partial := durablefs.Partial(e.Name()); partial {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// copyOften makes copies until ctx ends.
func (n *Node) copyOften(ctx context.Context, l *logged) {
	for pause(ctx, lookAtLog) {
		if size, _, _ := l.grown(); size >= n.o.CopyAfter {
			if err := n.copy(ctx, l); err != nil && ctx.Err() == nil {
				n.log.Error("fleet: no copy", "partition", l.partition, "error", err)
				pause(ctx, time.Minute)
			}
		}
		if err := n.cutLog(ctx, l.partition); err != nil && ctx.Err() == nil {
			n.log.Warn("fleet: the log was not cut", "partition", l.partition, "error", err)
		}
	}
}

// copy makes one, and announces it to the others.
func (n *Node) copy(ctx context.Context, l *logged) error {
	size, last, change := l.grown()
	list := copyList{copyRow: copyRow{Name: fmt.Sprintf("%d-%d-%d", l.partition, l.epoch, change), Change: change, Last: last}, Fleet: n.id, Partition: l.partition}
	before := n.copies(l.partition)
	err := durablefs.MakeFolder(ctx, filepath.Join(n.o.Dir, copiesFolder, list.Name), func(dir string) error {
		if err := l.store.CopyTo(ctx, filepath.Join(dir, storeFolder)); err != nil {
			return err
		}
		return list.write(ctx, dir, n.hashed(before))
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.size -= size
	l.mu.Unlock()
	n.dropCopies(l.partition)
	return n.state(ctx, fmt.Sprint(copyKey, l.partition), list.copyRow)
}

// state stores an entry about a copy, unless it is about a later one already.
func (n *Node) state(ctx context.Context, key string, row copyRow) error {
	value, err := json.Marshal(row)
	for err == nil {
		var e Entry
		var now copyRow
		if e, err = n.o.Engine.Get(ctx, key); err == nil && e.Revision != 0 {
			err = json.Unmarshal(e.Value, &now)
		}
		if err != nil || now.Change > row.Change {
			return err
		}
		if _, err = n.o.Engine.Put(ctx, key, value, e.Revision); err == nil {
			return nil
		}
		if errors.Is(err, ErrConflict) {
			err = nil
		}
	}
	return err
}

// hashedFile identifies a file that never changes, whatever its names.
type hashedFile struct {
	info fs.FileInfo
	hash string
}

// hashed returns the files of copies, so that those which new copies share are not read again.
func (n *Node) hashed(copies []copyList) (all []hashedFile) {
	for _, c := range copies {
		for _, f := range c.Files {
			if info, err := os.Stat(n.fileOf(c.Name, f.Path)); err == nil {
				all = append(all, hashedFile{info, f.Hash})
			}
		}
	}
	return all
}

func (n *Node) fileOf(copy, path string) string {
	return filepath.Join(n.o.Dir, copiesFolder, copy, storeFolder, filepath.FromSlash(path))
}

// write lists the files of the store in dir.
func (c *copyList) write(ctx context.Context, dir string, known []hashedFile) error {
	root := filepath.Join(dir, storeFolder)
	bySize := map[int64][]hashedFile{}
	for _, f := range known {
		bySize[f.info.Size()] = append(bySize[f.info.Size()], f)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := listed{Path: filepath.ToSlash(name), Size: info.Size()}
		if at := slices.IndexFunc(bySize[f.Size], func(x hashedFile) bool { return os.SameFile(x.info, info) }); at >= 0 {
			f.Hash = bySize[f.Size][at].hash
		} else if f.Hash, err = hashOf(path); err != nil {
			return err
		}
		c.Files = append(c.Files, f)
		return nil
	})
	if err != nil {
		return err
	}
	return durablefs.WriteFile(filepath.Join(dir, listName), 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(c) })
}

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copies returns the copies of a partition that this node has, the newest first.
func (n *Node) copies(partition int) (all []copyList) {
	entries, _ := os.ReadDir(filepath.Join(n.o.Dir, copiesFolder))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), fmt.Sprint(partition, "-")) {
			continue
		}
		if c, err := n.readList(e.Name()); err == nil && c.Fleet == n.id {
			all = append(all, c)
		} else if err != nil {
			n.log.Error("fleet: a copy cannot be read", "copy", e.Name(), "error", err)
		}
	}
	slices.SortFunc(all, func(a, b copyList) int { return cmp.Compare(b.Change, a.Change) })
	return all
}

func (n *Node) readList(name string) (c copyList, err error) {
	b, err := os.ReadFile(filepath.Join(n.o.Dir, copiesFolder, name, listName))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

// dropCopies removes all copies but the newest.
func (n *Node) dropCopies(partition int) {
	all := n.copies(partition)
	for _, c := range all[min(keptCopies, len(all)):] {
		if err := durablefs.RemoveFolder(filepath.Join(n.o.Dir, copiesFolder, c.Name)); err != nil {
			n.log.Error("fleet: an old copy was not removed", "copy", c.Name, "error", err)
		}
	}
}

// cutLog removes the log before the newest copy that enough nodes have.
func (n *Node) cutLog(ctx context.Context, partition int) error {
	var row copyRow
	e, ok := get(n.view, fmt.Sprint(copyKey, partition), &row)
	n.mu.Lock()
	done := n.cut[partition]
	n.mu.Unlock()
	if !ok || e.Revision == done {
		return nil
	}
	others := 0
	for _, m := range n.view.members() {
		var has copyRow
		switch _, ok := get(n.view, haveOf(partition, m.Node), &has); {
		case m.Node == n.o.Node:
		case !ok || has.Change < row.Change:
			return nil
		default:
			others++
		}
	}
	if others == 0 {
		return nil
	}
	if err := n.o.Engine.Purge(ctx, partition, row.Last); err != nil {
		return err
	}
	n.mu.Lock()
	n.cut[partition] = e.Revision
	n.mu.Unlock()
	return nil
}

func haveOf(partition int, node string) string { return fmt.Sprint(haveKey, partition, "/", node) }
