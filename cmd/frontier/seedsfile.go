// This file reads files of seeds. They may be of any size: they are read line by line,
// once to judge them and to learn the hosts, and once more to add them.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

const (
	maxSeedLine = 64 << 10 // bytes
	maxTold     = 10       // bad lines of a file that are reported
	seedBatch   = 1000     // added at once
	// joining is how many seeds of files may bring the hosts that they redirect to into
	// the scope: these are kept in memory.
	joining = 100_000
)

// eachSeed calls fn with each line of a file that is no comment, until it fails.
func eachSeed(path string, fn func(line int, seed string) error) error {
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
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxSeedLine)
	n := 0
	for lines.Scan() {
		n++
		seed := strings.TrimSpace(lines.Text())
		if seed == "" || strings.HasPrefix(seed, "#") {
			continue
		}
		if err := fn(n, seed); err != nil {
			return err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: the line is longer than %d bytes; want a URL in each", path, n+1, maxSeedLine)
	} else if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// seedFiles are the files that are named.
func (s *settings) seedFiles() (files []string) {
	for _, path := range s.lists {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}

// judgeSeedFiles judges each seed of the files, and notes its host, and the first ones
// themselves, for the scope.
func (s *settings) judgeSeedFiles() {
	bad, known := 0, map[string]bool{}
	for _, path := range s.seedFiles() {
		begin := s.listed
		err := eachSeed(path, func(line int, seed string) error {
			s.listed++
			u, err := s.seed(seed)
			if err != nil {
				if bad++; bad <= maxTold {
					s.item(seedsFileKey, path, fmt.Errorf("%s:%d: seed %q: %w", path, line, fetch.Redact(seed), err))
				}
				return nil
			}
			if h, err := frontier.HostName(u); err == nil && !known[h] {
				known[h] = true
				s.listedHosts = append(s.listedHosts, h)
			}
			if len(s.listedFirst) < joining {
				s.listedFirst = append(s.listedFirst, u)
			}
			return nil
		})
		if err != nil {
			s.item(seedsFileKey, path, fmt.Errorf("%s: %w", s.shown(seedsFileKey), err))
		} else if s.listed == begin {
			s.item(seedsFileKey, path, fmt.Errorf("%s: there is no URL in %s; want one in each line", s.shown(seedsFileKey), path))
		}
	}
	if bad > maxTold {
		s.fault([]string{seedsFileKey}, "%s: %d more lines are wrong", s.shown(seedsFileKey), bad-maxTold)
	}
}

// addListed adds the seeds of the files. It returns how many are new, how many the crawl
// does not want, and the first of these errors.
func (s *settings) addListed(ctx context.Context, c *crawler.Crawler) (added int, refused int, own []error, err error) {
	var batch []string
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
		batch = batch[:0]
		return ctx.Err()
	}
	for _, path := range s.seedFiles() {
		err := eachSeed(path, func(_ int, seed string) error {
			u, err := s.seed(seed)
			if err != nil { // the file changed since it was judged
				refused++
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
