// This file commits what PutURLs and PutDiscovered bring: everything that waits, of all streams,
// in one Add.

package urlfrontier

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// put is a URL that a client brings.
type put struct {
	info   *pb.URLInfo
	known  bool
	date   uint64 // of a known one
	status pb.AckMessage_Status
}

// group are puts of one stream that it acknowledges together.
type group struct {
	puts []put
	done chan struct{}
}

const (
	groupPuts   = 4096 // that are committed together, about
	doneWorkers = 128  // that end leases at once
)

// commitAll commits groups until the server closes.
func (s *Server) commitAll() {
	defer close(s.committed)
	c := &commit{s: s, touched: map[mark]bool{}}
	var groups []*group
	for g := range s.groups {
		groups = append(groups[:0], g)
		n := len(g.puts)
		for more := true; more && n < groupPuts; {
			select {
			case g, more = <-s.groups:
				if more {
					groups = append(groups, g)
					n += len(g.puts)
				}
			default:
				more = false
			}
		}
		s.write.Lock()
		c.now = time.Now()
		for _, g := range groups {
			for i := range g.puts {
				c.put(&g.puts[i])
			}
		}
		c.flush()
		s.changes.Add(1)
		s.withholdSpent()
		s.write.Unlock()
		for _, g := range groups {
			close(g.done)
		}
	}
}

// submit has puts committed, and returns when their statuses are known.
func (s *Server) submit(puts []put) {
	if len(puts) == 0 {
		return
	}
	g := &group{puts: puts, done: make(chan struct{})}
	s.sending.RLock()
	closed := s.closed
	if !closed {
		s.groups <- g
	}
	s.sending.RUnlock()
	if closed {
		for i := range puts {
			puts[i].status = pb.AckMessage_FAIL
		}
		return
	}
	<-g.done
}

// commit is what the committer has at hand. It belongs to the holder of Server.write.
type commit struct {
	s       *Server
	now     time.Time
	touched map[mark]bool // URLs that what follows changes
	adds    []frontier.Entry
	added   []change // for each of adds
	dones   []done
	moves   bool   // some of dones move
	again   []*put // discovered ones that are touched
}

// change is what the book notes when an entry is admitted.
type change struct {
	put  *put
	mark mark
	name queueName
	fin  bool
	born uint32
}

// done is the end of a lease, or the move of a URL to another queue.
type done struct {
	change
	lease   frontier.Lease // zero: no client has it
	outcome frontier.Outcome
	entry   frontier.Entry // what becomes of it, if the outcome does not say so
	from    string         // the key from which it moves; empty: it does not
	err     error
}

// put takes one in.
func (c *commit) put(p *put) {
	url, key := p.info.GetUrl(), p.info.GetKey()
	if key == "" {
		key = keyOf(url)
	}
	if key == "" || len(key) > maxKey || url == "" || len(url) > frontier.MaxURL {
		p.status = pb.AckMessage_SKIPPED
		return
	}
	id, err := c.s.svc.NewCrawl(p.info.GetCrawlID())
	if err != nil {
		p.status = pb.AckMessage_FAIL
		if len(serve.Normal(p.info.GetCrawlID())) > serve.MaxName {
			p.status = pb.AckMessage_SKIPPED
		}
		return
	}
	ch := change{put: p, mark: c.s.book.markOf(id, url), name: queueName{id, key}, born: uint32(c.now.Unix())}
	if c.touched[ch.mark] {
		if !p.known {
			c.again = append(c.again, p)
			return
		}
		c.flush()
	}
	was, isKnown := c.s.book.find(ch.mark)
	if isKnown && !p.known {
		p.status = pb.AckMessage_SKIPPED
		return
	}
	c.touched[ch.mark] = true
	e := frontier.Entry{URL: url, Host: key, Crawl: id, Force: true}
	env := serve.Envelope{Created: c.now, Refetch: uint64(c.now.Unix()), Priority: serve.Discovered, Meta: metadataOf(p.info.GetMetadata())}
	if !p.known {
		e.Meta = env.Append(nil)
		c.add(e, ch)
		return
	}
	ch.fin = p.date == 0
	env.Refetch, env.Priority = p.date, classOf(p.date, c.now)
	if e.Finished = ch.fin; !ch.fin {
		e.NotBefore = timeOf(p.date)
	}
	from := key // the key until now
	if isKnown {
		from = c.s.book.keyOf(was.queue)
		ch.born = was.created
		env.Created = time.Unix(int64(was.created), 0)
	}
	e.Meta = env.Append(nil)
	lease, leased := c.s.book.take(ch.mark, c.now)
	switch {
	case from != key:
		c.dones = append(c.dones, done{change: ch, lease: lease, outcome: frontier.Outcome{Result: frontier.Requeue}, entry: e, from: from})
		c.moves = true
	case leased:
		c.dones = append(c.dones, done{change: ch, lease: lease, outcome: outcomeOf(p, e, c.now), entry: e})
	default:
		c.add(e, ch)
	}
}

func (c *commit) add(e frontier.Entry, ch change) {
	c.adds, c.added = append(c.adds, e), append(c.added, ch)
}

// flush commits everything that was taken in.
func (c *commit) flush() {
	c.endLeases()
	c.admit()
	for _, p := range c.again {
		p.status = pb.AckMessage_SKIPPED
		if id, ok := c.s.svc.Crawl(p.info.GetCrawlID()); !ok || !c.s.book.knows(c.s.book.markOf(id, p.info.GetUrl())) {
			p.status = pb.AckMessage_FAIL
		}
	}
	clear(c.adds)
	clear(c.dones)
	c.adds, c.added, c.dones, c.again = c.adds[:0], c.added[:0], c.dones[:0], c.again[:0]
	clear(c.touched)
	c.moves = false
}

// admit adds the entries, and notes those that were admitted.
func (c *commit) admit() {
	if len(c.adds) == 0 {
		return
	}
	verdicts, err := c.s.svc.Frontier().AddVerdicts(c.s.life, c.adds...)
	if verdicts == nil {
		c.s.log.Error("urlfrontier: URLs were not stored", "urls", len(c.adds), "error", err)
		for i := range c.added {
			c.added[i].put.status = pb.AckMessage_FAIL
		}
		return
	}
	for _, bad := range frontier.EntryErrors(err) {
		p := c.added[bad.Index].put
		if p.status = pb.AckMessage_FAIL; verdicts[bad.Index] == frontier.EntryBad || errors.Is(bad, frontier.ErrLimit) {
			p.status = pb.AckMessage_SKIPPED
		}
	}
	b := c.s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range c.added {
		ch := &c.added[i]
		if v := verdicts[i]; v != frontier.EntryRefused && v != frontier.EntryBad {
			b.putLocked(ch.mark, ch.name, ch.born, ch.fin)
			c.s.noteSpent(ch.name.key, ch.fin)
		}
	}
}

// endLeases ends leases and moves URLs with a fixed number of workers: what they do shares commits.
func (c *commit) endLeases() {
	if len(c.dones) == 0 {
		return
	}
	if c.moves { // nobody gets a URL while it is in two queues
		c.s.hand.Lock()
		defer c.s.hand.Unlock()
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(doneWorkers, len(c.dones)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(c.dones)); i = next.Add(1) - 1 {
				d := &c.dones[i]
				d.err = c.s.carryOut(d)
			}
		})
	}
	wg.Wait()
	b := c.s.book
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range c.dones {
		d := &c.dones[i]
		switch {
		case errors.Is(d.err, frontier.ErrNotLeased): // it had just ended
			c.add(d.entry, d.change)
		case d.err != nil:
			d.put.status = pb.AckMessage_FAIL
			c.s.log.Error("urlfrontier: the end of a lease or a move was not stored", "error", d.err)
		default:
			b.putLocked(d.mark, d.name, d.born, d.fin)
			c.s.noteSpent(d.name.key, d.fin)
		}
	}
}

// carryOut ends a lease, or moves a URL.
func (s *Server) carryOut(d *done) (err error) {
	if d.from == "" && d.fin && d.outcome.Result == frontier.Failed { // the retry policy would let it come again
		if _, err := s.svc.Frontier().Add(s.life, d.entry); err != nil {
			return err
		}
	}
	if d.lease.Token() != 0 {
		_, err = s.svc.Frontier().DoneContext(s.life, d.lease, d.outcome)
	}
	if d.from == "" || err != nil && !errors.Is(err, frontier.ErrNotLeased) {
		return err
	}
	// A Force finds a URL under its key only, and outdates all its records on disk that wait for a
	// time. So the URL waits in its new queue until the old record is gone. It is in one of them at
	// any moment, whatever ends the process.
	waits, gone := d.entry, d.entry
	waits.Finished, waits.NotBefore = false, time.Time{}
	gone.Host, gone.Meta, gone.Finished, gone.NotBefore = d.from, nil, false, removed
	for _, e := range []frontier.Entry{waits, gone, d.entry} {
		if _, err := s.svc.Frontier().Add(s.life, e); err != nil {
			return err
		}
	}
	return nil
}
