// This file lists URLs and queues, and deletes the URLs of a host.

package serve

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/seed-7440039f/frontier"
)

// listBytes is about how much of a listing is written at once.
const listBytes = 32 << 10

// listing is an answer that is written line by line.
type listing struct {
	c    *call
	b    []byte
	left int // lines that may follow; negative: any number

	release func() // its slot
}

// list begins a listing of at most n lines, by the parameter n; without it, or with 0, of all. The caller calls release in the end.
func (c *call) list() (*listing, error) {
	n := 0
	if v := c.query.Get("n"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 0 {
			return nil, badRequest("n is %.40q; want a number, 0 or more", v)
		}
	}
	if n == 0 {
		n = -1
	}
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	c.undeadline()
	c.send(http.StatusOK, "application/x-ndjson", nil)
	return &listing{c: c, left: n, release: release}, nil
}

// full reports whether the listing has all the lines that were asked for.
func (l *listing) full() bool { return l.left == 0 }

// end ends a line, which was appended to b.
func (l *listing) end(b []byte) error {
	l.left--
	l.b = append(b, '}', '\n')
	if len(l.b) < listBytes {
		return nil
	}
	return l.write()
}

func (l *listing) write() error {
	err := l.c.write(l.b)
	l.b = l.b[:0]
	return err
}

// mostFound is how many URLs QueueURLs returns at most.
const mostFound = 10_000

// QueueURLs returns the URLs that a host has in a crawl, of all states, as Frontier.Scan yields them, if they are found
// without a look at the others: they are few, and all of them wait. host is as Frontier.HostKey returns it.
func (s *Service) QueueURLs(ctx context.Context, crawl uint32, host string) (all iter.Seq2[frontier.StoredURL, error], ok bool, err error) {
	n, _, err := s.f.QueueStats(host, crawl)
	r := s.f.RuleOf(host)
	if err != nil || n.Scheduled+n.Leased+n.Finished > 0 || n.Waiting > mostFound || r.Priority != 0 || r.Priorities != (frontier.PriorityMap{}) {
		return nil, false, nil // an error is Scan's to report, if it is not that nothing is counted
	}
	urls := make([]frontier.StoredURL, 0, n.Waiting)
	for u, err := range s.f.URLs(ctx, frontier.Host(host), "") {
		if err != nil {
			return nil, false, err
		}
		if u.Priority == frontier.Immediate {
			return nil, false, nil // what it had been admitted with is not known here
		}
		if u.Entry.Crawl == crawl {
			urls = append(urls, frontier.StoredURL{Entry: u.Entry, Host: u.Host, Priority: u.Priority, Attempt: u.Attempt, History: u.History})
		}
		if int64(len(urls)) > n.Waiting {
			break
		}
	}
	all = func(yield func(frontier.StoredURL, error) bool) {
		for _, u := range urls {
			if !yield(u, nil) {
				return
			}
		}
	}
	return all, int64(len(urls)) == n.Waiting, nil // or some have just come or gone
}

// getList lists URLs of all states, of one moment.
func (s *Service) getList(c *call) error {
	q := c.query
	var crawl uint32
	if q.Has("crawl") {
		var ok bool
		if crawl, ok = s.Crawl(q.Get("crawl")); !ok {
			return unknownCrawl(q.Get("crawl"))
		}
	}
	finished, err := c.flag("finished")
	if err != nil {
		return err
	}
	host := ""
	if q.Has("host") {
		if host, err = s.host(q.Get("host")); err != nil {
			return err
		}
	}
	l, err := c.list()
	if err != nil {
		return err
	}
	defer l.release()
	all := s.f.Scan(c.ctx)
	if q.Has("crawl") && q.Has("host") {
		if urls, ok, err := s.QueueURLs(c.ctx, crawl, host); err != nil {
			return err
		} else if ok {
			all = urls
		}
	}
	for u, err := range all {
		if err != nil {
			return err
		}
		if q.Has("crawl") && u.Entry.Crawl != crawl || q.Has("host") && u.Host != host || q.Has("finished") && u.Entry.Finished != finished {
			continue
		}
		if l.full() {
			break
		}
		b := appendString(append(l.b, '{'), "url", u.Entry.URL)
		b = appendString(b, "crawl", s.CrawlName(u.Entry.Crawl))
		b = appendString(b, "host", u.Host)
		b = appendInt(b, "priority", u.Priority)
		b = appendInt(b, "attempt", u.Attempt)
		b = appendInt(b, "depth", u.Entry.Depth)
		b = appendTime(b, "not_before", u.Entry.NotBefore)
		if u.Entry.Finished {
			b = append(appendMember(b, "finished"), "true"...)
		}
		if l.end(s.appendKept(b, u.Entry.Meta, &u.History)) != nil {
			return nil // the client is gone
		}
	}
	_ = l.write()
	return nil
}

// getQueues lists the hosts that have URLs of a crawl, and how many.
func (s *Service) getQueues(c *call) error {
	_, id, err := c.crawl()
	if err != nil {
		return err
	}
	l, err := c.list()
	if err != nil {
		return err
	}
	defer l.release()
	for host, n := range s.f.Queues(id, c.query.Get("after")) {
		if l.full() {
			break
		}
		b := appendString(append(l.b, '{'), "host", host)
		b = appendInt(b, "waiting", int(n.Waiting))
		b = appendInt(b, "scheduled", int(n.Scheduled))
		b = appendInt(b, "leased", int(n.Leased))
		if l.end(appendInt(b, "finished", int(n.Finished))) != nil {
			return nil // the client is gone
		}
	}
	_ = l.write()
	return nil
}

// deleteHost deletes the URLs of a host, in one crawl or in all. With forget they become unknown.
func (s *Service) deleteHost(c *call) error {
	host, err := s.host(c.r.PathValue("host"))
	if err != nil {
		return err
	}
	o := frontier.DeleteOptions{Scope: frontier.Host(host)}
	if q := c.query; q.Has("crawl") {
		id, ok := s.Crawl(q.Get("crawl"))
		if !ok {
			return unknownCrawl(q.Get("crawl"))
		}
		o.Crawls = []uint32{id}
	}
	if o.Forget, err = c.flag("forget"); err != nil {
		return err
	}
	n, err := s.f.DeleteWith(c.ctx, o)
	if err != nil {
		return err
	}
	s.log.Info("a client deleted the URLs of a host", "host", host, "urls", n, "who", c.who)
	return c.reply(map[string]int64{"deleted": n})
}

func unknownCrawl(name string) error {
	return &problem{kind: "unknown-crawl", status: http.StatusNotFound, detail: "there is no crawl " + strconv.Quote(name)}
}
