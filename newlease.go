// This file makes the Lease that a caller gets from what is known in memory.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// leaseLocked hands out the next record of a queue, which is in memory.
func (f *Frontier) leaseLocked(qid uint32) Lease {
	now := f.last
	return f.newLease(f.core.lease(qid, f.nextToken(), now, now+int64(f.opts.LeaseTime)))
}

// newLease describes lease record id.
func (f *Frontier) newLease(id uint32) Lease {
	r := f.core.leases.at(id)
	h := f.core.hosts.at(r.host)
	l := Lease{
		LeasedAt: f.wall(r.leasedAt),
		Deadline: f.wall(r.deadline),
		Attempt:  1,
		token:    r.token,
		record:   id,
	}
	if r.group != 0 {
		l.Group = f.core.groups.at(r.group).name
	}
	if r.record == 0 {
		l.Host = string(f.core.name(h))
		return l
	}
	q := f.core.queues.at(r.queue)
	l.Priority = f.core.priorityOf(q)
	l.Entry, l.History, l.Attempt = f.entryLocked(r.record)
	l.Entry.Crawl = f.core.crawlOf(q).id
	l.Host = within(l.Entry.URL, f.core.name(h))
	return l
}

// entryLocked decodes a resident record.
func (f *Frontier) entryLocked(ref arena.Ref) (Entry, History, int) {
	b, err := decodeBody(f.core.record(ref).body())
	if err != nil {
		panic("frontier: a record in memory is malformed") // we encoded it, or checked it
	}
	return b.entry(), b.history, b.fails + 1
}

// entry copies what a body says of the URL, its crawl excepted.
func (b *body) entry() Entry {
	e := Entry{URL: string(b.url), Depth: b.depth, Weight: b.weight}
	if len(b.meta) > 0 {
		e.Meta = append([]byte(nil), b.meta...)
	}
	return e
}
