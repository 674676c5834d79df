// This file saves what an Estimator knows, and reads it again.

package importance

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// snapshotMagic begins a snapshot. The whole is a gzip file, whose checksum shows damage.
const snapshotMagic = "importance 3\n"

// ErrCorrupt is wrapped by the error of Load for a file that cannot be read: it is damaged, or of another
// version.
var ErrCorrupt = errors.New("importance: the snapshot cannot be read")

// snapshotHead is what must be equal for a snapshot to fit.
type snapshotHead struct {
	Score, Cells, Hosts int64
}

// Save writes what the Estimator knows to a file, which appears whole or not at all. Call it when the
// frontier is closed. The file has the secret key: do not publish it.
func (x *Estimator) Save(path string) error {
	return durablefs.WriteFile(path, 0o600, func(w io.Writer) error {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		if err := x.write(z); err != nil {
			return fmt.Errorf("importance: %w", err)
		}
		return z.Close()
	})
}

func (x *Estimator) write(w io.Writer) error {
	if _, err := io.WriteString(w, snapshotMagic); err != nil {
		return err
	}
	for _, v := range []any{x.head(), x.key, x.pages.Load(), x.worth.Load()} {
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return errors.Join(x.score.save(w), x.hosts.table.save(w))
}

func (x *Estimator) head() snapshotHead {
	return snapshotHead{int64(x.opts.Score), x.score.cells(), int64(len(x.hosts.table.cells))}
}

// Load replaces what the Estimator knows by what a file has; it must not be in use yet. After an error it
// knows nothing, and can be used: the order is worse for a while. There may be no file (fs.ErrNotExist),
// or one that is damaged or was written with other options (ErrCorrupt).
func (x *Estimator) Load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("importance: %w", err)
	}
	defer f.Close()
	if err := x.read(f); err != nil {
		x.reset()
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
	}
	return nil
}

func (x *Estimator) read(r io.Reader) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(z, magic); err != nil || string(magic) != snapshotMagic {
		return errors.Join(err, errors.New("it is of another kind or version"))
	}
	var head snapshotHead
	var pages, worth int64
	for _, v := range []any{&head, &x.key, &pages, &worth} {
		if err := binary.Read(z, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	if head != x.head() {
		return errors.New("it was written with another Score or Memory")
	}
	x.pages.Store(pages)
	x.worth.Store(worth)
	if err := errors.Join(x.score.load(z), x.hosts.table.load(z)); err != nil {
		return err
	}
	if n, err := io.Copy(io.Discard, z); n > 0 || err != nil { // the checksum is at the end
		return errors.Join(err, errors.New("its end is not where it should be"))
	}
	return nil
}

const chunk = 1 << 13 // cells that are written at once

func (t *table[C]) save(w io.Writer) error {
	cells := make([]C, 0, chunk)
	for b := 0; b < len(t.cells); b += chunk {
		cells = cells[:0]
		for i := b; i < min(b+chunk, len(t.cells)); i += ways {
			l := &t.locks[uint64(i/ways)%stripes]
			l.Lock()
			cells = append(cells, t.cells[i:i+ways]...)
			l.Unlock()
		}
		if err := binary.Write(w, binary.LittleEndian, cells); err != nil {
			return err
		}
	}
	return nil
}

func (t *table[C]) load(r io.Reader) error {
	for b := 0; b < len(t.cells); b += chunk {
		if err := binary.Read(r, binary.LittleEndian, t.cells[b:min(b+chunk, len(t.cells))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *byLinks) cells() int64           { return int64(len(s.table.cells)) }
func (s *byLinks) save(w io.Writer) error { return s.table.save(w) }

// load has the frontier told again of URLs with links: it has forgotten which of them should rise.
func (s *byLinks) load(r io.Reader) error {
	err, n := s.table.load(r), int64(0)
	for _, c := range s.table.cells {
		if v := c & (1<<s.table.width - 1); v != 0 && v < buried {
			n++
		}
	}
	s.remind.Store(n)
	return err
}

func (s *byTrust) cells() int64 { return int64(len(s.table.cells)) }

func (s *byTrust) save(w io.Writer) error {
	var waiting [ranksSize]int64
	for i := range waiting {
		waiting[i] = s.ranks.waiting[i].Load()
	}
	flow := [2]int64{s.flow.all.Load(), s.flow.visited.Load()}
	return errors.Join(binary.Write(w, binary.LittleEndian, &flow), binary.Write(w, binary.LittleEndian, &waiting), s.table.save(w))
}

func (s *byTrust) load(r io.Reader) error {
	var flow [2]int64
	var waiting [ranksSize]int64
	err := errors.Join(binary.Read(r, binary.LittleEndian, &flow), binary.Read(r, binary.LittleEndian, &waiting), s.table.load(r))
	s.flow.all.Store(flow[0])
	s.flow.visited.Store(flow[1])
	for i, n := range waiting {
		s.ranks.waiting[i].Store(n)
	}
	s.ranks.divide()
	return err
}
