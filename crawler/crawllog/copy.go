// This file copies a log that is in use.

package crawllog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CopyTo copies the log as it is now into a folder, which is made if there is none, for
// package backup. Files that were rotated do not change any more: a copy on the same volume
// shares them.
func (l *Log) CopyTo(ctx context.Context, dir string) error {
	if l.path == "" {
		return errors.New("crawllog: copy: the log has no files")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("crawllog: copy: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	for _, f := range l.older {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		to := filepath.Join(dir, filepath.Base(f.path))
		if os.Link(f.path, to) == nil {
			continue
		}
		if err := copyFile(f.path, to); err != nil {
			return fmt.Errorf("crawllog: copy: %w", err)
		}
	}
	if err := copyFile(l.path, filepath.Join(dir, filepath.Base(l.path))); err != nil {
		return fmt.Errorf("crawllog: copy: %w", err)
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
