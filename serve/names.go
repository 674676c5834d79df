// This file maps names of crawls to their numbers in the frontier. No number is used for two names: a
// crawl that is deleted and starts again knows no URL.

package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// DefaultCrawl is the name of crawl 0. An empty name means it.
const DefaultCrawl = "DEFAULT"

// The keys of the frontier's values that hold names.
const (
	crawlKey = "crawl/"     // prefix of a name; the value is the crawl's number
	nextKey  = "next-crawl" // the number for the next new crawl
)

// MaxName is the most bytes in a crawl's name.
const MaxName = frontier.MaxValueKey - len(crawlKey)

// maxNumber bounds the numbers of named crawls. Package crawler parks URLs in crawls from there on, and
// an import may bring those.
const maxNumber = 1 << 31

// maxCrawls is the most crawls with names; all are held in memory.
const maxCrawls = 1 << 16

// errName is wrapped by errors about a crawl's name.
var errName = errors.New("serve: the name of a crawl")

// names maps crawls' names to numbers and back.
type names struct {
	adding sync.RWMutex // read-held while URLs are added by number; taken before mu
	mu     sync.RWMutex
	crawl  map[string]uint32      // guarded by mu
	name   map[uint32]string      // guarded by mu
	next   uint32                 // guarded by mu; for the next new crawl
	waits  map[*nameWait]struct{} // guarded by mu
	gone   map[uint32]string      // guarded by mu; crawls that were forgotten while some of their pages were being fetched
}

// nameWait is a call that waits for URLs of named crawls.
type nameWait struct {
	names   []string
	numbers []uint32 // their numbers when the wait began
	changed func()
}

// await returns the numbers of names. Until the caller calls leave, it calls changed if any of them
// changes.
func (n *names) await(names []string, changed func()) (numbers []uint32, leave func()) {
	if len(names) == 0 {
		return nil, func() {}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &nameWait{names: names, numbers: n.numbersLocked(names), changed: changed}
	if n.waits == nil {
		n.waits = map[*nameWait]struct{}{}
	}
	n.waits[w] = struct{}{}
	return w.numbers, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.waits, w)
	}
}

func (n *names) numbersLocked(names []string) (numbers []uint32) {
	for _, name := range names {
		if id, ok := n.crawl[Normal(name)]; ok {
			numbers = append(numbers, id)
		}
	}
	return numbers
}

// tellLocked wakes the calls whose crawls have new numbers.
func (n *names) tellLocked() {
	for w := range n.waits {
		if !slices.Equal(w.numbers, n.numbersLocked(w.names)) {
			w.changed()
		}
	}
}

// loadNames reads the names stored in the frontier.
func (s *Service) loadNames(ctx context.Context) error {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	n.crawl, n.name, n.next = map[string]uint32{}, map[uint32]string{}, max(1, n.next)
	stored, err := s.f.Values(ctx, crawlKey)
	if err != nil {
		return fmt.Errorf("serve: names of crawls: %w", err)
	}
	for key, v := range stored {
		id, err := numberOf(key, v)
		if err != nil {
			return err
		}
		n.bind(strings.TrimPrefix(key, crawlKey), id)
		n.next = max(n.next, id+1)
	}
	next, _, err := s.number(nextKey)
	if err != nil {
		return err
	}
	n.next = max(n.next, next)
	for _, id := range s.views.Crawls() { // made by other programs
		if id < maxNumber {
			n.next = max(n.next, id+1)
		}
	}
	if _, ok := n.crawl[DefaultCrawl]; !ok {
		n.bind(DefaultCrawl, 0)
	}
	n.tellLocked()
	return nil
}

func (n *names) bind(name string, id uint32) { n.crawl[name], n.name[id] = id, name }

// Normal returns a crawl's canonical name: blanks around it are dropped, and an empty name is
// DefaultCrawl.
func Normal(crawl string) string {
	if crawl = strings.TrimSpace(crawl); crawl == "" {
		return DefaultCrawl
	}
	return crawl
}

// Crawl returns a crawl's number, and whether it has one.
func (s *Service) Crawl(name string) (uint32, bool) {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	id, ok := s.names.crawl[Normal(name)]
	return id, ok
}

// NewCrawl returns a crawl's number. If it has none, NewCrawl assigns one durably.
func (s *Service) NewCrawl(name string) (uint32, error) {
	if id, ok := s.Crawl(name); ok {
		return id, nil
	}
	name = Normal(name)
	switch {
	case len(name) > MaxName:
		return 0, fmt.Errorf("%w has %d bytes; want at most %d", errName, len(name), MaxName)
	case !utf8.ValidString(name):
		return 0, fmt.Errorf("%w is not UTF-8: %.80q", errName, name)
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	if id, ok := s.names.crawl[name]; ok {
		return id, nil
	}
	switch id, ok, err := s.number(crawlKey + name); { // an import through the console's socket may have stored it
	case err != nil:
		return 0, err
	case ok:
		s.names.bind(name, id)
		s.names.tellLocked()
		return id, nil
	}
	return s.nameLocked(name)
}

// number reads the value of a key. ok is false if there is none.
func (s *Service) number(key string) (id uint32, ok bool, err error) {
	v, ok, err := s.f.Value(key)
	if !ok || err != nil {
		return 0, false, err
	}
	id, err = numberOf(key, v)
	return id, err == nil, err
}

// numberOf parses a value.
func numberOf(key string, v []byte) (uint32, error) {
	most := uint64(maxNumber - 1)
	if key == nextKey {
		most++ // no number is left for a new crawl
	}
	x, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil || x > most {
		return 0, fmt.Errorf("serve: names of crawls: %q is %.40q; want a number up to %d", key, v, most)
	}
	return uint32(x), nil
}

// setNumber stores a value that number reads.
func (s *Service) setNumber(key string, id uint32) error {
	return s.f.SetValue(context.Background(), key, strconv.AppendUint(nil, uint64(id), 10))
}

// nameLocked assigns a new number to a name.
func (s *Service) nameLocked(name string) (uint32, error) {
	n := &s.names
	if len(n.crawl) >= maxCrawls {
		return 0, fmt.Errorf("serve: %d crawls have names: delete one and forget it: %w", len(n.crawl), frontier.ErrFull)
	}
	next, _, err := s.number(nextKey) // such an import may have moved it, too
	if err != nil {
		return 0, err
	}
	id := max(n.next, next)
	for ; id < maxNumber; id++ {
		if _, known := s.views.Crawl(id); !known { // otherwise another program has used it since
			break
		}
	}
	if id == maxNumber {
		return 0, fmt.Errorf("serve: no number is left for another crawl: %w", frontier.ErrFull)
	}
	if err := s.setNumber(nextKey, id+1); err != nil { // first: otherwise a crash could assign a number twice
		return 0, err
	}
	n.next = id + 1
	if err := s.setNumber(crawlKey+name, id); err != nil {
		return 0, err
	}
	n.bind(name, id)
	n.tellLocked()
	return id, nil
}

// CrawlName returns the name of a crawl's number, or crawl:N if another program made the crawl.
func (s *Service) CrawlName(id uint32) string {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	if name, ok := s.names.name[id]; ok {
		return name
	}
	return fmt.Sprint("crawl:", id)
}

// CrawlNames returns the names in use, in order.
func (s *Service) CrawlNames() []string {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.names.crawl))
}

// Adding lets the caller add URLs by crawl number until it calls done: meanwhile no crawl is forgotten.
func (s *Service) Adding() (done func()) {
	s.names.adding.RLock()
	return s.names.adding.RUnlock
}

// AddingTo implements console.Options.Adding. It finds a crawl by name, or by number if that has a name.
// Without either it returns DefaultCrawl.
func (s *Service) AddingTo(c console.CrawlID) (id uint32, done func(), err error) {
	done = s.Adding()
	if c.Name == "" && c.Number != 0 {
		s.names.mu.RLock()
		_, ok := s.names.name[c.Number]
		s.names.mu.RUnlock()
		if id = c.Number; !ok {
			err = fmt.Errorf("%w: no crawl has the number %d; want a name", console.ErrAction, id)
		}
	} else if id, err = s.NewCrawl(c.Name); errors.Is(err, errName) {
		err = fmt.Errorf("%w: %w", console.ErrAction, err)
	}
	if err != nil {
		done()
		return 0, nil, err
	}
	return id, done, nil
}

// resolve sets the crawl number of each entry. Faults of names go into the items; other errors are
// returned. The caller holds Adding.
func (s *Service) resolve(items []item) error {
	for i := range items {
		it := &items[i]
		switch {
		case it.err != nil || it.inherits:
			continue
		case i > 0 && items[i-1].err == nil && items[i-1].crawl == it.crawl:
			it.entry.Crawl = items[i-1].entry.Crawl
			continue
		}
		var err error
		if it.entry.Crawl, err = s.NewCrawl(it.crawl); errors.Is(err, errName) {
			it.err = err
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errGone refuses a link whose crawl was forgotten while its page was being fetched: adding it would
// start the crawl anew.
var errGone = errors.New("the crawl was deleted and forgotten while the page was fetched")

// inheritLinks fills in what links omit: the crawl of their page, and a depth one greater. The caller
// holds Adding.
func (s *Service) inheritLinks(page *frontier.Lease, links []item) {
	if page.ContactOnly() {
		return
	}
	n := &s.names
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, named := n.name[page.Entry.Crawl]
	if !named {
		name = n.gone[page.Entry.Crawl]
	}
	for i := range links {
		it := &links[i]
		if !it.deep {
			it.entry.Depth = page.Entry.Depth + 1
		}
		if strings.TrimSpace(it.crawl) == "" {
			it.crawl, it.inherits = name, true
			it.entry.Crawl = page.Entry.Crawl
		}
		if it.err == nil && !named && name != "" && Normal(it.crawl) == name {
			it.err = errGone
		}
	}
}

// ForgetCrawl frees a crawl's name, so that a crawl of that name starts anew. Delete its URLs first.
// ForgetCrawl deletes only the URLs added meanwhile, and returns how many.
func (s *Service) ForgetCrawl(ctx context.Context, name string) (late int64, err error) {
	id, ok, err := s.unbind(Normal(name))
	if !ok || err != nil {
		return 0, err
	}
	return s.f.Delete(context.WithoutCancel(ctx), scope.Crawl(id)) // no request can name its URLs any more
}

// unbind frees a name and returns its number. Meanwhile no URL is added by number.
func (s *Service) unbind(name string) (id uint32, ok bool, err error) {
	n := &s.names
	n.adding.Lock()
	defer n.adding.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok = n.crawl[name]; !ok {
		return 0, false, nil
	}
	maps.DeleteFunc(n.gone, func(id uint32, _ string) bool { return !s.underWay(id) })
	if s.underWay(id) {
		if n.gone == nil {
			n.gone = map[uint32]string{}
		}
		n.gone[id] = name
	}
	if name == DefaultCrawl { // it always has a number
		delete(n.name, id)
		if _, err := s.nameLocked(name); err != nil {
			n.bind(name, id)
			return 0, false, err
		}
		return id, true, nil
	}
	if err := s.f.SetValue(context.Background(), crawlKey+name, nil); err != nil {
		return 0, false, err
	}
	delete(n.crawl, name)
	delete(n.name, id)
	n.tellLocked()
	return id, true, nil
}

// underWay reports whether pages of a crawl are being fetched.
func (s *Service) underWay(id uint32) bool {
	x, _ := s.views.Crawl(id)
	return x.Leased > 0
}
