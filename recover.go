// This file brings a frontier back from its Spill.
//
// Marks and blocks come first, then the log since the last checkpoint, then rows:
// only hosts that turned out to have URLs keep in memory what their rows say.
// After anything but a clean Close every host counts as contacted at the moment
// of reopening: nobody knows what the lost leases did.

package frontier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/offheap"
)

// recovery is a Recovery for an empty frontier.
type recovery struct {
	f     *Frontier
	clean bool // the last frontier was closed

	groups  []string             // whose rows say nothing unless they have members
	counted []countedHost        // of which nothing is known that is not told here
	stale   []byte               // keys of rows to be deleted, each behind its length
	parts   []blockParts         // of each block
	sorted  bool                 // parts are, by block
	queues  offheap.List[uint32] // of each part
	timed   []timeItem           // timed blocks by number; aux is how many of their records are live
	log     map[uint64]logged    // by sequence number
	order   []uint64             // of log
}

// logged is a record of the log that is not finished yet.
type logged struct {
	ref   arena.Ref
	queue uint32
	timed bool
	due   int64 // if timed; negative if its time came before Open
}

// recover fills an empty frontier from its Spill. The store is in use if and only if
// it returns nil.
func (f *Frontier) recover(ctx context.Context) error {
	r := &recovery{
		f: f, log: map[uint64]logged{},
	}
	if err := f.opts.Spill.Recover(ctx, r); err != nil {
		return fmt.Errorf("frontier: recover: %w", err) // if it is in use, another uses it
	}
	if err := f.begin(r); err != nil {
		return errors.Join(err, f.opts.Spill.Release())
	}
	return nil
}

// begin ends the recovery and commits that the crawl goes on.
func (f *Frontier) begin(r *recovery) error {
	r.finish()
	f.epoch++
	f.token = f.epoch << 40
	f.applied.batch, f.applied.seq, f.applied.marks = f.committer.batchID, f.seq, f.logMarks.n
	b := &Batch{
		ID:   f.committer.batchID + 1,
		Time: wallMillis(f.start),
		Rows: []Row{f.metaRowLocked(f.gen, false)},
		Drop: f.core.drops,
	}
	f.core.drops = nil
	if err := f.opts.Spill.Commit(b); err != nil {
		return fmt.Errorf("frontier: open: %w", err)
	}
	f.committer.batchID, f.applied.batch = b.ID, b.ID
	return r.deleteStale()
}

var errRow = errors.New("malformed row")

// hold is until when a host is left alone because the store was opened after a
// crash, as far as a rule of its own says.
func (f *Frontier) hold(host string) int64 {
	if d := f.controls.delay(host); d != nil {
		return f.heldFrom + int64(d.Max())
	}
	return 0
}

func (r *recovery) Marks(n int64) error {
	r.f.known.total += n
	r.f.known.covered = 1
	return nil
}

func (r *recovery) Dead(id uint32, bits []byte) error {
	r.f.core.giveDead(id, bits)
	return nil
}

func (r *recovery) Part(q Queue, p Part) error {
	qid, err := r.queue(q)
	if err != nil {
		return err
	}
	c := r.f.core
	id := c.addPart(p)
	for len(r.queues.Items) <= int(id) {
		r.queues.Append(0)
	}
	r.queues.Items[id] = qid
	if n := len(r.parts); n == 0 || r.parts[n-1].block != p.Block {
		r.parts = append(r.parts, blockParts{block: p.Block, first: id})
	}
	r.parts[len(r.parts)-1].n++
	x, b := c.parts.at(id), c.blocks.at(p.Block)
	for i := range int(p.Count) {
		if c.isDead(b, int(p.First)+i) {
			t := c.touch(x)
			t.taken |= 1 << i
			t.done++
			b.addLive(-1)
		}
	}
	c.counted(c.queues.at(qid), bits.OnesCount32(c.unread(x)))
	c.chainPart(c.queues.at(qid), id)
	return nil
}

// blockParts tells which parts a block has: their numbers are consecutive, since
// none has been released yet.
type blockParts struct{ block, first, n uint32 }

// partOf returns the part that holds a position of a block, or 0.
func (r *recovery) partOf(block uint32, pos uint16) uint32 {
	if !r.sorted { // all were given; usually they came in order
		slices.SortStableFunc(r.parts, func(a, b blockParts) int { return cmp.Compare(a.block, b.block) })
		r.sorted = true
	}
	at, _ := slices.BinarySearchFunc(r.parts, block, func(b blockParts, id uint32) int { return cmp.Compare(b.block, id) })
	for ; at < len(r.parts) && r.parts[at].block == block; at++ {
		for id := r.parts[at].first; id < r.parts[at].first+r.parts[at].n; id++ {
			p := r.f.core.parts.at(id)
			if t := r.f.core.detail(p); p.block == block && pos >= t.first && int(pos) < int(t.first)+int(t.count) {
				return id
			}
		}
	}
	return 0
}

func (r *recovery) queue(q Queue) (uint32, error) {
	if err := checkHost(q.Host); err != nil {
		return 0, &CorruptError{Err: err}
	}
	if q.Priority < 1 {
		return 0, &CorruptError{Err: &PriorityError{Got: int(q.Priority), Levels: r.f.opts.Priorities}}
	}
	if !r.f.isPriority(q.Priority) {
		return 0, r.tooHigh(q.Priority)
	}
	return r.f.core.queueOf(r.f.core.ensure(r.f.hostHash(q.Host), q.Host), q.Crawl, q.Priority), nil
}

func (r *recovery) Batch(b *Batch) error {
	f := r.f
	f.committer.batchID = b.ID
	f.logBytes += batchBytes(b)
	for i := range b.Admit {
		a := &b.Admit[i]
		if _, err := decodeBody(a.Body); err != nil {
			return &CorruptError{Err: err}
		}
		qid, err := r.queue(a.Queue)
		if err != nil {
			return err
		}
		x := logged{ref: f.core.store(a.Seq, a.Body), queue: qid}
		if a.Due != 0 {
			x.timed, x.due = true, f.date(millisTime(a.Due))
		}
		r.log[a.Seq] = x
		r.order = append(r.order, a.Seq)
		f.seq = max(f.seq, a.Seq)
		if a.HasMark {
			f.known.insert(a.Mark)
			f.logMarks.add(a.Mark)
		}
	}
	for _, m := range b.Marks {
		if f.known.insert(m) {
			f.logMarks.add(m)
		}
	}
	for _, x := range b.Finish {
		r.completion(x)
	}
	return nil
}

// completion ends a record that lies in the log or, if it left it, in a block.
func (r *recovery) completion(x Completion) {
	c := r.f.core
	if l, ok := r.log[x.Seq]; ok {
		c.discard(l.ref)
		delete(r.log, x.Seq)
		return
	}
	id, b := r.partOf(x.Block, x.Pos), c.blocks.at(x.Block)
	if id == 0 {
		r.completionTimed(x)
		return
	}
	if b == nil || c.isDead(b, int(x.Pos)) {
		return
	}
	p := c.parts.at(id)
	t := c.detail(p)
	pos := int(x.Pos - t.first)
	if t.taken&(1<<pos) == 0 {
		c.counted(c.queues.at(r.queues.Items[id]), -1)
	}
	c.kill(id, pos)
}

func (r *recovery) tooHigh(p uint8) error {
	return fmt.Errorf("the store has URLs of priority %d; Priorities is %d, want at least as many", p, r.f.opts.Priorities)
}

// finish puts the log's records into their queues and the hosts where they
// belong.
func (r *recovery) finish() {
	f := r.f
	c := f.core
	for _, x := range r.parts {
		if b := c.blocks.at(x.block); b != nil && b.live() == 0 {
			c.forgetBlock(x.block)
			c.drops = append(c.drops, x.block)
		}
	}
	r.parts = nil
	r.queues.Free()
	r.finishTimed()
	for _, seq := range r.order {
		x, ok := r.log[seq]
		if !ok {
			continue
		}
		if x.timed && r.superseded(x, seq) {
			c.discard(x.ref)
			continue
		}
		if x.timed {
			c.schedule(x.queue, x.ref, x.due)
			continue
		}
		q := c.queues.at(x.queue)
		c.stretchPush(&q.back, x.ref)
		c.list(x.queue)
		c.list(x.queue)
		c.counted(q, 1)
	}
	if c.limits != nil {
		c.countAllDomains()
		for _, x := range c.crawls {
			if x != nil {
				c.judgeCrawl(x, 0)
			}
		}
	}
	for id := uint32(1); id <= c.groups.top; id++ {
		if c.groups.at(id).nameLen > 0 { // perhaps its settings were not known when it was met
			c.setUpGroup(id)
		}
	}
	for id := uint32(1); id <= c.hosts.top; id++ {
		if h := c.hosts.at(id); h.nameLen > 0 {
			if c.holdOf != nil { // rules were not known when the host was met
				if at := c.holdOf(string(c.name(h))); at > h.due {
					h.due, h.why = at, whyReopened
				}
			}
			c.relevel(id, 0) // nor then
			c.settle(id, 0)
		}
	}
}
