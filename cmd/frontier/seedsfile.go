// This file reads files of seeds. They may be of any size: they are read line by line, once to check them
// and collect hosts, and once to add them.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/urllist"
)

const (
	maxSeedLine = 64 << 10 // bytes
	maxTold     = 10       // bad lines reported
	seedBatch   = 1000     // seeds per Add
	// joining is how many seeds of files may bring the hosts that they redirect to into the scope: they
	// are held in memory.
	joining = 100_000
)

// eachSeed calls fn for each line that is not a comment, until fn fails.
func eachSeed(path string, fn func(urllist.Line) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file; want one, as it is read twice", path)
	}
	for l, err := range urllist.Lines(f, maxSeedLine) {
		if err == nil {
			err = fn(l)
		} else {
			err = fmt.Errorf("%s: %w", path, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seedOf returns the seed in a line. Its error names the line.
func (s *settings) seedOf(path string, l urllist.Line) (string, error) {
	u, err := "", l.Err
	if err == nil {
		u, err = s.seed(l.URL)
	}
	if err != nil {
		return "", fmt.Errorf("%s:%d: seed %q: %w", path, l.Number, fetch.Redact(l.URL), err)
	}
	return u, nil
}

// seedFiles returns the files that were named.
func (s *settings) seedFiles() []string {
	return slices.DeleteFunc(slices.Clone(s.lists), func(path string) bool { return path == "" })
}

// judgedSeeds is a file in -dir: the seedsFound of the last command, in JSON.
const judgedSeeds = "seeds.judged"

// seedsFound is what judgeSeedFiles finds.
type seedsFound struct {
	In    string   // what, as judging says it; empty: it need not be kept
	Seeds int      // their number
	Hosts []string // all
	First []string // seeds, normalized
	Bad   []string // what is wrong with lines: the first of each file
	Wrong int      // the number of such lines
}

// judging names the files of seeds as they are, and what else decides what is found in them; empty: there is
// no file or no folder, or a file cannot be read.
func (s *settings) judging() string {
	if s.dir == "" || len(s.seedFiles()) == 0 {
		return ""
	}
	name := fmt.Sprintf("%s %q", version(), s.find("protocols").now)
	for _, path := range s.seedFiles() {
		info, err := os.Stat(path)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return ""
		}
		name += fmt.Sprintf(" %q %d %d", path, info.Size(), info.ModTime().UnixNano())
	}
	return name
}

// keepJudged writes what was found.
func (s *settings) keepJudged() error {
	if s.listed.In == "" {
		return nil
	}
	return durablefs.WriteFile(filepath.Join(s.dir, judgedSeeds), 0o600, func(w io.Writer) error { return json.NewEncoder(w).Encode(s.listed) })
}

// judgeSeedFiles checks each seed of the files until ctx ends, unless it did before. It collects their
// hosts for the scope, and the first seeds. A file without a good seed is a fault; bad lines of others are
// skipped when the seeds are added.
func (s *settings) judgeSeedFiles(ctx context.Context) {
	in := s.judging()
	if b, err := os.ReadFile(filepath.Join(s.dir, judgedSeeds)); err == nil && in != "" {
		if err := json.Unmarshal(b, &s.listed); err == nil && s.listed.In == in {
			s.listed.In = ""
			return
		}
		s.listed = seedsFound{}
	}
	known := map[string]bool{}
	for _, path := range s.seedFiles() {
		var bad []error
		begin, wrong := s.listed.Seeds, 0
		err := eachSeed(path, func(l urllist.Line) error {
			u, err := s.seedOf(path, l)
			if err != nil {
				if wrong++; wrong <= maxTold {
					bad = append(bad, err)
				}
				return nil
			}
			s.listed.Seeds++
			if h, err := frontier.HostName(u); err == nil && !known[h] {
				known[h] = true
				s.listed.Hosts = append(s.listed.Hosts, h)
			}
			if len(s.listed.First) < joining {
				s.listed.First = append(s.listed.First, u)
			}
			return ctx.Err()
		})
		s.listed.Wrong += wrong
		for _, err := range bad {
			s.listed.Bad = append(s.listed.Bad, err.Error())
		}
		switch {
		case ctx.Err() != nil: // the crawl stops before it begins
			return
		case err != nil:
			s.item(seedsFileKey, path, fmt.Errorf("%s: %w", s.shown(seedsFileKey), err))
		case s.listed.Seeds == begin && wrong == 0:
			s.item(seedsFileKey, path, fmt.Errorf("%s: there is no URL in %s; want one in each line", s.shown(seedsFileKey), path))
		case s.listed.Seeds == begin:
			for _, err := range bad {
				s.item(seedsFileKey, path, err)
			}
			if wrong > maxTold {
				s.fault([]string{seedsFileKey}, "%s: %d more lines are wrong", s.shown(seedsFileKey), wrong-maxTold)
			}
		}
	}
	s.listed.In = in
}

// seedsAdded is a key of a value in the frontier: the files, and how many of their lines were added before one was
// refused.
const seedsAdded = "frontier crawl: seeds added"

// addListed adds the files' seeds, those that no earlier command has added. It returns how many are new,
// how many are bad or unwanted, and the first of these errors.
func (s *settings) addListed(ctx context.Context, c *crawler.Crawler) (added int, refused int, own []error, err error) {
	var batch []string
	line, before, good := 0, 0, 0
	if in := s.judging(); in != "" {
		in = fmt.Sprintf(" %x", sha256.Sum256([]byte(in)))
		v, _, err := s.store.Value(seedsAdded)
		if err != nil {
			return 0, 0, nil, err
		}
		if n, ok := strings.CutSuffix(string(v), in); ok {
			before, _ = strconv.Atoi(n)
			s.unadded -= int64(before)
		}
		defer func() {
			if good > before {
				err = join(err, s.store.SetValue(context.WithoutCancel(ctx), seedsAdded, fmt.Appendf(nil, "%d%s", good, in)))
			}
		}()
	}
	for _, text := range s.listed.Bad {
		own = append(own, errors.New(text))
	}
	flush := func() error {
		n, err := c.Seed(ctx, batch...)
		added += n
		bad := frontier.EntryErrors(err)
		if err != nil && len(bad) == 0 {
			return err
		}
		for _, e := range bad {
			if refused++; refused <= maxTold {
				own = append(own, e)
			}
		}
		s.unadded -= int64(len(batch))
		if batch = batch[:0]; refused == 0 {
			good = line
		}
		return ctx.Err()
	}
	for _, path := range s.seedFiles() {
		err := eachSeed(path, func(l urllist.Line) error {
			if line++; line <= before {
				return ctx.Err()
			}
			u, err := s.seedOf(path, l)
			if err != nil {
				return nil // s.listed has it
			}
			if batch = append(batch, u); len(batch) < seedBatch {
				return nil
			}
			return flush()
		})
		if err == nil {
			err = flush()
		}
		if err != nil {
			return added, refused, own, err
		}
	}
	return added, refused + s.listed.Wrong, own, nil
}
