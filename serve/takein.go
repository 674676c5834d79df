// This file imports exports together with their names of crawls.

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

// Import wraps transfer.Import. It also imports names of crawls. If they contradict the current ones, its
// error wraps console.ErrConflict. It refuses values that Options.CheckValue, or the Service itself,
// cannot read. URLs of a plain list go to DefaultCrawl unless o.Crawl names another. It ignores the Check
// functions of o.
func (s *Service) Import(ctx context.Context, r io.Reader, o transfer.ImportOptions) (transfer.Imported, error) {
	home, _ := s.Crawl(DefaultCrawl)
	o.Crawl = cmp.Or(o.Crawl, home)
	in := &takenIn{s: s, given: names{crawl: map[string]uint32{}, name: map[uint32]string{}}}
	o.CheckValue, o.CheckCrawl = in.checkValue, in.checkCrawl
	x, err := transfer.Import(ctx, s.f, r, o)
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, s.loadNames(ctx), s.keepNext())
	_, moved := in.given.crawl[DefaultCrawl]
	if now, _ := s.Crawl(DefaultCrawl); now != home && !moved { // the crawl was forgotten meanwhile
		_, late := s.f.Delete(ctx, scope.Crawl(home))
		err = errors.Join(err, late)
	}
	return x, err
}

// keepNext stores the number of the next new crawl again, in case an import has lowered it.
func (s *Service) keepNext() error {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	next, ok, err := s.number(nextKey)
	if !ok || err != nil || next >= n.next {
		return err
	}
	return s.setNumber(nextKey, n.next)
}

// takenIn checks the lines of an import. If its names contradicted the current ones, two crawls would
// share their URLs.
type takenIn struct {
	s     *Service
	given names  // the import's names
	last  uint32 // the crawl number checked last
	good  bool   // it passed
}

// checkValue returns what is wrong with a value.
func (t *takenIn) checkValue(key string, v []byte) error {
	name, names := strings.CutPrefix(key, crawlKey)
	if key == PartKey {
		if own, ok, err := t.s.f.Value(PartKey); err != nil || ok && string(own) != string(v) {
			return errors.Join(err, fmt.Errorf("it is an export of %.200s, and this server is %.200s", v, own))
		}
		return nil
	}
	if !names && key != nextKey {
		if check := t.s.o.CheckValue; check != nil {
			return check(key, v)
		}
		return nil
	}
	id, err := numberOf(key, v)
	if err != nil || !names {
		return err
	}
	if name != Normal(name) || !utf8.ValidString(name) || id == 0 && name != DefaultCrawl {
		return fmt.Errorf("%w: number %d cannot be %.80q", errName, id, name)
	}
	g := &t.given
	if has, ok := g.crawl[name]; ok && has != id {
		return fmt.Errorf("%w %.80q has two numbers, %d and %d", errName, name, has, id)
	}
	if has, ok := g.name[id]; ok && has != name {
		return fmt.Errorf("%w: number %d has two, %.80q and %.80q", errName, id, has, name)
	}
	if len(g.crawl) == maxCrawls {
		return fmt.Errorf("%w: more than %d have names", errName, maxCrawls)
	}
	n := &t.s.names
	n.mu.RLock()
	defer n.mu.RUnlock()
	if has, ok := n.crawl[name]; ok && has != id && (name != DefaultCrawl || t.s.hasURLs(has)) {
		return conflict("crawl %q has number %d here, and %d in the export", name, has, id)
	}
	if has, ok := n.name[id]; ok && has != name {
		return conflict("number %d is crawl %q here, and %q in the export", id, has, name)
	}
	g.bind(name, id)
	t.good = false
	return nil
}

// checkCrawl returns what is wrong with a URL's crawl number. An export has names before URLs.
func (t *takenIn) checkCrawl(id uint32) error {
	if t.good && id == t.last {
		return nil
	}
	n := &t.s.names
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, named := n.name[id]
	_, given := t.given.name[id]
	_, moved := t.given.crawl[DefaultCrawl]
	switch {
	case given:
	case id == 0: // DefaultCrawl, unless the export names it otherwise
		if has := n.crawl[DefaultCrawl]; has != 0 && !moved {
			return conflict("crawl %q has number %d here, and 0 in the export", DefaultCrawl, has)
		}
	case named:
		return conflict("number %d is crawl %q here, and has no name in the export", id, name)
	}
	t.last, t.good = id, true
	return nil
}

// conflict returns an error about names that contradict each other.
func conflict(format string, args ...any) error {
	return fmt.Errorf("serve: names of crawls: %w: %s: import it into a new server", console.ErrConflict, fmt.Sprintf(format, args...))
}

// hasURLs reports whether a crawl has ever had URLs.
func (s *Service) hasURLs(id uint32) bool {
	x, _ := s.views.Crawl(id)
	return x.Added > 0 || x.Waiting+x.Scheduled+x.Leased+x.Finished > 0
}
