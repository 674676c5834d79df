// This file sorts entries of a key and a value by key, with limited memory.
//
// Entries that fit are sorted in memory. Beyond that, sorted runs are written to one temporary
// file, and merged while they are read.

package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/seed-7440039f/frontier/internal/tempfile"
)

// Bytes read of a run at once, if all runs together keep the limit.
const (
	leastRead = 4 << 10
	mostRead  = 128 << 10
)

// sorter sorts entries. After the last add, each yields them in order; close removes the temporary
// file. Not safe for concurrent use.
type sorter struct {
	dir   string // of the temporary file; "": os.TempDir
	limit int    // bytes in memory; 0: all stays there

	data    []byte
	entries []sortEntry
	file    *tempfile.File
	runs    []int64 // where each run in the file ends
}

// sortEntry is where in data an entry lies.
type sortEntry struct {
	at         int
	key, value uint32 // lengths
}

func (s *sorter) add(key, value []byte) error {
	if s.limit > 0 && len(s.data) > s.limit/16 && cap(s.data) < s.limit { // growing it in steps would leave much garbage behind
		s.data = slices.Grow(s.data, s.limit*7/8-len(s.data))
		s.entries = slices.Grow(s.entries, s.limit/8/16)
	}
	s.entries = append(s.entries, sortEntry{len(s.data), uint32(len(key)), uint32(len(value))})
	s.data = append(append(s.data, key...), value...)
	if s.limit > 0 && len(s.data)+len(s.entries)*16 >= s.limit {
		return s.spill()
	}
	return nil
}

func (s *sorter) key(e sortEntry) []byte { return s.data[e.at : e.at+int(e.key)] }
func (s *sorter) value(e sortEntry) []byte {
	return s.data[e.at+int(e.key) : e.at+int(e.key)+int(e.value)]
}

func (s *sorter) sort() {
	slices.SortFunc(s.entries, func(a, b sortEntry) int { return bytes.Compare(s.key(a), s.key(b)) })
}

// spill writes the entries in memory as a run.
func (s *sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = tempfile.Create(s.dir, "frontier-export-*"); err != nil {
			return err
		}
	}
	s.sort()
	end := int64(0)
	if n := len(s.runs); n > 0 {
		end = s.runs[n-1]
	}
	w := bufio.NewWriterSize(s.file, mostRead)
	var head []byte
	for _, e := range s.entries {
		head = binary.AppendUvarint(head[:0], uint64(e.key))
		head = binary.AppendUvarint(head, uint64(e.value))
		_, _ = w.Write(head) // Flush returns the error
		n, _ := w.Write(s.data[e.at : e.at+int(e.key)+int(e.value)])
		end += int64(len(head) + n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	s.runs = append(s.runs, end)
	s.data, s.entries = s.data[:0], s.entries[:0]
	return nil
}

// each calls fn with all entries in order. They are valid during the call.
func (s *sorter) each(fn func(key, value []byte) error) error {
	if s.file == nil {
		s.sort()
		for _, e := range s.entries {
			if err := fn(s.key(e), s.value(e)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.data, s.entries = nil, nil
	return s.merge(fn)
}

// merge calls fn with the entries of all runs in order.
func (s *sorter) merge(fn func(key, value []byte) error) error {
	var heap []*runReader
	buffer := min(max(s.limit/len(s.runs), leastRead), mostRead)
	from := int64(0)
	for _, end := range s.runs {
		r := &runReader{r: bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), buffer)}
		from = end
		switch err := r.next(); {
		case err == nil:
			heap = append(heap, r)
		case !errors.Is(err, io.EOF):
			return err
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftRun(heap, i)
	}
	for len(heap) > 0 {
		r := heap[0]
		if err := fn(r.key(), r.entry[r.keyLen:]); err != nil {
			return err
		}
		switch err := r.next(); {
		case errors.Is(err, io.EOF):
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		case err != nil:
			return err
		}
		siftRun(heap, 0)
	}
	return nil
}

// siftRun moves the run at i down to where it belongs.
func siftRun(heap []*runReader, i int) {
	for {
		least := i
		for _, c := range [...]int{2*i + 1, 2*i + 2} {
			if c < len(heap) && bytes.Compare(heap[c].key(), heap[least].key()) < 0 {
				least = c
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// close removes the temporary file.
func (s *sorter) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// runReader reads a run; entry is the current one.
type runReader struct {
	r      *bufio.Reader
	entry  []byte
	keyLen int
}

func (r *runReader) key() []byte { return r.entry[:r.keyLen] }

// next goes to the next entry; io.EOF after the last.
func (r *runReader) next() error {
	k, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	v, err := binary.ReadUvarint(r.r)
	if err != nil {
		return err
	}
	n := int(k + v)
	r.entry = slices.Grow(r.entry[:0], n)[:n]
	r.keyLen = int(k)
	_, err = io.ReadFull(r.r, r.entry)
	return err
}
