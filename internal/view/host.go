// This file finds what waits of a host: its first URL, the parts on disk, and all that a window wants.

package view

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/mercator"
)

// Unread is what waits of a part of a queue; Want is 0 if nothing does.
func Unread(c *mercator.Core, queue, id uint32) Part {
	q := c.Queues.At(queue)
	return Part{
		Part: c.Blocks.Part(id), Want: c.Blocks.Unread(id), Crawl: c.CrawlNumber(q), Priority: c.PriorityOf(q),
		ID: id, Queue: queue, Level: q.Priority,
	}
}

// Note returns what notes a part on disk if something of it waits.
func Note(c *mercator.Core, parts *[]Part) func(queue, id uint32) {
	return func(queue, id uint32) {
		if p := Unread(c, queue, id); p.Want != 0 {
			*parts = append(*parts, p)
		}
	}
}

// PartsOf lists the parts on disk in which URLs of a host and crawl wait.
func PartsOf(c *mercator.Core, host, crawl uint32) (parts []Part) {
	note := Note(c, &parts)
	for queue, q := range c.QueuesOf(host) {
		if c.CrawlNumber(q) == crawl {
			for id := range c.Fifo.Parts(&q.Queue) {
				note(queue, id)
			}
		}
	}
	return parts
}

// First returns the URL of a host that would be handed out first. If it is on disk it has no Body, and
// the part says what to read. ok is false if nothing waits.
func First(c *mercator.Core, name string) (x Item, p Part, ok bool) {
	host := c.Lookup(c.HashOf(name), name)
	if host == 0 {
		return x, p, false
	}
	for queue, q := range c.QueuesOf(host) {
		if q.Waiting == 0 {
			continue
		}
		for ref := range c.Fifo.Front(&q.Queue) {
			return item(c, queue, ref), p, true
		}
		for id := range c.Fifo.Parts(&q.Queue) {
			if p := Unread(c, queue, id); p.Want != 0 {
				p.Want &= -p.Want
				return Item{Crawl: p.Crawl, Priority: p.Priority}, p, true
			}
		}
		for ref := range c.Fifo.Back(&q.Queue) {
			return item(c, queue, ref), p, true
		}
	}
	return x, p, false
}

// item copies a record in memory.
func item(c *mercator.Core, queue uint32, ref arena.Ref) Item {
	q, r := c.Queues.At(queue), c.Records.At(ref)
	return Item{Seq: r.Seq(), Body: slices.Clone(r.Body()), Crawl: c.CrawlNumber(q), Priority: c.PriorityOf(q)}
}

// Begin returns a Window of the URLs of a host after a number, with the Walk that fills it from memory;
// nil if the host is not in memory.
func Begin(c *mercator.Core, name string, after uint64) *Window {
	host := c.Lookup(c.HashOf(name), name)
	if host == 0 {
		return nil
	}
	w := begin(after, int(c.Hosts.At(host).Waiting))
	w.core, w.host, w.Walk = c, name, c.BeginWalk(host, nil)
	w.Part = Note(c, &w.Parts)
	w.Record = func(queue uint32, ref arena.Ref) bool {
		if w.Accepts(c.Records.At(ref).Seq()) {
			w.Items = append(w.Items, item(c, queue, ref))
		}
		return true
	}
	return w
}

// DropSome removes from some more of the items what is leased, finished or deleted by now, and reports
// whether there are more of them.
func (w *Window) DropSome() (more bool) {
	c, from := w.core, w.judged
	w.judged = min(from+AtOnce, len(w.Items))
	var out []uint64
	if id := c.Lookup(c.HashOf(w.host), w.host); id != 0 {
		for l := range c.LeasesOf(id) {
			if ref := c.Leases.At(l).Record; ref != 0 {
				out = append(out, c.Records.At(ref).Seq())
			}
		}
	}
	kept := w.Items[:w.kept]
	for _, x := range w.Items[from:w.judged] {
		gone := x.Block != 0 && c.Blocks.IsDead(x.Block, x.Pos) || c.Deleted(w.host, x.Crawl, x.Seq)
		if !gone && !slices.Contains(out, x.Seq) {
			kept = append(kept, x)
		}
	}
	if w.kept = len(kept); w.judged < len(w.Items) {
		return true
	}
	w.Items = kept
	return false
}
