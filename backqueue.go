// This file is the back end of Mercator's figure: a host's back queue, seen from a hand-out.
//
// The queues lie in package mercator, which gives one to a host with its turn. Here the first URLs of
// a queue are read from disk when they are not in memory, outside the lock and by the caller that
// waits for them; and a record becomes a Lease.

package frontier

import (
	"context"
	"errors"
	"math/bits"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/patience"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// leaseLocked hands out the next record of a queue, which is in memory.
func (s *shard) leaseLocked(l *Lease, qid uint32) {
	now := s.last
	due := s.core.Hosts.At(s.core.Queues.At(qid).Host).Due // of the lane that is taken
	s.newLeaseLocked(l, s.core.Lease(qid, s.nextTokenLocked(), now, now+int64(s.opts.LeaseTime)))
	s.setDue(l, due)
}

// setDue sets the time at which the host of a lease might be contacted.
func (s *shared) setDue(l *Lease, due int64) {
	if due > 0 {
		l.Due = s.clock.Wall(due)
	}
}

// newLeaseLocked describes lease record id in l, which is zero except for Due.
func (s *shard) newLeaseLocked(l *Lease, id uint32) {
	r := s.core.Leases.At(id)
	h := s.core.Hosts.At(r.Host)
	l.LeasedAt, l.Deadline = s.clock.Wall(r.LeasedAt), s.clock.Wall(r.Deadline)
	l.Attempt = 1
	l.token, l.record, l.moment, l.bundle = r.Token, id, r.LeasedAt, r.Bundle
	if r.Bundle != 0 {
		l.Gap = leastGap + time.Duration(h.CrawlDelayNs())
	}
	if r.Group != 0 {
		l.Group = s.core.GroupName(s.core.Groups.At(r.Group))
	}
	if r.Record == 0 {
		l.Host = string(s.core.Name(h))
		return
	}
	q := s.core.Queues.At(r.Queue)
	l.Priority = s.core.PriorityOf(q)
	s.describeLocked(r.Record, h, &l.Entry, &l.History, &l.Attempt)
	l.Entry.Crawl = s.core.CrawlNumber(q)
	if l.Host = l.Entry.Host; l.Host == "" {
		l.Host = within(l.Entry.URL, s.core.Name(h))
	}
}

// describeLocked decodes a resident record of a host into e, h and attempt, which are zero.
func (s *shard) describeLocked(ref arena.Ref, of *mercator.Host, e *Entry, h *History, attempt *int) {
	b := record.Must(s.core.Records.At(ref).Body())
	e.URL, e.Depth, e.Weight = string(b.URL), b.Depth, b.Weight
	if b.Named {
		e.Host = string(s.core.Name(of))
	}
	if len(b.Meta) > 0 {
		e.Meta = append([]byte(nil), b.Meta...)
	}
	if b.History != (record.History{}) {
		*h = historyOf(&b.History)
	}
	*attempt = b.Fails + 1
}

// entryLocked decodes a resident record of a host.
func (s *shard) entryLocked(ref arena.Ref, h *mercator.Host) (e Entry, attempt int) {
	s.describeLocked(ref, h, &e, &History{}, &attempt)
	return e, attempt
}

// entryOf copies what a body says of a URL of a host, its crawl excepted.
func entryOf(b *record.Body, host string) Entry { return entryAt(string(b.URL), b, host) }

// entryAt is entryOf with the URL that the body has.
func entryAt(url string, b *record.Body, host string) Entry {
	e := Entry{URL: url, Depth: b.Depth, Weight: b.Weight}
	if b.Named {
		e.Host = host
	}
	if len(b.Meta) > 0 {
		e.Meta = append([]byte(nil), b.Meta...)
	}
	return e
}

// loadJob is a read that its owner must do: the host is in place loading.
type loadJob struct {
	mercator.Choice
	part storage.Part
}

func (s *shard) jobLocked(ch mercator.Choice) *loadJob {
	return &loadJob{ch, s.core.Blocks.Part(ch.Load)}
}

// load reads the records of a job and leases the first. It waits for the disk.
func (f *Frontier) load(job *loadJob) (g grant) {
	for job != nil {
		records, err := f.read(job.part, job.Want)
		if err != nil && err != ErrClosed {
			f.emit(event.Event{Kind: event.StoreError, Reason: "reading URLs", Count: int64(bits.OnesCount32(job.Want)), Err: err})
		}
		job = f.loaded(&g, job, records, err)
	}
	return g
}

// loaded ends a job whose records were read, or could not be, and fills g, which is zero, or
// returns a job that comes before. If they cannot be read the caller gets the error; records
// that are damaged are given up in memory, and left on disk.
func (f *Frontier) loaded(g *grant, job *loadJob, records []fifo.Loaded, err error) (before *loadJob) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.nowLocked()
	f.readEndedLocked()
	if err != nil {
		if errors.As(err, new(*CorruptError)) {
			f.core.Abandon(job.Queue, job.Load)
		}
		inside{f}.Lost(err)
		f.core.Unload(job.Host, now)
		f.dispatchLocked()
		g.err = err
		return nil
	}
	q := f.core.Queues.At(job.Queue)
	f.core.Fifo.Install(&q.Queue, job.Load, records)
	if q.Waiting == 0 || f.refusalLocked() != nil || !f.core.CrawlOf(q).Runs() || !f.core.Claim(job.Host, now) {
		f.core.Unload(job.Host, now) // its last URL was moved by a Force, a late Done asked for time, or a rule or its crawl says so
		g.err = f.refusalLocked()
		g.again = g.err == nil
		f.dispatchLocked()
		return nil
	}
	if f.core.Deletions.InForce.Len() > 0 && !f.core.HeadAlive(job.Queue, now) {
		g.again = true
		f.dispatchLocked()
		return nil
	}
	if ch := f.core.Prepare(job.Queue); ch.Load != 0 { // all that was read had been taken
		return f.jobLocked(ch)
	}
	f.leaseLocked(&g.lease, job.Queue)
	f.dispatchLocked() // others may wait for its deadline, or have another lane of the host
	return nil
}

// readFor is read for a caller that waits until ctx ends.
func (s *shard) readFor(ctx context.Context, p storage.Part, want uint32) ([]fifo.Loaded, error) {
	return patience.Ask(ctx, s.abandoned, func() ([]fifo.Loaded, error) { return s.read(p, want) })
}

// peek copies the wanted records of a part out of the Spill if it need not wait for the disk;
// otherwise it returns nil.
func (s *shared) peek(p storage.Part, want uint32) *fifo.Copy {
	if s.peeker == nil {
		return nil
	}
	c := fifo.NewCopy()
	if s.peeker.Peek(p, want, c.Add) && c.Check() == nil {
		return c
	}
	c.Free()
	return nil
}

// read copies the wanted records of a part out of the Spill.
func (s *shard) read(p storage.Part, want uint32) ([]fifo.Loaded, error) {
	c := fifo.NewCopy() // the caller keeps it
	if err := s.opts.Spill.Load(p, want, c.Add); err != nil {
		if s.isClosed() {
			return nil, ErrClosed
		}
		return nil, err
	}
	return c.Records, c.Check()
}

// within returns the host key as a piece of its URL if it is one, which spares
// an allocation for each lease.
func within(url string, name []byte) string {
	if at := strings.IndexByte(url, ':') + len("://"); len(url) >= at+len(name) && url[at:at+len(name)] == string(name) {
		return url[at : at+len(name)]
	}
	return string(name)
}

// loadFor is load for a caller that waits until ctx ends. A lease that comes later is
// given back. What need not wait for the disk is read at once, the rest by another goroutine.
func (f *Frontier) loadFor(ctx context.Context, job *loadJob) (g grant) {
	for job != nil {
		c := f.peek(job.part, job.Want)
		if c == nil {
			return f.loadElsewhere(ctx, job)
		}
		job = f.loaded(&g, job, c.Records, nil)
		c.Free()
	}
	return g
}

// loadElsewhere is load in another goroutine.
func (f *Frontier) loadElsewhere(ctx context.Context, job *loadJob) grant {
	var g grant
	if err := f.hands.Do(ctx, f.abandoned, func() { g = f.load(job) }, func() { f.giveBack(&g, nil) }); err != nil {
		return grant{err: err}
	}
	return g
}
