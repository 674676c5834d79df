// This file keeps the marks that were admitted since the last checkpoint, in the
// order of their admission.

package frontier

// markList is a list of marks that grows at its end and loses what is at its
// beginning, by steps that are short however long it is.
//
// The zero value is empty.
type markList struct {
	chunks []*[markChunk]Mark
	from   int // place of the first mark in chunks[0]
	n      int
}

const markChunk = 4096

func (l *markList) add(m Mark) {
	at := l.from + l.n
	if at == len(l.chunks)*markChunk {
		l.chunks = append(l.chunks, new([markChunk]Mark))
	}
	l.chunks[at/markChunk][at%markChunk] = m
	l.n++
}

// at returns mark i.
func (l *markList) at(i int) Mark {
	i += l.from
	return l.chunks[i/markChunk][i%markChunk]
}

// head is the first n marks. They do not change when the list does.
func (l *markList) head(n int) markList {
	return markList{append([]*[markChunk]Mark(nil), l.chunks...), l.from, n}
}

// all copies the marks.
func (l *markList) all() []Mark {
	out := make([]Mark, 0, l.n)
	for i := 0; i < l.n; {
		at := l.from + i
		part := l.chunks[at/markChunk][at%markChunk:]
		part = part[:min(len(part), l.n-i)]
		out = append(out, part...)
		i += len(part)
	}
	return out
}

// drop forgets the first n marks.
func (l *markList) drop(n int) {
	l.from, l.n = l.from+n, l.n-n
	gone := l.from / markChunk
	clear(l.chunks[:gone])
	l.chunks, l.from = l.chunks[gone:], l.from%markChunk
}

// size is how many bytes the list takes.
func (l *markList) size() int64 { return int64(len(l.chunks)) * (markChunk*12 + 8) }
