// This file notices pages that are gone though the status is 200.
//
// Of a host, several pages that were read and differed become one and the same text: it is
// what the host says of pages that are gone, or of all of them while it is being repaired.
// Nothing is asked for to find that out. That one of them is gone is confirmed like a 404.

package incremental

import "sync"

const (
	softPages = 5      // that became one text, until it counts as that of pages that are gone
	softTexts = 16     // of a host that are watched, each for pages that became it
	softHosts = 10_000 // that are watched
	softWords = 3      // fewer say nothing
)

// softGone watches what pages of hosts become. The zero value is ready to use.
type softGone struct {
	mu    sync.Mutex
	hosts map[string]*becoming // guarded by mu
}

// becoming is what pages of a host became.
type becoming struct {
	texts map[[8]byte]map[[8]byte]string // what they were before, and their URLs; by what they became
	known map[[8]byte]bool               // texts of pages that are gone
}

// judge is told what a page is now, with its number of words, and tells whether it is gone.
func (s *softGone) judge(host, url string, before, now copied, words int) bool {
	if words < softWords {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h != nil && h.known[now.text] {
		return true
	}
	if !before.has || before.key != now.key || before.text == now.text {
		return false
	}
	if h == nil {
		if s.hosts == nil || len(s.hosts) == softHosts {
			s.hosts = map[string]*becoming{}
		}
		h = &becoming{texts: map[[8]byte]map[[8]byte]string{}, known: map[[8]byte]bool{}}
		s.hosts[host] = h
	}
	pages := h.texts[now.text]
	if pages == nil {
		if len(h.texts) == softTexts {
			clear(h.texts)
		}
		pages = map[[8]byte]string{}
		h.texts[now.text] = pages
	}
	for text, other := range pages {
		if other == url {
			delete(pages, text) // it was counted already
		}
	}
	pages[before.text] = url
	if len(pages) < softPages {
		return false
	}
	delete(h.texts, now.text)
	if len(h.known) == softTexts {
		clear(h.known)
	}
	h.known[now.text] = true
	return true
}
