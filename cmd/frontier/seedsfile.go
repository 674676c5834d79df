// This file reads files of seeds. They may be of any size: they are read line by line, once to check them
// and collect hosts, and once to add them.

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
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
func (s *settings) seedFiles() (files []string) {
	for _, path := range s.lists {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}

// judgeSeedFiles checks each seed of the files until ctx ends. It collects their hosts for the scope, and
// the first seeds. A file without a good seed is a fault; bad lines of others are skipped when the seeds
// are added.
func (s *settings) judgeSeedFiles(ctx context.Context) {
	known := map[string]bool{}
	for _, path := range s.seedFiles() {
		var bad []error
		begin, wrong := s.listed, 0
		err := eachSeed(path, func(l urllist.Line) error {
			u, err := s.seedOf(path, l)
			if err != nil {
				if wrong++; wrong <= maxTold {
					bad = append(bad, err)
				}
				return nil
			}
			s.listed++
			if h, err := frontier.HostName(u); err == nil && !known[h] {
				known[h] = true
				s.listedHosts = append(s.listedHosts, h)
			}
			if len(s.listedFirst) < joining {
				s.listedFirst = append(s.listedFirst, u)
			}
			return ctx.Err()
		})
		switch {
		case ctx.Err() != nil: // the crawl stops before it begins
			return
		case err != nil:
			s.item(seedsFileKey, path, fmt.Errorf("%s: %w", s.shown(seedsFileKey), err))
		case s.listed == begin && wrong == 0:
			s.item(seedsFileKey, path, fmt.Errorf("%s: there is no URL in %s; want one in each line", s.shown(seedsFileKey), path))
		case s.listed == begin:
			for _, err := range bad {
				s.item(seedsFileKey, path, err)
			}
			if wrong > maxTold {
				s.fault([]string{seedsFileKey}, "%s: %d more lines are wrong", s.shown(seedsFileKey), wrong-maxTold)
			}
		}
	}
}

// addListed adds the files' seeds. It returns how many are new, how many are bad or unwanted, and the
// first of these errors.
func (s *settings) addListed(ctx context.Context, c *crawler.Crawler) (added int, refused int, own []error, err error) {
	s.unadded = int64(s.listed)
	var batch []string
	leave := func(err error) {
		if refused++; refused <= maxTold {
			own = append(own, err)
		}
	}
	flush := func() error {
		n, err := c.Seed(ctx, batch...)
		added += n
		bad := frontier.EntryErrors(err)
		if err != nil && len(bad) == 0 {
			return err
		}
		for _, e := range bad {
			leave(e)
		}
		s.unadded -= int64(len(batch))
		batch = batch[:0]
		return ctx.Err()
	}
	for _, path := range s.seedFiles() {
		err := eachSeed(path, func(l urllist.Line) error {
			u, err := s.seedOf(path, l)
			if err != nil {
				leave(err)
				return nil
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
	return added, refused, own, nil
}
