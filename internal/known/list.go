// This file lists marks in the order of their admission.

package known

import "github.com/seed-7440039f/frontier/storage"

// List is a sequence of marks. Appending at its end and removing from its beginning take short
// steps, whatever its length.
//
// The zero value is empty.
type List struct {
	chunks []*[chunkLen]storage.Mark
	from   int // place of the first mark in chunks[0]
	n      int
}

const chunkLen = 4096

func (l *List) add(m storage.Mark) {
	at := l.from + l.n
	if at == len(l.chunks)*chunkLen {
		l.chunks = append(l.chunks, new([chunkLen]storage.Mark))
	}
	l.chunks[at/chunkLen][at%chunkLen] = m
	l.n++
}

// at returns mark i.
func (l *List) at(i int) storage.Mark {
	i += l.from
	return l.chunks[i/chunkLen][i%chunkLen]
}

// head is the first n marks. They do not change when the list does.
func (l *List) head(n int) List {
	return List{append([]*[chunkLen]storage.Mark(nil), l.chunks...), l.from, n}
}

// All copies the marks.
func (l *List) All() []storage.Mark {
	out := make([]storage.Mark, 0, l.n)
	for i := 0; i < l.n; {
		at := l.from + i
		part := l.chunks[at/chunkLen][at%chunkLen:]
		part = part[:min(len(part), l.n-i)]
		out = append(out, part...)
		i += len(part)
	}
	return out
}

// drop forgets the first n marks.
func (l *List) drop(n int) {
	l.from, l.n = l.from+n, l.n-n
	gone := l.from / chunkLen
	clear(l.chunks[:gone])
	l.chunks, l.from = l.chunks[gone:], l.from%chunkLen
}

// size returns the memory of the list in bytes.
func (l *List) size() int64 { return int64(len(l.chunks)) * (chunkLen*12 + 8) }
