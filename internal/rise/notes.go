// Package rise finds waiting URLs that have become more important since they were added.
//
// There is no index of waiting URLs. So what is learned about one is noted: a mark and the level that
// the URL deserves, 8 bytes. When a host has many notes, one walk through its queues serves them all.
// The package owns the notes (Notes): their memory, and which host is searched next; and the search
// (Walk), which finds the URLs and takes them out. It asks no policy, and admits nothing. It has no
// lock: callers hold the frontier's.
package rise

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/mercator"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	// share of its URLs that must be noted for a walk through a host, and share that is likely to be
	// found above its next URL.
	share, shareAbove = 4, 40
	// enough is how many hosts wait for a walk when memory runs short, and how many a round of walks
	// serves: then it waits for no others.
	enough = 64
	// gather is how long others wait, so that one commit moves what has risen at several hosts.
	gather = int64(100 * time.Millisecond)
	// sorted is how many notes of a host are sorted under the lock, and unsorted how many need not be.
	sorted, unsorted = 1024, 64
	// rest is how many times as long as a round took no other begins.
	rest = 9

	noteSize = 8
	hintSize = 64 // about what a hint takes
	hostSize = 96 // about what the first note of a host takes

	levelBits = 7
	levelMask = 1<<levelBits - 1
)

// note is the beginning of a mark, and a level in the lowest bits. The highest byte is a record's print.
type note uint64

func newNote(m storage.Mark, level uint8) note {
	return note(binary.LittleEndian.Uint64(m[:])&^levelMask | uint64(level))
}

// Hint is what a hint says of a URL. Without a level there is none.
type Hint struct {
	Level  uint8
	Weight float64
	Depth  int
}

func (n note) mark() note   { return n &^ levelMask }
func (n note) level() uint8 { return uint8(n & levelMask) }

// Notes are notes about the waiting URLs of hosts, by the hosts' numbers.
//
// The zero value is empty. Not safe for concurrent use.
type Notes struct {
	Limit int64 // bytes from which on notes are dropped; from half of it on each one has a host searched

	hosts  map[uint32]*noted
	due    []uint32
	since  int64 // when the first of them became due
	left   int   // of the round of walks under way, and one; 0: there is none
	bytes  int64
	resume int64 // no round begins before

	Counts
}

// Counts are what was done.
type Counts struct {
	Noted, Dropped int64 // notes
	Walks, Read    int64 // hosts searched, and records read
}

// noted are the notes about one host.
type noted struct {
	notes  []note
	hints  map[note]Hint // by mark
	above  float64       // those that were above its next URL, less what is likely missed
	missed float64       // part of the notes in its walks: they were about visited URLs
	top    uint8         // the highest level noted
	due    bool
}

// Add notes that a URL of a host deserves a level, if it waits, and what a hint says of it. waiting is how
// many URLs of the host wait, and the next of them is of level next.
func (x *Notes) Add(now int64, host uint32, m storage.Mark, level uint8, said Hint, waiting int, next uint8) {
	h := x.hosts[host]
	if len(x.due) == 0 {
		x.since = now
	}
	if x.bytes > x.Limit/2 && !x.room(h) {
		x.Dropped++
		return
	}
	if h == nil {
		if x.hosts == nil {
			x.hosts = map[uint32]*noted{}
		}
		h = &noted{}
		x.hosts[host] = h
		x.bytes += hostSize
	}
	if n := len(h.notes); n == cap(h.notes) && n > unsorted && n <= sorted {
		h.compact()
	}
	before := cap(h.notes)
	h.notes = append(h.notes, newNote(m, level))
	x.bytes += noteSize * int64(cap(h.notes)-before)
	h.top = max(h.top, level)
	x.Noted++
	if said.Level > 0 {
		x.keep(h, newNote(m, 0), said)
	}
	if level > next {
		h.above += 1 - h.missed
	}
	if !h.due && (len(h.notes)*share >= waiting || h.above*shareAbove >= float64(waiting)) {
		h.due = true
		x.due = append(x.due, host)
	}
}

// most is by how much Size may grow with one more note of a host.
func (x *Notes) most(h *noted) (n int64) {
	if h == nil {
		n = hostSize + noteSize
	} else if len(h.notes) == cap(h.notes) {
		n = noteSize * int64(cap(h.notes)+1)
	}
	if len(x.due) == cap(x.due) {
		n += 4 * int64(cap(x.due)+4)
	}
	return n + hintSize
}

// room makes room for a note of a host, and reports whether there is some: it has another host searched whose notes
// take much, or drops those that take little. All of its URLs may have been handed out.
func (x *Notes) room(h *noted) bool {
	for range 4 {
		var little, much uint32 // of a few hosts, in any order
		left := 8
		for id, o := range x.hosts {
			if !o.due && o != h {
				if little == 0 || len(o.notes) < len(x.hosts[little].notes) {
					little = id
				}
				if len(o.notes) > 0 && (much == 0 || len(o.notes) > len(x.hosts[much].notes)) {
					much = id
				}
			}
			if left--; left == 0 {
				break
			}
		}
		full := x.Size()+x.most(h) > x.Limit
		if !full {
			if much != 0 && len(x.due) < enough {
				x.hosts[much].due = true
				x.due = append(x.due, much)
			}
			return true
		}
		if little != 0 {
			x.Dropped += int64(len(x.hosts[little].notes))
			x.bytes -= x.hosts[little].size()
			delete(x.hosts, little)
		}
	}
	return false
}

// keep keeps a hint, merged with an earlier one for the URL.
func (x *Notes) keep(h *noted, url note, said Hint) {
	if h.hints == nil {
		h.hints = map[note]Hint{}
	}
	if old, ok := h.hints[url]; ok {
		said = Hint{max(said.Level, old.Level), max(said.Weight, old.Weight), min(said.Depth, old.Depth)}
	} else {
		x.bytes += hintSize
	}
	h.hints[url] = said
}

// size is the memory in bytes.
func (h *noted) size() int64 {
	return hostSize + noteSize*int64(cap(h.notes)) + hintSize*int64(len(h.hints))
}

// compact sorts notes, and keeps the highest of each URL.
func (h *noted) compact() {
	slices.Sort(h.notes)
	kept := h.notes[:0]
	for _, n := range h.notes {
		if last := len(kept) - 1; last >= 0 && kept[last].mark() == n.mark() {
			kept[last] = n
			continue
		}
		kept = append(kept, n)
	}
	h.notes = kept
}

// NextRound returns when a round of walks should begin; never if none is needed.
func (x *Notes) NextRound() int64 {
	switch {
	case len(x.due) == 0 || x.left > 0:
		return instant.Never
	case len(x.due) < enough:
		return max(x.resume, x.since+gather)
	}
	return x.resume
}

// Hurry has the next round begin without a rest, and without waiting for more hosts.
func (x *Notes) Hurry() { x.since, x.resume = x.since-gather, 0 }

// Begin begins a round. Rounds do not overlap: call End.
func (x *Notes) Begin() { x.left = enough + 1 }

// Next begins to search the next host of the round; nil if there is none.
func (x *Notes) Next(core *mercator.Core, mark func(host string, crawl uint32, url string) storage.Mark) *Walk {
	if len(x.due) == 0 || x.left == 1 {
		return nil
	}
	x.left--
	host := x.due[0]
	if x.due = x.due[1:]; len(x.due) == 0 {
		x.due = nil
	}
	h := x.hosts[host]
	delete(x.hosts, host)
	x.bytes -= h.size()
	x.Walks++
	return newWalk(core, host, h, mark)
}

// Ended learns from a walk how many notes about the host lead to URLs that wait.
func (x *Notes) Ended(w *Walk) {
	x.Read += w.Looked
	h := x.hosts[w.host]
	if h == nil && w.left > 0 && (x.bytes < x.Limit/4 || x.forget()) {
		h = &noted{}
		x.hosts[w.host] = h
		x.bytes += hostSize
	}
	if h != nil {
		h.missed = (w.missed + float64(w.left)) / float64(1+len(w.notes))
	}
}

// forget drops what was learned about a host without notes, if one is met soon: it must not take the room of notes.
func (x *Notes) forget() bool {
	left := 8
	for id, h := range x.hosts {
		if len(h.notes) == 0 {
			x.bytes -= h.size()
			delete(x.hosts, id)
			return true
		}
		if left--; left == 0 {
			break
		}
	}
	return false
}

// End ends a round. Rounds take about a tenth of the time.
func (x *Notes) End(began, now int64) {
	x.left, x.since = 0, now
	x.resume = now + rest*(now-began)
}

// Size returns the memory in bytes.
func (x *Notes) Size() int64 { return x.bytes + 4*int64(cap(x.due)) }

// Check verifies the recorded memory of the notes, and that each host with a walk to come has notes. It
// reports violations.
func (x *Notes) Check(bad func(format string, args ...any)) {
	bytes, due := int64(0), 0
	for _, h := range x.hosts {
		bytes += h.size()
		if h.due {
			due++
		}
	}
	if bytes != x.bytes {
		bad("F6: notes take %d bytes, counted %d", bytes, x.bytes)
	}
	if due != len(x.due) {
		bad("F8: %d hosts with notes wait for a walk, listed %d", due, len(x.due))
	}
}
