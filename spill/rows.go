// This file reads rows: one by its key, at any time, and all of them for Recover.
//
// The row changes of the last batch may not have been applied yet; they are kept in a map, which is
// searched before the engine.

package spill

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/seed-7440039f/frontier/spill/internal/keys"
	"github.com/seed-7440039f/frontier/spill/internal/kv"
	"github.com/seed-7440039f/frontier/storage"
)

// latestRows are the rows of the last batch, by key; a nil value is a deleted row. A published map
// is never changed.
type latestRows map[string][]byte

// setPending makes e the effects that the next write applies.
func (s *Store) setPending(e effects) {
	s.pending = e
	if len(e.rows) == 0 {
		s.latest.Store(nil)
		return
	}
	rows := make(latestRows, len(e.rows))
	for _, r := range e.rows {
		rows[r.Key] = r.Value
	}
	s.latest.Store(&rows)
}

// Row reads one row as of the last batch. It may be called from any number of goroutines.
func (s *Store) Row(key string) (value []byte, found bool, err error) {
	if err := s.enter(); err != nil {
		return nil, false, fmt.Errorf("spill: row: %w", err)
	}
	defer s.leave()
	return s.row(key)
}

func (s *Store) row(key string) (value []byte, found bool, err error) {
	if rows := s.latest.Load(); rows != nil {
		if v, ok := (*rows)[key]; ok {
			return bytes.Clone(v), v != nil, nil
		}
	}
	found, err = get(s.db, keys.Row(key), func(v []byte) error {
		value = append([]byte{}, v...)
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("spill: row: %w", err)
	}
	return value, found, nil
}

// Rows reports the rows whose keys begin with prefix and are not before from. It may be called from any
// number of goroutines.
func (s *Store) Rows(prefix, from string, fn func(key string, value []byte) bool) error {
	return s.during("rows", func() error {
		latest := latestRows{}
		if rows := s.latest.Load(); rows != nil {
			latest = *rows
		}
		err := eachRow(s.db, latest, max(prefix, from), afterPrefix(keys.Row(prefix)), func(name string, value []byte) error {
			if !fn(name, value) {
				return kv.ErrStop
			}
			return nil
		})
		if err == kv.ErrStop {
			return nil
		}
		return err
	})
}

// rows replays the rows that an opening reads.
func (rc *recovery) rows() error {
	if err := rc.rowsFrom("", keys.Row(storage.ManyRows)); err != nil {
		return err
	}
	many := afterPrefix(keys.Row(storage.ManyRows))
	return rc.rowsFrom(string(many[keys.HeadLen:]), afterPrefix(keys.Row("")))
}

// rowsFrom replays rows from a key on, up to a key of the engine, with those of the last batch merged in.
func (rc *recovery) rowsFrom(from string, to []byte) error {
	latest := latestRows{}
	for _, r := range rc.tail.Rows {
		latest[r.Key] = r.Value
	}
	n := 0
	return eachRow(rc.db, latest, from, to, func(name string, value []byte) error {
		if n++; n%1024 == 0 && rc.ctx.Err() != nil {
			return rc.ctx.Err()
		}
		return rc.tell(rc.to.Row(name, value))
	})
}

// eachRow calls fn with the rows from a key on, up to a key of the engine, in order. Those of the last
// batch come from latest.
func eachRow(db kv.Reader, latest latestRows, from string, to []byte, fn func(name string, value []byte) error) error {
	var names []string
	for name := range latest {
		if name >= from && bytes.Compare(keys.Row(name), to) < 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	// upTo reports the rows of the last batch whose keys come before name.
	upTo := func(name string, last bool) error {
		for len(names) > 0 && (last || names[0] < name) {
			if v := latest[names[0]]; v != nil {
				if err := fn(names[0], v); err != nil {
					return err
				}
			}
			names = names[1:]
		}
		return nil
	}
	err := db.Iterate(keys.Row(from), to, func(key []byte, value func() ([]byte, error)) error {
		name := string(key[keys.HeadLen:])
		if err := upTo(name, false); err != nil {
			return err
		}
		if _, ok := latest[name]; ok {
			return nil // it comes before the next row
		}
		v, err := value()
		if err != nil {
			return damaged(key, err)
		}
		return fn(name, v)
	})
	if err != nil {
		return err
	}
	return upTo("", true)
}

// afterPrefix returns the first key after all keys that begin with prefix. prefix must contain a
// byte below 255.
func afterPrefix(prefix []byte) []byte {
	end := bytes.Clone(bytes.TrimRight(prefix, "\xff"))
	end[len(end)-1]++
	return end
}

var _ storage.Spill = (*Store)(nil)
