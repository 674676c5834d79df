package rise

import (
	"slices"

	"github.com/seed-7440039f/frontier/internal/arena"
	"github.com/seed-7440039f/frontier/internal/fifo"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/view"
	"github.com/seed-7440039f/frontier/storage"
)

// Found is a waiting URL that was noted.
type Found struct {
	Mark     storage.Mark
	Crawl    uint32
	Priority uint8 // as admitted
	Hint     Hint
	fifo.Loaded

	queue uint32
	spot  *spot      // in memory
	part  *view.Part // or on disk
}

// spot is where a walk met a record in memory.
type spot struct {
	at     record.Location
	taken  bool  // since then
	behind *spot // that of the record before it; nil: it was the first
}

// Walk is a search for the noted URLs of one host. First it is stepped through the queues, with a call of
// MakeRoom before each step; then its Parts are read. The caller takes what was
// Found between the steps.
type Walk struct {
	*fifo.Walk
	Host  string
	Found []Found
	Parts []view.Part

	core   *mercator.Core
	host   uint32
	missed float64 // in walks before
	mark   func(host string, crawl uint32, url string) storage.Mark
	taken  *noted // until MakeRoom sorts them
	notes  []note
	hints  map[note]Hint
	left   int    // notes that were not found
	queue  uint32 // of the records met last
	last   spot   // the last; its own is behind, if it was noted
	Looked int64  // records read
}

// newWalk begins a walk through a host with its notes.
func newWalk(core *mercator.Core, host uint32, taken *noted, mark func(host string, crawl uint32, url string) storage.Mark) *Walk {
	w := &Walk{Host: string(core.Name(core.Hosts.At(host))), core: core, host: host, missed: taken.missed, mark: mark, taken: taken, hints: taken.hints}
	w.Walk = core.BeginWalk(host, func(q *mercator.Queue) bool { return q.Priority < taken.top })
	w.Part, w.Record = view.Note(core, &w.Parts), w.visit
	return w
}

// MakeRoom makes room for what a step finds. It needs no lock.
func (w *Walk) MakeRoom() {
	if w.taken != nil {
		w.taken.compact()
		w.notes, w.left, w.taken = w.taken.notes, len(w.taken.notes), nil
	}
	if len(w.Parts) > 0 { // most hosts are in memory
		w.Parts = slices.Grow(w.Parts, view.AtOnce)
	}
	w.Found = slices.Grow(w.Found, min(w.left, view.AtOnce))
}

func (w *Walk) visit(queue uint32, ref arena.Ref) (more bool) {
	q, r := w.core.Queues.At(queue), w.core.Records.At(ref)
	if w.queue != queue {
		w.queue, w.last = queue, spot{}
	}
	at := w.core.Records.Locate(ref)
	x, ok := w.look(w.core.CrawlNumber(q), q.Priority, r.Print(), r.Body())
	if !ok {
		w.last = spot{at: at}
		return w.left > 0
	}
	before := w.last.behind
	if before == nil && w.last.at.Ref != 0 {
		before = &spot{at: w.last.at}
	}
	x.Loaded, x.queue, x.spot = fifo.Loaded{Seq: r.Seq(), Body: slices.Clone(r.Body())}, queue, &spot{at: at, behind: before}
	w.Found, w.last = append(w.Found, x), spot{behind: x.spot}
	return w.left > 0
}

// look looks for a note above the priority of a URL that waits. A record whose print no note has is not read.
func (w *Walk) look(crawl uint32, priority uint8, print byte, body []byte) (x Found, ok bool) {
	if i, _ := slices.BinarySearch(w.notes, note(print)<<56); print != 0 && (i == len(w.notes) || byte(w.notes[i]>>56) != print) {
		return x, false
	}
	w.Looked++
	b, err := record.Decode(body)
	if err != nil {
		return x, false
	}
	m := w.mark(w.Host, crawl, string(b.URL))
	n := newNote(m, 0)
	i, _ := slices.BinarySearch(w.notes, n)
	if i == len(w.notes) || w.notes[i].mark() != n || w.notes[i].level() <= priority {
		return x, false
	}
	w.notes[i] = n // it is not looked for any more
	w.left--
	return Found{Mark: m, Crawl: crawl, Priority: priority, Hint: w.hints[n]}, true
}

// Read looks at the records of a part that were read. It reports whether to go on with the next.
func (w *Walk) Read(p *view.Part, records []fifo.Loaded) (more bool) {
	for _, r := range records {
		if x, ok := w.look(p.Crawl, p.Level, 0, r.Body); ok {
			x.Loaded, x.queue, x.part = r, p.Queue, p
			w.Found = append(w.Found, x)
		}
	}
	return w.left > 0
}

// Take returns the queue and record of a URL that was found, and what takes it out of its queue. ok is
// false if it does not wait there any more. Take those of one walk in the order in which it found them.
func (x *Found) Take(c *mercator.Core) (queue uint32, ref arena.Ref, remove func(), ok bool) {
	if p := x.part; p != nil {
		ref, ok := c.Fifo.Fetch(p.ID, p.Part, &x.Loaded)
		return x.queue, ref, func() {}, ok
	}
	s, prev := x.spot, record.Location{}
	for s.behind != nil && s.behind.taken {
		s.behind = s.behind.behind
	}
	if s.behind != nil {
		prev = s.behind.at
	}
	at, ok := c.Fifo.PlaceOf(&c.Queues.At(x.queue).Queue, s.at, prev)
	return x.queue, s.at.Ref, func() { c.Fifo.Remove(at); s.taken = true }, ok
}
