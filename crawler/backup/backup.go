// Package backup makes copies of a running crawl: of its frontier, and of the data of its modules.
//
//	k, err := backup.New(backup.Options{Dir: "backups", Parts: []backup.Part{
//		{Name: "frontier", Copy: store.CopyTo}, // first: see Options.Parts
//		{Name: "seen", Copy: index.CopyTo},
//	}, Every: time.Hour})
//	go k.Run(ctx, nil)
//
// Each checkpoint is a folder, checkpoint-20260102T150405.000Z, named by the UTC time of its start,
// with an entry for each part. It gets this name only when it is complete and survives a loss of
// power. Before, it is called .NAME.partial-NUMBER; the next New removes what a crash left of it.
//
// To restore a checkpoint, copy it (cp -a) and open its parts there, as the crawl opened the
// originals. The copies share files with the crawl's folders if they are on the same volume;
// neither changes what the other reads.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Part is a component of a crawl that can be copied while it is in use.
type Part struct {
	// Name is the name of the part in the folder of a checkpoint.
	Name string
	// Copy writes the current state of the part to a file or folder at path, which does not exist.
	// Use spill.Store.CopyTo, neardup.Index.CopyTo, processing.Statistics.CopyTo or
	// incremental.Revisits.CopyTo. WARC files need no copy: they only grow.
	Copy func(ctx context.Context, path string) error
}

// Options configure a Keeper.
type Options struct {
	// Dir is the folder for checkpoints; it is created if necessary. It must not be the folder of a
	// part, or of another Keeper.
	Dir string
	// Keep is the number of complete checkpoints to keep; older ones are removed once a new one is
	// complete. Zero means 3.
	Keep int
	// Parts are copied one after the other, in order. Put the frontier first: then the copies of
	// the other parts include everything that they recorded for pages that the frontier has as
	// done. After a restore, pages that were done since the checkpoint are fetched again.
	Parts []Part
	// Every is the interval of Run, from the end of a checkpoint to the next. Zero means that Run
	// makes them on demand only.
	Every time.Duration
	// Now returns the time for names. Nil means time.Now.
	Now func() time.Time
	// Logger receives each checkpoint and each failure. Nil discards them.
	Logger *slog.Logger
}

// Keeper makes checkpoints. It is safe for concurrent use.
type Keeper struct {
	opts Options

	mu   sync.Mutex // one checkpoint at a time
	last time.Time  // guarded by mu; in the newest name
}

const stamp = "20060102T150405.000Z"

var nameOf = regexp.MustCompile(`^checkpoint-\d{8}T\d{6}\.\d{3}Z$`)

// New returns a Keeper, and removes incomplete checkpoints that a crash left.
func New(o Options) (*Keeper, error) {
	if err := errors.Join(unit.CheckAll("", o)...); err != nil {
		return nil, fmt.Errorf("backup: options: %w", err)
	}
	o.Keep = cmp.Or(o.Keep, 3)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("backup: options: %w", err)
	}
	k := &Keeper{opts: o}
	if err := k.begin(); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return k, nil
}

func (o Options) validate() error { // runs after the defaults; reports every fault at once
	var wrong faults.List
	wrong.If(o.Dir == "", "Dir is empty")
	wrong.If(o.Keep < 1, "Keep is %d; want >= 1", o.Keep)
	wrong.If(len(o.Parts) == 0, "there are no Parts")
	seen := map[string]bool{}
	for _, p := range o.Parts {
		wrong.If(!fs.ValidPath(p.Name) || filepath.Base(p.Name) != p.Name || p.Name[0] == '.', "a part's name is %q; want that of a file", p.Name)
		wrong.If(seen[p.Name], "two parts are called %q", p.Name)
		seen[p.Name] = true
	}
	return errors.Join(wrong...)
}

// begin sees to the folder.
func (k *Keeper) begin() error {
	if err := os.MkdirAll(k.opts.Dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(k.opts.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if whole, ok := durablefs.Partial(e.Name()); ok && nameOf.MatchString(whole) {
			if err := os.RemoveAll(filepath.Join(k.opts.Dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// List returns the paths of the complete checkpoints in a folder, the newest last.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // in order of names
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	var all []string
	for _, e := range entries {
		if nameOf.MatchString(e.Name()) && e.IsDir() {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, nil
}

// Take makes a checkpoint and returns its path. After an error nothing of it is left, and older
// checkpoints stay; the error wraps the failed part's error, for instance syscall.ENOSPC. If the
// checkpoint is complete but an older one cannot be removed, Take returns both the path and an error.
func (k *Keeper) Take(ctx context.Context) (path string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	path, err = k.name()
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	err = durablefs.MakeFolder(ctx, path, func(dir string) error {
		for _, p := range k.opts.Parts {
			if err := p.Copy(ctx, filepath.Join(dir, p.Name)); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	if err := k.prune(); err != nil {
		return path, fmt.Errorf("backup: remove an old one: %w", err)
	}
	return path, nil
}

// name returns the name of the next checkpoint. It is later than all existing ones, even if the
// clock was set back.
func (k *Keeper) name() (string, error) {
	all, err := List(k.opts.Dir)
	if err != nil {
		return "", err
	}
	if len(all) > 0 {
		newest := filepath.Base(all[len(all)-1])
		if t, err := time.Parse("checkpoint-"+stamp, newest); err == nil && t.After(k.last) {
			k.last = t
		}
	}
	now := k.opts.Now().UTC().Truncate(time.Millisecond)
	if !now.After(k.last) {
		now = k.last.Add(time.Millisecond)
	}
	k.last = now
	return filepath.Join(k.opts.Dir, "checkpoint-"+now.Format(stamp)), nil
}

func (k *Keeper) prune() error {
	all, err := List(k.opts.Dir)
	if err != nil {
		return err
	}
	var errs []error
	for ; len(all) > k.opts.Keep; all = all[1:] {
		errs = append(errs, durablefs.RemoveFolder(all[0]))
	}
	return errors.Join(errs...)
}

// Run makes checkpoints until ctx ends: at the interval Every, and for each value from demand, which
// may be nil. Failures are logged, and the crawl continues.
func (k *Keeper) Run(ctx context.Context, demand <-chan struct{}) {
	for {
		var due <-chan time.Time
		if k.opts.Every > 0 {
			due = time.After(k.opts.Every)
		}
		var ok bool
		select {
		case <-ctx.Done():
		case <-due:
			ok = true
		case _, ok = <-demand:
			if !ok {
				demand = nil
			}
		}
		if ctx.Err() != nil {
			return
		}
		if ok {
			k.takeAndTell(ctx)
		}
	}
}

func (k *Keeper) takeAndTell(ctx context.Context) {
	began := time.Now()
	path, err := k.Take(ctx)
	switch {
	case path != "":
		k.opts.Logger.Info("checkpoint", "path", path, "took", time.Since(began).Round(time.Millisecond))
	case ctx.Err() != nil:
		return // the crawl ends
	}
	if err != nil {
		k.opts.Logger.Warn("the crawl continues without a new checkpoint, or with too many", "error", err)
	}
}
