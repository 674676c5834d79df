// This file opens the frontier to be measured. All of its configuration is here.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
)

// subject is an open frontier and its store.
type subject struct {
	*frontier.Frontier
	db  *spill.Store // nil: in memory
	dir string
}

// options are those of every frontier: no delays, leases that outlast the run.
func (c config) options() frontier.Options {
	return frontier.Options{
		MemoryBudget: c.budget(),
		Delay:        frontier.FixedDelay(0),
		LeaseTime:    24 * time.Hour,
		Selector:     selector.BiasedRandom(c.Seed),
	}
}

// openStore opens the frontier in a folder.
func openStore(ctx context.Context, dir string, c config, o frontier.Options) (*subject, error) {
	db, err := spill.Open(dir, spill.Options{Sync: c.Sync})
	if err != nil {
		return nil, err
	}
	o.Spill = db
	f, err := frontier.Open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &subject{f, db, dir}, nil
}

// openMemory opens a frontier without a store.
func openMemory(ctx context.Context, o frontier.Options) (*subject, error) {
	o.MemoryBudget = 8 << 30
	f, err := frontier.Open(ctx, o)
	return &subject{Frontier: f}, err
}

func (s *subject) close() error {
	err := s.Close()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	return err
}

// checkSmall is the deep check of a small frontier: of a large one it would
// take longer than the run.
func (s *subject) checkSmall() error {
	if st := s.Stats(); st.Known+st.Hosts > 200_000 {
		return nil
	}
	return s.Check()
}

// setFile describes the URLs of a store that one scenario leaves to the next.
const setFile = "set.json"

// set describes the URLs of a store: those waiting, and all that were ever added.
type set struct {
	Next    int   // number of the first URL of the source that was not added
	Fresh   int   // the same of its second set
	Waiting tally // URLs that must come out
	Bytes   int64 // of everything that was added
}

func (r *run) shared() string { return filepath.Join(r.work, "store") }

// leave closes a store for the next scenario.
func (r *run) leave(s *subject, have set) error {
	if err := s.close(); err != nil {
		return err
	}
	text, err := json.Marshal(have)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.work, setFile), text, 0o600)
}

// takeOver opens the store that an earlier scenario left, or makes one with all URLs in it.
func (r *run) takeOver(src source) (*subject, set, error) {
	var have set
	text, err := os.ReadFile(filepath.Join(r.work, setFile))
	if err != nil {
		return r.filled(src, r.shared(), r.cfg.URLs)
	}
	if err := errors.Join(json.Unmarshal(text, &have), os.Remove(filepath.Join(r.work, setFile))); err != nil {
		return nil, have, err
	}
	begun := time.Now()
	s, err := openStore(r.ctx, r.shared(), r.cfg, r.cfg.options())
	if err != nil {
		return nil, have, err
	}
	r.measure("reopen.clean", time.Since(begun).Seconds(), "s")
	if got := s.Stats().Waiting; got != have.Waiting.N {
		return nil, have, fmt.Errorf("%d URLs wait after reopening, %d did before", got, have.Waiting.N)
	}
	return s, have, nil
}

// filled makes a store with the first n URLs in it, without measuring.
func (r *run) filled(src source, dir string, n int) (*subject, set, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, set{}, err
	}
	s, err := openStore(r.ctx, dir, r.cfg, r.cfg.options())
	if err != nil {
		return nil, set{}, err
	}
	r.logf("adding %d URLs first", n)
	l := r.loader(s, src)
	if err := l.to(n); err != nil {
		return nil, set{}, errors.Join(err, s.close())
	}
	return s, l.set, nil
}
