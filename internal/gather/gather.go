// Package gather copies the content of a frontier for an export or a scan, as it is at one moment, while the
// frontier goes on: what is in memory in short steps, the rest from a snapshot of the store. It owns what one
// call has collected; package dump sorts and writes it.
package gather

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/seed-7440039f/frontier/internal/control"
	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/known"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/tombstone"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/storage"
)

// Frontier is what is copied. All but the Spill needs its lock.
type Frontier struct {
	Locker
	Core      *mercator.Core
	Controls  *control.Controls
	Known     *known.URLs
	Forgotten *tombstone.Forgotten
	Values    *map[string][]byte // of the program's, if there is no Spill
	Spill     storage.Spill      // nil: everything is in memory
}

// Locker is the lock of a frontier.
type Locker interface {
	LockOpen() error // for a look at the present, while the frontier is open
	Lock()           // as it is
	Unlock()
	Last() int64  // the present; with the lock
	Alive() error // storage.ErrClosed if it is closed; without the lock
}

// Options are what an export is like.
type Options struct {
	TempDir string // folder of the temporary file for more than Memory; empty: os.TempDir()
	Memory  int    // bytes that sorting may use
	NoMarks bool
}

// Export writes the content of a frontier as docs/export.md describes it.
func Export(ctx context.Context, f Frontier, w io.Writer, o Options) (err error) {
	x := &copier{Frontier: f, Writer: dump.NewWriter(o.TempDir, o.Memory), ctx: ctx}
	x.Source, x.NoMarks = x, o.NoMarks
	x.url = x.AddURL
	defer func() {
		if cerr := x.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("frontier: export: %w", cerr)
		}
	}()
	err = x.run(w)
	switch closed := f.Alive(); {
	case err == nil:
		return nil
	case closed != nil:
		return closed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("frontier: export: %w", err)
	}
}

// copier is one export or scan: a Writer, and the Source that it asks.
type copier struct {
	Frontier
	*dump.Writer
	ctx     context.Context
	steps   int
	scope   scope.Scope   // of a scan
	deleted tombstone.Set // that the store has
	numbers tombstone.Forgotten

	// url takes the body of a record in memory, which is valid during the call.
	url func(q *storage.Queue, due int64, body []byte) error
}

// Alive returns why the export should end, if it should. It looks now and then.
func (x *copier) Alive() error {
	if x.steps++; x.steps%256 != 0 {
		return nil
	}
	return cmp.Or(x.ctx.Err(), x.Frontier.Alive())
}

func (x *copier) run(w io.Writer) error {
	if x.Spill == nil {
		if err := x.InMemory(x.copyAll); err != nil { // nothing is written under the lock, and nothing fails
			return err
		}
		return x.Write(w, nil)
	}
	s, err := x.gather()
	if err != nil {
		return err
	}
	defer s.Release()
	return x.Write(w, s)
}

// Delete takes the row of a deletion.
func (x *copier) Delete(key string, value []byte) error {
	d, err := row.ParseDeletion(key, value)
	if err != nil {
		return err
	}
	x.deleted.Add(&tombstone.Tombstone{Deletion: d})
	return nil
}

// Deleted reports whether a record fell to a deletion, or is not wanted.
func (x *copier) Deleted(q *storage.Queue, seq uint64) bool {
	return !x.scope.Contains(q.Host, q.Crawl) || seq <= x.deleted.Of(hostkey.Bytes(q.Host), q.Crawl).Seq
}

// Forgot takes the row of what was forgotten.
func (x *copier) Forgot(key string, value []byte) error {
	r, err := row.ParseForgotten(key, value)
	if err != nil {
		return err
	}
	x.numbers.Put(&r)
	return nil
}

// Mark returns the mark of the URL of a record's body.
func (x *copier) Mark(q *storage.Queue, p []byte) (storage.Mark, error) {
	b, err := record.Decode(p)
	if err != nil {
		return storage.Mark{}, err
	}
	return known.MarkOf(x.Core.Key, x.numbers.Of(q.Host, q.Crawl), q.Crawl, string(b.URL)), nil
}

// URL decodes a record's body.
func (x *copier) URL(p []byte, u *dump.URL) error {
	b, err := record.Decode(p)
	if err != nil {
		return err
	}
	*u = dump.URL{URL: hostkey.String(b.URL), Depth: b.Depth, Weight: b.Weight, Fails: b.Fails, Meta: b.Meta, History: b.History}
	return nil
}

// Host removes from a host's row what no longer counts.
func (x *copier) Host(name string, s *row.Host) {
	x.Lock()
	defer x.Unlock()
	c := x.Core
	if c.ReopenedAt != mercator.NotReopened { // the store was opened after a crash
		if at := instant.Millis(c.Clock.Wall(max(c.StartOfRow(s, x.Last()), c.StartOfHost(name)))); at > s.Due {
			s.Due, s.Why = at, uint8(mercator.WhyReopened)
		}
	}
	if s.Due <= max(x.Header.Moment, x.Header.Held) { // the header has the time that holds for all
		s.Due, s.Why = 0, uint8(mercator.WhyNone)
	} else if s.Why == uint8(mercator.WhyNone) { // as of a host that is being contacted
		s.Why = uint8(mercator.WhyDelay)
	}
	if s.Trouble.Free <= max(x.Header.Moment, x.Header.Held) || !mercator.Why(s.Why).Forgettable() {
		s.Trouble.Free = 0 // or it is due
	}
	if !c.Limits.Counts(name, s.Used, c.Clock.Date(instant.FromMillis(x.Header.Moment))) {
		s.Used = row.Usage{}
	}
	if t := c.TroubleOfRow(s, 0, x.Last()); t.Over() || t.Until() <= c.Clock.Moment(instant.FromMillis(x.Header.Moment)) {
		s.Trouble = row.Trouble{}
	}
	if s.Group == "" || *s != (row.Host{Group: s.Group}) {
		return
	}
	if h := c.Lookup(c.HashOf(name), name); h == 0 || c.Rests(h) {
		s.Group = "" // it belongs to none when it comes back
	}
}
