// This file stores the state of the crawl as a whole in a folder: a key, written once, and the
// state, which is replaced again and again.

package incremental

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/recrawl"
)

const (
	keyFile     = "key"
	stateFile   = "state"
	damagedFile = "state.damaged"
	keySize     = 32
	// version is the version of the state file, and of the notes of URLs: New refuses a file of
	// another version before it reads any note.
	version = 1
)

// state is the content of the state file, as JSON.
type state struct {
	Version  int       `json:"version"`
	Saved    time.Time `json:"saved"`
	Clean    bool      `json:"clean"`    // the accounts and the URLs are from the same moment
	Schedule []byte    `json:"schedule"` // recrawl.Scheduler.MarshalBinary
	Counts   Counts    `json:"counts"`
}

// readKey returns the folder's key, and creates it if there is none.
func (r *Revisits) readKey() ([]byte, error) {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	if r.opts.Dir == "" {
		return key, nil
	}
	if err := os.MkdirAll(r.opts.Dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(r.opts.Dir, keyFile)
	old, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return key, replace(name, key)
	case err != nil:
		return nil, err
	case len(old) != keySize:
		return nil, fmt.Errorf("%s has %d bytes; want %d (without it pages cannot be compared with their copies once)", name, len(old), keySize)
	}
	return old, nil
}

// ReadSchedule returns the scheduler whose state was last saved in the folder dir of a crawl
// (Options.Dir), to inspect it or to plan with it, and when it was saved. It does not change the folder,
// and the crawl may be running. Errors are frontier.ErrVersion, a *recrawl.CorruptError, or come from
// reading the file (fs.ErrNotExist if there is none).
func ReadSchedule(dir string) (*recrawl.Scheduler, time.Time, error) {
	name := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, time.Time{}, err
	}
	s, err := recrawl.New(recrawl.Options{})
	if err != nil {
		return nil, time.Time{}, err
	}
	saved, err := parseState(b, s)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, saved.Saved, nil
}

// parseState decodes a state file, and its schedule into s.
func parseState(b []byte, s *recrawl.Scheduler) (saved state, err error) {
	var is struct{ Version int }
	if err = json.Unmarshal(b, &is); err == nil && is.Version != version && is.Version > 0 {
		return saved, fmt.Errorf("it has version %d, this program knows %d: %w", is.Version, version, frontier.ErrVersion)
	}
	if err == nil {
		err = json.Unmarshal(b, &saved)
	}
	if err == nil {
		err = s.UnmarshalBinary(saved.Schedule)
	}
	if errors.Is(err, recrawl.ErrVersion) {
		err = fmt.Errorf("%w: %w", frontier.ErrVersion, err)
	}
	return saved, err
}

// readState restores the state of the last process.
func (r *Revisits) readState() error {
	r.unclean = true
	if r.opts.Dir == "" {
		return nil
	}
	name := filepath.Join(r.opts.Dir, stateFile)
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := parseState(b, r.schedule)
	if errors.Is(err, frontier.ErrVersion) {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err != nil {
		aside := filepath.Join(r.opts.Dir, damagedFile)
		r.opts.Logger.Warn("the state of revisits is damaged: the price and the records of hosts start from nothing", "file", name, "kept_as", aside, "error", err)
		return os.Rename(name, aside)
	}
	if b := r.opts.Schedule.Budget; b > 0 && math.Abs(r.schedule.Stats().Budget-b) > b/1e6 {
		if err := r.schedule.SetBudget(r.opts.Schedule.Budget); err != nil {
			return err
		}
	}
	r.counts.now = s.Counts // nothing counts yet
	r.unclean = !s.Clean
	return nil
}

// moved reports whether the price differs from the saved one. Its corrections are not stored with
// any page, and a young crawl that crashes would have to learn them again.
func (r *Revisits) moved() bool {
	saved := math.Float64frombits(r.savedPrice.Load())
	return math.Abs(r.schedule.Stats().Price-saved) > saved/256
}

// saveNowAndThen saves when it is time, or at once, on the goroutine of a worker.
func (r *Revisits) saveNowAndThen(atOnce bool) {
	early := !atOnce && r.opts.Now().Sub(*r.saved.Load()) < r.opts.SaveEvery
	if r.opts.Dir == "" || early || !r.saving.TryLock() {
		return
	}
	defer r.saving.Unlock()
	if r.closed {
		return
	}
	if err := r.saveLocked(false); err != nil {
		r.opts.Logger.Error("the state of revisits is not saved", "error", err)
	}
}

// saveLocked writes the state; saving is held.
func (r *Revisits) saveLocked(clean bool) error {
	now := r.opts.Now()
	r.saved.Store(&now)
	if r.opts.Dir == "" {
		return nil
	}
	r.savedPrice.Store(math.Float64bits(r.schedule.Stats().Price))
	s, err := r.stateAt(now, clean)
	if err != nil {
		return err
	}
	return replace(filepath.Join(r.opts.Dir, stateFile), s)
}

// stateAt returns the content of the state file.
func (r *Revisits) stateAt(now time.Time, clean bool) ([]byte, error) {
	b, err := r.schedule.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return json.Marshal(state{Version: version, Saved: now.UTC(), Clean: clean, Schedule: b, Counts: r.counts.read()})
}

// CopyTo copies the current content of Options.Dir to a folder that does not exist, as a backup;
// the crawl continues. The copy belongs to a copy of the frontier made just before or after: as
// after a crash, the accounts are rebuilt from its URLs. The copy appears when it is complete and
// survives a loss of power. The error wraps errors.ErrUnsupported if there is no Options.Dir.
func (r *Revisits) CopyTo(ctx context.Context, dir string) error {
	if r.opts.Dir == "" {
		return fmt.Errorf("incremental: copy: nothing is kept: %w", errors.ErrUnsupported)
	}
	err := durablefs.MakeFolder(ctx, dir, func(dir string) error {
		key, err := os.ReadFile(filepath.Join(r.opts.Dir, keyFile))
		if err != nil {
			return err
		}
		s, err := r.stateAt(r.opts.Now(), false)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, keyFile), key, 0o600); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, stateFile), s, 0o600)
	})
	if err != nil {
		return fmt.Errorf("incremental: copy to %s: %w", dir, err)
	}
	return nil
}

// replace replaces a file, completely or not at all, even if power is lost.
func replace(name string, b []byte) error {
	return durablefs.WriteFile(name, 0o600, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Close saves the state. Call it when the crawler has stopped, before or after closing the
// frontier.
func (r *Revisits) Close() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if err := r.saveLocked(!r.unclean); err != nil {
		return fmt.Errorf("incremental: close: %w", err)
	}
	return nil
}
