// This file keeps scripts, so that a host is not asked for the same one with each page.

package frontierchromedp

import (
	"container/list"
	"net/http"
	"strings"
	"sync"
	"time"
)

// scripts is a cache by URL.
type scripts struct {
	ttl   time.Duration
	limit int64

	mu    sync.Mutex
	by    map[string]*list.Element // guarded by mu; of *script
	order list.List                // guarded by mu; last used first
	bytes int64                    // guarded by mu
}

type script struct {
	url     string
	header  http.Header
	body    []byte
	expires time.Time
}

func newScripts(ttl time.Duration, limit int64) *scripts {
	return &scripts{ttl: ttl, limit: limit, by: map[string]*list.Element{}}
}

// find returns a script that may be used again, or nil.
func (s *scripts) find(url string) *script {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.by[url]
	if e == nil {
		return nil
	}
	x := e.Value.(*script)
	if time.Now().After(x.expires) {
		s.removeLocked(e)
		return nil
	}
	s.order.MoveToFront(e)
	return x
}

// keep stores a script that was answered with status 200, unless its host forbids it.
func (s *scripts) keep(url string, h http.Header, body []byte) {
	if said := strings.ToLower(h.Get("Cache-Control")); strings.Contains(said, "no-store") || strings.Contains(said, "no-cache") || h.Get("Vary") == "*" {
		return
	}
	x := &script{url: url, header: h, body: body, expires: time.Now().Add(s.ttl)}
	if x.size() > s.limit {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.by[url]; e != nil {
		s.removeLocked(e)
	}
	for s.bytes+x.size() > s.limit {
		s.removeLocked(s.order.Back())
	}
	s.by[url] = s.order.PushFront(x)
	s.bytes += x.size()
}

func (s *scripts) removeLocked(e *list.Element) {
	x := s.order.Remove(e).(*script)
	delete(s.by, x.url)
	s.bytes -= x.size()
}

func (x *script) size() int64 { return int64(len(x.body) + len(x.url) + 1000) }
