// This file gives crawls names. The frontier knows them by number. A number is never used
// for two names, so that a crawl that was deleted and begins again knows no URL.

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
)

// DefaultCrawl is the name of crawl 0, and what an empty name stands for.
const DefaultCrawl = "DEFAULT"

// The keys of values of the frontier's that hold names.
const (
	crawlKey = "crawl/"     // and a name: the number of the crawl
	nextKey  = "next-crawl" // the number of the next new crawl
)

// MaxName is the number of bytes that a crawl's name may have.
const MaxName = frontier.MaxValueKey - len(crawlKey)

// maxNumber is above the numbers that names get: crawls from there on are those in which package crawler
// parks URLs, which an import may bring.
const maxNumber = 1 << 31

// maxCrawls is how many crawls may have names: they are kept in memory.
const maxCrawls = 1 << 16

// errName is wrapped by the errors of names that no crawl can have.
var errName = errors.New("serve: the name of a crawl")

// names are those of the crawls.
type names struct {
	adding sync.RWMutex // read-held while URLs are added under numbers; taken before mu
	mu     sync.RWMutex
	crawl  map[string]uint32      // guarded by mu
	name   map[uint32]string      // guarded by mu
	next   uint32                 // guarded by mu; the number of the next new crawl
	waits  map[*nameWait]struct{} // guarded by mu
	gone   map[uint32]string      // guarded by mu; names of crawls that were forgotten while pages of them were fetched
}

// nameWait is a call that waits for URLs of crawls.
type nameWait struct {
	names   []string
	numbers []uint32 // that they have, as the call knows
	changed func()
}

// await returns the numbers that names have. It calls changed if they get others before the caller calls
// leave.
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

// tellLocked wakes calls whose crawls have other numbers now.
func (n *names) tellLocked() {
	for w := range n.waits {
		if !slices.Equal(w.numbers, n.numbersLocked(w.names)) {
			w.changed()
		}
	}
}

// loadNames reads the names that the frontier keeps.
func (s *Service) loadNames(ctx context.Context) error {
	n := &s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	n.crawl, n.name, n.next = map[string]uint32{}, map[uint32]string{}, max(1, n.next)
	for v, err := range s.f.Values(ctx, crawlKey) {
		if err != nil {
			return fmt.Errorf("serve: names of crawls: %w", err)
		}
		id, err := numberOf(v.Key, v.Value)
		if err != nil {
			return err
		}
		n.bind(strings.TrimPrefix(v.Key, crawlKey), id)
		n.next = max(n.next, id+1)
	}
	next, _, err := s.number(nextKey)
	if err != nil {
		return err
	}
	n.next = max(n.next, next)
	for _, id := range s.f.Crawls() { // of other programs
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

// Normal is the name that a crawl is known by: blanks around it do not count, and none is
// DefaultCrawl.
func Normal(crawl string) string {
	if crawl = strings.TrimSpace(crawl); crawl == "" {
		return DefaultCrawl
	}
	return crawl
}

// Crawl returns the number of a crawl, if it has one.
func (s *Service) Crawl(name string) (uint32, bool) {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	id, ok := s.names.crawl[Normal(name)]
	return id, ok
}

// NewCrawl returns the number of a crawl, and gives it one, durably, if it has none.
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
	switch id, ok, err := s.number(crawlKey + name); { // an import through the console's socket may have brought it
	case err != nil:
		return 0, err
	case ok:
		s.names.bind(name, id)
		s.names.tellLocked()
		return id, nil
	}
	return s.nameLocked(name)
}

// number is the value of a key, if it has one.
func (s *Service) number(key string) (id uint32, ok bool, err error) {
	v, ok, err := s.f.Value(key)
	if !ok || err != nil {
		return 0, false, err
	}
	id, err = numberOf(key, v)
	return id, err == nil, err
}

// numberOf reads a value.
func numberOf(key string, v []byte) (uint32, error) {
	most := uint64(maxNumber - 1)
	if key == nextKey {
		most++ // no number is left
	}
	x, err := strconv.ParseUint(string(v), 10, 32)
	if err != nil || x > most {
		return 0, fmt.Errorf("serve: names of crawls: %q is %.40q; want a number up to %d", key, v, most)
	}
	return uint32(x), nil
}

// setNumber is the inverse of number.
func (s *Service) setNumber(key string, id uint32) error {
	return s.f.SetValue(context.Background(), key, strconv.AppendUint(nil, uint64(id), 10))
}

// nameLocked binds a name to a new number.
func (s *Service) nameLocked(name string) (uint32, error) {
	n := &s.names
	if len(n.crawl) >= maxCrawls {
		return 0, fmt.Errorf("serve: %d crawls have names: delete one and forget it: %w", len(n.crawl), frontier.ErrFull)
	}
	next, _, err := s.number(nextKey) // the same may have moved it
	if err != nil {
		return 0, err
	}
	id := max(n.next, next)
	for ; id < maxNumber; id++ {
		if _, known := s.f.CrawlStats(id); !known { // else another program has used it since
			break
		}
	}
	if id == maxNumber {
		return 0, fmt.Errorf("serve: no number is left for another crawl: %w", frontier.ErrFull)
	}
	if err := s.setNumber(nextKey, id+1); err != nil { // first, or a crash might give a number twice
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

// CrawlName returns the name of a crawl by its number: crawl:N for one that another program
// put into the frontier.
func (s *Service) CrawlName(id uint32) string {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	if name, ok := s.names.name[id]; ok {
		return name
	}
	return fmt.Sprint("crawl:", id)
}

// CrawlNames returns the names that are in use, in order.
func (s *Service) CrawlNames() []string {
	s.names.mu.RLock()
	defer s.names.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.names.crawl))
}

// Adding lets the caller add URLs under numbers of crawls until it calls done: no crawl is
// forgotten meanwhile.
func (s *Service) Adding() (done func()) {
	s.names.adding.RLock()
	return s.names.adding.RUnlock
}

// AddingTo is for console.Options.Adding. It finds a crawl by its name, or by its number if that has a
// name; neither is DefaultCrawl.
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

// resolve gives entries the numbers of their crawls. It returns an error only if that has nothing to do with
// a name. The caller holds Adding.
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

// errGone is why a link is refused whose crawl was forgotten while its page was fetched: it would make the
// crawl anew.
var errGone = errors.New("the crawl was deleted and forgotten while the page was fetched")

// inheritLinks gives links what they do not say: the crawl of their page, and its depth and 1 more. The
// caller holds Adding.
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

// ForgetCrawl takes a crawl's name from its number, so that a crawl of that name begins
// anew. Delete its URLs first: it deletes only those that came meanwhile, and returns how many.
func (s *Service) ForgetCrawl(ctx context.Context, name string) (late int64, err error) {
	id, ok, err := s.unbind(Normal(name))
	if !ok || err != nil {
		return 0, err
	}
	return s.f.Delete(context.WithoutCancel(ctx), frontier.Crawl(id)) // no request can name them any more
}

// unbind takes a name from the number that it returns, while no URL is added under one.
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

// underWay reports whether pages of a crawl are fetched.
func (s *Service) underWay(id uint32) bool {
	x, _ := s.f.CrawlStats(id)
	return x.Leased > 0
}
