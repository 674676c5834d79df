// This file lets a Force replace a URL that waits for its time on disk.
//
// Nobody knows which timed block has it, or whether one has. So the Force admits
// the new record and leaves a note beside it, in the same commit: of this URL
// only records from this one on count. When a timed block is read, an older
// record is finished without being handed out. The note is dropped when no block
// of that time is unread. While blocks are few, and before the crawl would be
// over but for what a note says, they are looked through at once.

package frontier

import "encoding/binary"

// note says that of a URL only records from seq on count, and up to which number
// a timed block may hold an older one.
type note struct {
	seq   uint64
	block uint32
}

// notes are the notes of a frontier by the marks of the URLs.
//
// The zero value is empty.
type notes struct {
	at    map[Mark]note
	stale []Mark   // dropped, but their rows are still on disk
	swept bool     // no note is younger than the last sweep
	sweep []uint32 // timed blocks that it has not seen yet
}

// noteBytes is what a note takes in memory.
const noteBytes = 64

// sweepAtMost is how many timed blocks are looked through for each new note.
const sweepAtMost = 32

// staleAtOnce is how many rows of dropped notes are deleted in one commit.
const staleAtOnce = 10_000

func (n *notes) set(m Mark, x note) {
	if n.at == nil {
		n.at = map[Mark]note{}
	}
	n.at[m] = x
	n.swept = false
}

func (n *notes) size() int64 { return int64(len(n.at))*noteBytes + int64(cap(n.stale))*12 }

// noteRow encodes a note for the store.
func noteRow(m Mark, x note) Row {
	v := binary.AppendUvarint(nil, x.seq)
	return Row{Key: rowNote + string(m[:]), Value: binary.AppendUvarint(v, uint64(x.block))}
}

func readNote(key string, v []byte) (m Mark, x note, err error) {
	seq, n := binary.Uvarint(v)
	if n <= 0 || len(key) != len(rowNote)+len(m) {
		return m, x, errRow
	}
	block, k := binary.Uvarint(v[n:])
	if k <= 0 || n+k != len(v) || block > 1<<32-1 {
		return m, x, errRow
	}
	copy(m[:], key[len(rowNote):])
	return m, note{seq, uint32(block)}, nil
}

// awaitForcesLocked waits until no URL of the records is being forced: only then
// it is clear whether its record is superseded. It releases the lock meanwhile.
func (f *Frontier) awaitForcesLocked(records []timedLoaded) {
	for i := 0; i < len(records) && len(f.forcing) > 0; i++ {
		if busy := f.forcing[records[i].mark]; busy != nil {
			f.mu.Unlock()
			<-busy
			f.mu.Lock()
			i = -1 // others may have begun
		}
	}
}

// supersededLocked reports whether a Force has replaced a record.
func (f *Frontier) supersededLocked(r *timedLoaded) bool {
	if len(f.notes.at) == 0 {
		return false
	}
	x, ok := f.notes.at[r.mark]
	return ok && r.Seq < x.seq
}

// sweepWantedLocked reports whether blocks should be looked through for
// superseded records before their time: while they are few, or if the crawl might
// be over without them.
func (f *Frontier) sweepWantedLocked() bool {
	c := f.core
	unread := c.timed.unread.len()
	switch {
	case f.closed || f.draining || unread == 0:
		return false
	case len(f.notes.sweep) > 0, f.burial.through > 0:
		return true
	case f.notes.swept || len(f.notes.at) == 0:
		return false
	}
	return unread <= sweepAtMost ||
		c.stats.Waiting+c.stats.Leased == 0 && c.scheduled.len() == 0 && c.stats.Scheduled <= 4*int64(len(f.notes.at))
}

// nextSweepLocked takes a block out that is to be looked through; none if it was
// read meanwhile.
func (f *Frontier) nextSweepLocked() timeItem {
	if f.burial.through > 0 {
		return f.nextBurialLocked()
	}
	t, n := &f.core.timed, &f.notes
	if !n.swept {
		n.swept, n.sweep = true, nil
		for i := range t.unread.items.all(t.unread.root) {
			n.sweep = append(n.sweep, t.unread.items.at(i).id)
		}
	}
	id := n.sweep[len(n.sweep)-1]
	n.sweep = n.sweep[:len(n.sweep)-1]
	if i := t.unread.find(id); i != 0 {
		return t.unread.remove(i)
	}
	return timeItem{}
}

// outdated lists notes that say nothing of an unread block. Once a checkpoint has
// made durable which records are finished they may go.
func (f *Frontier) outdated() (ms []Mark, oldest uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest = f.core.timed.oldest()
	n := 0
	for m, x := range f.notes.at {
		if n++; n%1024 == 0 {
			f.mu.Unlock()
			f.mu.Lock()
		}
		if x.block < oldest {
			if ms = append(ms, m); len(ms) == staleAtOnce {
				break
			}
		}
	}
	return ms, oldest
}

// dropNotesLocked forgets notes; their rows are deleted with the next round.
func (f *Frontier) dropNotesLocked(ms []Mark, oldest uint32) {
	for _, m := range ms {
		if x, ok := f.notes.at[m]; ok && x.block < oldest {
			delete(f.notes.at, m)
			f.notes.stale = append(f.notes.stale, m)
		}
	}
}

// staleNotesLocked takes rows of dropped notes, which are to be deleted, unless
// there is a new note of the URL.
func (f *Frontier) staleNotesLocked() (rows []Row) {
	n := min(len(f.notes.stale), staleAtOnce)
	for _, m := range f.notes.stale[:n] {
		if _, ok := f.notes.at[m]; !ok {
			rows = append(rows, Row{Key: rowNote + string(m[:])})
		}
	}
	f.notes.stale = append([]Mark(nil), f.notes.stale[n:]...)
	return rows
}
