// This file makes the Lease that a caller gets from what is known in memory.

package frontier

import "github.com/seed-7440039f/frontier/internal/arena"

// leaseLocked hands out the next record of a queue, which is in memory.
func (f *Frontier) leaseLocked(l *Lease, qid uint32) {
	now := f.last
	due := f.core.hosts.at(f.core.queues.at(qid).host).due // of the lane that is taken
	f.newLease(l, f.core.lease(qid, f.nextToken(), now, now+int64(f.opts.LeaseTime)))
	f.setDue(l, due)
}

// setDue tells when the host of a lease that is handed out might be contacted.
func (f *Frontier) setDue(l *Lease, due int64) {
	if due > 0 {
		l.Due = f.wall(due)
	}
}

// newLease describes lease record id in l, which is zero, but for Due.
func (f *Frontier) newLease(l *Lease, id uint32) {
	r := f.core.leases.at(id)
	h := f.core.hosts.at(r.host)
	l.LeasedAt, l.Deadline = f.wall(r.leasedAt), f.wall(r.deadline)
	l.Attempt = 1
	l.token, l.record, l.moment = r.token, id, r.leasedAt
	if r.group != 0 {
		l.Group = f.core.groupName(f.core.groups.at(r.group))
	}
	if r.record == 0 {
		l.Host = string(f.core.name(h))
		return
	}
	q := f.core.queues.at(r.queue)
	l.Priority = f.core.priorityOf(q)
	l.Entry, l.History, l.Attempt = f.entryLocked(r.record)
	l.Entry.Crawl = f.core.crawlOf(q).id
	l.Host = within(l.Entry.URL, f.core.name(h))
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
