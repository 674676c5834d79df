// This file reads the log: batches since the last checkpoint.

package recovery

import (
	"cmp"
	"slices"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/move"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/storage"
)

// Batch takes a batch of the log.
func (r *Recovery) Batch(b *storage.Batch) error {
	c := r.Core
	r.Last = b.ID
	r.LogBytes += move.LogBytes(b)
	at := c.Clock.StoredDue(b.Time)
	for i := range b.Admit {
		a := &b.Admit[i]
		if _, err := record.Decode(a.Body); err != nil {
			return &storage.CorruptError{Err: err}
		}
		qid, err := r.queue(a.Queue)
		if err != nil {
			return err
		}
		x := logged{queue: qid, since: at}
		if a.Due != 0 {
			x.ref, x.timed, x.due = c.Records.StoreForRing(a.Seq, a.Body), true, c.Clock.StoredDue(a.Due)
			x.since = max(at, x.due)
		} else {
			x.ref = c.Records.Store(a.Seq, a.Body)
		}
		r.log[a.Seq] = x
		r.order = append(r.order, a.Seq)
		r.Seq = max(r.Seq, a.Seq)
		if a.HasMark {
			r.Known.Insert(a.Mark)
			r.Known.Log(a.Mark)
		}
	}
	for _, m := range b.Marks {
		if r.Known.Insert(m) {
			r.Known.Log(m)
		}
	}
	for _, x := range b.Finish {
		r.completion(x)
	}
	return nil
}

// completion ends a record that lies in the log or, if it left it, in a block.
func (r *Recovery) completion(x storage.Completion) {
	if l, ok := r.log[x.Seq]; ok {
		r.Core.Records.Discard(l.ref)
		delete(r.log, x.Seq)
		return
	}
	r.blocks.Finish(x)
}

// queueLog puts the log's records into their queues. Those whose time has come take the places among
// the others that they had, as far as the times of batches show.
func (r *Recovery) queueLog() {
	c := r.Core
	var came []uint64
	for _, seq := range r.order {
		switch x, ok := r.log[seq]; {
		case !ok || !x.timed:
		case r.superseded(x, seq):
			q := c.Queues.At(x.queue)
			c.FoundOutdated(storage.Completion{Seq: seq}, string(c.NameOf(q.Host)), c.CrawlNumber(q), x.due)
			c.Records.Discard(x.ref)
		case x.due <= 0 && c.DeadIn(c.Queues.At(x.queue)).Seq < seq: // else a deletion finds it
			came = append(came, seq)
		default:
			c.Schedule(x.queue, x.ref, x.due)
		}
	}
	slices.SortStableFunc(came, func(a, b uint64) int { return cmp.Compare(r.log[a].since, r.log[b].since) })
	wait := func(x logged) {
		q := c.Queues.At(x.queue)
		c.Fifo.Push(&q.Queue, x.ref)
		c.List(x.queue)
		c.Counted(q, 1)
	}
	for _, seq := range r.order {
		x, ok := r.log[seq]
		if !ok || x.timed {
			continue
		}
		for len(came) > 0 && came[0] < seq && r.log[came[0]].since <= x.since {
			wait(r.log[came[0]])
			came = came[1:]
		}
		wait(x)
	}
	for _, seq := range came {
		wait(r.log[seq])
	}
}

// superseded reports whether a Force replaced a scheduled record of the log: at that time
// the record was in a timed block that is not valid any more.
func (r *Recovery) superseded(x logged, seq uint64) bool {
	if r.Notes.Len() == 0 {
		return false
	}
	c := r.Core
	b := record.Must(c.Records.At(x.ref).Body())
	q := c.Queues.At(x.queue)
	return r.Notes.Outdated(r.mark(hostkey.String(c.NameOf(q.Host)), c.CrawlNumber(q), b.URL), seq)
}
