// This file gives crawls names. The frontier knows them by number. A number is never used
// for two names, so that a crawl that was deleted and begins again knows no URL.

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// DefaultCrawl is the name of crawl 0, and what an empty name stands for.
const DefaultCrawl = "DEFAULT"

// MaxName is the number of bytes that a crawl's name may have.
const MaxName = 255

// names are those of the crawls.
type names struct {
	path string // of the file; empty: none

	mu    sync.RWMutex
	crawl map[string]uint32 // guarded by mu
	name  map[uint32]string // guarded by mu
	next  uint32            // guarded by mu; the number of the next new crawl
}

// namesFile is what the file holds.
type namesFile struct {
	Next   uint32            `json:"next"`
	Crawls map[string]uint32 `json:"crawls"`
}

func openNames(dir string) (*names, error) {
	n := &names{crawl: map[string]uint32{}, name: map[uint32]string{}, next: 1}
	n.bind(DefaultCrawl, 0)
	if dir == "" {
		return n, nil
	}
	n.path = filepath.Join(dir, "served-crawls.json")
	b, err := os.ReadFile(n.path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	var file namesFile
	if err == nil {
		err = json.Unmarshal(b, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("serve: names of crawls: %w", err)
	}
	for name, id := range file.Crawls {
		n.bind(name, id)
		n.next = max(n.next, id+1)
	}
	n.next = max(n.next, file.Next)
	return n, nil
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
	if name = Normal(name); len(name) > MaxName {
		return 0, fmt.Errorf("serve: the name of a crawl has %d bytes; want at most %d", len(name), MaxName)
	}
	n := s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.crawl[name]; ok {
		return id, nil
	}
	id := n.next
	all := maps.Clone(n.crawl)
	all[name] = id
	if err := n.save(namesFile{Next: id + 1, Crawls: all}); err != nil {
		return 0, err
	}
	n.bind(name, id)
	n.next++
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

// ForgetCrawl takes a crawl's name from its number, so that a crawl of that name begins
// anew. It forgets no URL: delete them first.
func (s *Service) ForgetCrawl(name string) error {
	n := s.names
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.crawl[Normal(name)]
	if !ok {
		return nil
	}
	all := maps.Clone(n.crawl)
	delete(all, Normal(name))
	next := n.next
	if id == 0 { // the default crawl goes on under a new number
		all[DefaultCrawl] = next
		next++
	}
	if err := n.save(namesFile{Next: next, Crawls: all}); err != nil {
		return err
	}
	delete(n.crawl, Normal(name))
	delete(n.name, id)
	if new, ok := all[Normal(name)]; ok {
		n.bind(Normal(name), new)
	}
	n.next = next
	return nil
}

// save writes the file anew, or none of it.
func (n *names) save(file namesFile) (err error) {
	if n.path == "" {
		return nil
	}
	b, err := json.Marshal(file)
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(n.path), "served-crawls-*")
	if err != nil {
		return fmt.Errorf("serve: names of crawls: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("serve: names of crawls: %w", errors.Join(err, os.Remove(t.Name())))
		}
	}()
	_, err = t.Write(b)
	if err = errors.Join(err, t.Sync(), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), n.path)
}
