// This file reads the next URLs of a host from disk, outside the lock and in the
// goroutine that wants them.

package frontier

import (
	"context"
	"errors"
	"math/bits"
	"strings"
)

// claim reports whether a host in place loading may still be leased. If it has
// come to another group meanwhile it takes a slot of that.
func (c *core) claim(id uint32, now int64) bool {
	h := c.hosts.at(id)
	if h.due > now || c.full(id) || !c.mayServe(id, now) || !h.holdsSlot && !c.takeSlot(h.group, now) {
		return false
	}
	h.holdsSlot = h.group != 0
	return true
}

// prepare tells whether the queue's next record must be read from disk.
func (c *core) prepare(qid uint32) choice {
	q := c.queues.at(qid)
	ch := choice{host: q.host, queue: qid}
	if q.front.first == 0 {
		ch.load, ch.want = c.nextPart(q)
	}
	return ch
}

// unload puts a host back whose next record was not read after all.
func (c *core) unload(id uint32, now int64) {
	h := c.hosts.at(id)
	c.dropSlot(h, now)
	c.put(h, nowhere)
	h.served = max(h.served, 1) // still bound
	c.settle(id, now)
}

// loadJob is a read that the holder must do: its host is in place loading.
type loadJob struct {
	choice
	part Part
}

func (f *Frontier) jobLocked(ch choice) *loadJob {
	p := f.core.parts.at(ch.load)
	t := f.core.detail(p)
	return &loadJob{ch, Part{Block: p.block, First: t.first, Count: t.count}}
}

// load reads the records of a job and leases the first. If they cannot be read
// the caller gets the error; records that are damaged are given up in memory,
// and left on disk.
func (f *Frontier) load(job *loadJob) grant {
	records, err := f.read(job.part, job.want)
	if err != nil && err != ErrClosed {
		f.emit(Event{Kind: EventStoreError, Reason: "reading URLs", Count: int64(bits.OnesCount32(job.want)), Err: err})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.nowLocked()
	f.readEndedLocked()
	if err != nil {
		var corrupt *CorruptError
		if errors.As(err, &corrupt) {
			f.core.abandon(job.queue, job.load)
		}
		f.core.unload(job.host, now)
		f.dispatchLocked()
		return grant{err: err}
	}
	f.core.install(job.queue, job.load, records)
	q := f.core.queues.at(job.queue)
	if q.waiting == 0 || f.draining || !f.core.crawlOf(q).runs() || !f.core.claim(job.host, now) {
		f.core.unload(job.host, now) // its last URL was moved by a Force, a late Done asked for time, or a rule or its crawl says so
		if f.draining {
			f.dispatchLocked()
			return grant{err: ErrClosed}
		}
		f.dispatchLocked()
		return grant{again: true}
	}
	if f.core.dooms.n > 0 && !f.core.spared(job.queue, now) {
		f.dispatchLocked()
		return grant{again: true}
	}
	if ch := f.core.prepare(job.queue); ch.load != 0 { // all that was read had been taken
		job := f.jobLocked(ch)
		f.mu.Unlock()
		g := f.load(job)
		f.mu.Lock()
		return g
	}
	var g grant
	f.leaseLocked(&g.lease, job.queue)
	f.dispatchLocked() // others may wait for its deadline, or have another lane of the host
	return g
}

// readFor is read for a caller that waits until ctx ends.
func (f *Frontier) readFor(ctx context.Context, p Part, want uint32) ([]loaded, error) {
	return ask(ctx, f, func() ([]loaded, error) { return f.read(p, want) })
}

// read copies the wanted records of a part out of the Spill.
func (f *Frontier) read(p Part, want uint32) ([]loaded, error) {
	out := make([]loaded, 0, bits.OnesCount32(want))
	var buf []byte // of the bodies; it may become another one meanwhile
	err := f.opts.Spill.Load(p, want, func(i int, r Record) {
		at := len(buf)
		buf = append(buf, r.Body...)
		out = append(out, loaded{pos: i, seq: r.Seq, body: buf[at:len(buf):len(buf)]})
	})
	if err != nil {
		if f.isClosed() {
			return nil, ErrClosed
		}
		return nil, err
	}
	for _, r := range out {
		if _, err := decodeBody(r.body); err != nil {
			return nil, &CorruptError{Err: err}
		}
	}
	return out, nil
}

// within returns the host key as a piece of its URL if it is one, which spares
// an allocation for each lease.
func within(url string, name []byte) string {
	if i := strings.Index(url, "://"); i >= 0 {
		if rest := url[i+3:]; len(rest) >= len(name) && rest[:len(name)] == string(name) {
			return rest[:len(name)]
		}
	}
	return string(name)
}
