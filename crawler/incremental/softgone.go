// This file detects pages that are gone although the status is 200.
//
// If several pages of a host that were read and differed turn into the same text, it is the host's
// text for pages that are gone, or for all pages during maintenance. This takes no additional
// requests. That a page is gone is confirmed as for a 404.

package incremental

import "sync"

const (
	softPages = 5      // pages that must turn into a text before it means gone
	softTexts = 16     // of a host that are watched, each for pages that became it
	softHosts = 10_000 // that are watched
	softWords = 3      // fewer say nothing
)

// softGone records what pages of hosts turn into. The zero value is ready to use.
type softGone struct {
	mu    sync.Mutex
	hosts map[string]*becoming // guarded by mu
}

// becoming records what pages of one host turned into.
type becoming struct {
	texts map[[8]byte]map[[8]byte]string // by the new text: the earlier texts, and their URLs
	known map[[8]byte]bool               // texts of pages that are gone
}

// judge records the current text of a page and its number of words, and reports whether the page is
// gone.
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
