// This file commits what PutURLs and PutDiscovered receive: one Add for everything that waits, of all
// streams.

package urlfrontier

import (
	"errors"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// put is a URL that a client sent.
type put struct {
	info   *pb.URLInfo
	known  bool
	date   uint64 // refetch date of a known URL
	status pb.AckMessage_Status
	first  *put // the earlier put of the same discovered URL in the group, if any
}

// group is puts of one stream, acknowledged together.
type group struct {
	puts []put
	done chan struct{}
}

// groupPuts is about how many puts are committed together.
const groupPuts = 4096

// commitAll commits groups until the server closes.
func (s *Server) commitAll() {
	defer close(s.committed)
	c := &commit{s: s, touched: map[urlName]*put{}}
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
		c.all(groups)
		s.withholdSpent()
		s.write.Unlock()
		for _, g := range groups {
			close(g.done)
		}
	}
}

// submit hands puts to the committer, and returns when their statuses are set.
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

// commit is the committer's state. The holder of Server.write owns it.
type commit struct {
	s       *Server
	now     time.Time
	touched map[urlName]*put // URLs that the puts so far change
	adds    []frontier.Entry
	added   []*put // the put of each of adds
	dones   []done
}

// done is a lease to end.
type done struct {
	put     *put
	lease   frontier.Lease
	outcome frontier.Outcome
	entry   frontier.Entry // what becomes of the URL unless the outcome says so
	moves   bool           // it goes to another queue
}

// all commits groups.
func (c *commit) all(groups []*group) {
	defer c.s.svc.Adding()()
	c.now = c.s.svc.Frontier().Now()
	for _, g := range groups {
		for i := range g.puts {
			c.put(&g.puts[i])
		}
	}
	c.flush()
	for _, g := range groups {
		for i := range g.puts {
			if p := &g.puts[i]; p.first != nil {
				if p.status = pb.AckMessage_SKIPPED; p.first.status == pb.AckMessage_FAIL {
					p.status = pb.AckMessage_FAIL
				}
			}
		}
	}
}

// put takes in one put.
func (c *commit) put(p *put) {
	url, key := p.info.GetUrl(), p.info.GetKey()
	if key == "" {
		key = keyOf(url)
	}
	reported := p.info.GetMetadata()[leaseKey].GetValues()
	delete(p.info.GetMetadata(), leaseKey)
	e := frontier.Entry{URL: url, Host: key}
	env := serve.Envelope{Created: c.now, Refetch: uint64(c.now.Unix()), Priority: serve.Discovered, Meta: metadataOf(p.info.GetMetadata())}
	if p.known {
		env.Refetch, env.Priority = p.date, classOf(p.date, c.now)
		if e.Finished = p.date == 0; !e.Finished {
			e.NotBefore = timeOf(p.date)
		}
	}
	e.Meta = env.Append(nil)
	if key == "" || len(key) > maxKey || url == "" || len(url) > frontier.MaxURL || len(e.Meta) > frontier.MaxMeta ||
		len(serve.Normal(p.info.GetCrawlID())) > serve.MaxName {
		p.status = pb.AckMessage_SKIPPED
		return
	}
	var err error
	if e.Crawl, err = c.s.svc.NewCrawl(p.info.GetCrawlID()); err != nil {
		p.status = pb.AckMessage_FAIL
		return
	}
	name := urlName{e.Crawl, url}
	if first := c.touched[name]; first != nil {
		if !p.known {
			p.first = first
			return
		}
		c.flush()
	}
	c.touched[name] = p
	if p.known {
		if lease, ok := c.s.holds.take(name, time.Now()); ok {
			env.Created = envelopeOf(lease.Entry.Meta).Created
			e.Meta = env.Append(nil)
			d := done{put: p, lease: lease, outcome: outcomeOf(p, e, c.now), entry: e, moves: lease.Host != key}
			if len(reported) > 0 && reported[0] != lease.ID() { // it is of a contact before, and this one may be under way
				d.outcome.RetryAfter = max(d.outcome.RetryAfter, lease.Deadline.Sub(c.now))
			}
			if d.moves { // the lease ends in its old queue, and its URL does not return there
				d.outcome.Next, d.outcome.Meta = time.Time{}, nil
			}
			c.dones = append(c.dones, d)
			return
		}
		c.s.svc.Late(e.Crawl, url, outcomeOf(p, e, c.now))
	}
	c.add(e, p)
}

func (c *commit) add(e frontier.Entry, p *put) {
	c.adds, c.added = append(c.adds, e), append(c.added, p)
}

// flush commits the puts taken in so far.
func (c *commit) flush() {
	c.endLeases()
	if known := c.admit(); len(known) > 0 {
		c.bringBack(known)
	}
	clear(c.adds)
	clear(c.added)
	clear(c.dones)
	c.adds, c.added, c.dones = c.adds[:0], c.added[:0], c.dones[:0]
	clear(c.touched)
}

// admit adds the entries, and returns the indexes of known URLs that must change.
func (c *commit) admit() (known []int) {
	if len(c.adds) == 0 {
		return nil
	}
	verdicts, err := c.s.svc.Frontier().AddVerdicts(c.s.life, c.adds...)
	if verdicts == nil {
		c.s.log.Error("urlfrontier: URLs were not stored", "urls", len(c.adds), "error", err)
		for _, p := range c.added {
			p.status = pb.AckMessage_FAIL
		}
		return nil
	}
	for _, bad := range frontier.EntryErrors(err) {
		p := c.added[bad.Index]
		if p.status = pb.AckMessage_FAIL; verdicts[bad.Index] == frontier.EntryBad || errors.Is(bad, frontier.ErrLimit) {
			p.status = pb.AckMessage_SKIPPED
		}
	}
	for i, p := range c.added {
		e := &c.adds[i]
		q := queueName{e.Crawl, e.Host}
		switch verdicts[i] {
		case frontier.EntryRefused, frontier.EntryBad:
			continue
		case frontier.EntryKnown:
			if p.known || c.s.purged.has(q, e.URL) {
				known = append(known, i)
			} else {
				p.status = pb.AckMessage_SKIPPED
			}
			continue
		}
		c.s.purged.drop(q, e.URL)
		c.s.noteSpent(e.Host, e.Finished)
	}
	return known
}

// fewURLs is the most scheduled and completed URLs for which bringBack looks one up.
const fewURLs = 1000

// bringBack changes known URLs. One that no client has keeps its creation date if the look-up is cheap.
func (c *commit) bringBack(known []int) {
	f := c.s.svc.Frontier()
	stats := f.Stats()
	few := stats.Scheduled+stats.Finished <= fewURLs
	adds, added := c.adds, c.added
	c.adds, c.added = nil, nil
	for _, i := range known {
		e := adds[i]
		e.Force = true
		if env := envelopeOf(e.Meta); few && env.Created.Unix() == c.now.Unix() && !c.s.purged.has(queueName{e.Crawl, e.Host}, e.URL) {
			if u, err := c.s.svc.Inspector().Status(c.s.life, frontier.Entry{URL: e.URL, Host: e.Host, Crawl: e.Crawl}); err == nil && len(u.Entry.Meta) > 0 {
				env.Created = envelopeOf(u.Entry.Meta).Created
				e.Meta = env.Append(nil)
			}
		}
		c.add(e, added[i])
	}
	c.admit()
}

// endLeases ends all leases in one call.
func (c *commit) endLeases() {
	if len(c.dones) == 0 {
		return
	}
	c.finishSpent()
	ends, of := make([]frontier.End, 0, len(c.dones)), make([]*done, 0, len(c.dones))
	for i := range c.dones {
		if d := &c.dones[i]; d.put.status != pb.AckMessage_FAIL {
			ends, of = append(ends, frontier.End{Lease: d.lease, Outcome: d.outcome}), append(of, d)
		}
	}
	for i, ended := range c.s.svc.DoneAll(c.s.life, ends) {
		d, err := of[i], ended.Err
		late := errors.Is(err, frontier.ErrNotLeased)
		if err != nil && !late {
			c.fail(d, err)
			continue
		}
		c.s.noteSpent(d.lease.Host, d.entry.Finished || d.moves)
		if late || d.moves {
			c.add(d.entry, d.put)
		}
	}
}

// finishSpent finishes URLs whose last fetch in their queue failed. Otherwise the retry policy would let
// them come again.
func (c *commit) finishSpent() {
	var over []frontier.Entry
	var of []*done
	for i := range c.dones {
		if d := &c.dones[i]; d.spent() {
			e := d.entry
			e.Host, e.Force, e.Finished, e.NotBefore = d.lease.Host, true, true, time.Time{}
			over, of = append(over, e), append(of, d)
		}
	}
	if len(over) == 0 {
		return
	}
	verdicts, err := c.s.svc.Frontier().AddVerdicts(c.s.life, over...)
	if verdicts == nil {
		for _, d := range of {
			c.fail(d, err)
		}
	}
	for _, bad := range frontier.EntryErrors(err) {
		c.fail(of[bad.Index], bad)
	}
}

// fail reports that the end of a lease was not stored.
func (c *commit) fail(d *done, err error) {
	d.put.status = pb.AckMessage_FAIL
	c.s.log.Error("urlfrontier: the end of a lease was not stored", "error", err)
}

// spent reports whether the URL failed and must not come again in its queue.
func (d *done) spent() bool {
	return (d.entry.Finished || d.moves) && d.outcome.Result == frontier.Failed
}
