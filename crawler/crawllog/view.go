// This file reads the files of a log, even while a process appends to them.

package crawllog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// View reads a log. The zero value reads nothing. It is safe for concurrent use, and works while a
// Log appends.
type View struct{ path string }

// NewView returns a view of the log at a path, which need not exist.
func NewView(path string) View { return View{path} }

// chunk is how much of a file is read at once.
const chunk = 1 << 20

// numbered is a file that was rotated.
type numbered struct {
	path   string
	number int
}

// rotated lists the files that were rotated, oldest first.
func (v View) rotated() ([]numbered, error) {
	if v.path == "" {
		return nil, nil
	}
	names, err := os.ReadDir(filepath.Dir(v.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("crawllog: %w", err)
	}
	var all []numbered
	for _, e := range names {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(v.path)+".")
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && len(digits) >= 6 {
			all = append(all, numbered{filepath.Join(filepath.Dir(v.path), e.Name()), n})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return a.number - b.number })
	return all, nil
}

// open opens all files, oldest first. Files that are rotated or removed meanwhile are
// listed again.
func (v View) open() (files []*os.File, err error) {
	if v.path == "" {
		return nil, nil
	}
	for range 100 {
		before, err := v.rotated()
		if err != nil {
			return nil, err
		}
		if files, err = openAll(append(slices.Clone(before), numbered{path: v.path})); err != nil {
			return nil, err
		}
		after, err := v.rotated()
		if err == nil && slices.Equal(before, after) {
			return files, nil
		}
		closeAll(files)
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("crawllog: the files change too fast to be read")
}

func openAll(paths []numbered) (files []*os.File, err error) {
	for _, p := range paths {
		f, err := os.Open(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("crawllog: %w", err)
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // it was only read
	}
}

// All returns the records, oldest first. A line that cannot be read is an error, and the next
// records follow; any other error is the last. A line that is being written is not returned yet.
func (v View) All() iter.Seq2[Record, error] {
	return v.records(slices.Values, func(f *os.File) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			b := bufio.NewReaderSize(f, chunk)
			for more := true; more; {
				line, err := b.ReadBytes('\n')
				more = !errors.Is(err, io.EOF) && yield(line, err)
			}
		}
	})
}

// Backward yields the records of All, newest first.
func (v View) Backward() iter.Seq2[Record, error] { return v.backward(nil) }

// backward yields the parts of the files that contain needle, newest first.
func (v View) backward(needle []byte) iter.Seq2[Record, error] {
	backward := func(files []*os.File) iter.Seq[*os.File] {
		slices.Reverse(files)
		return slices.Values(files)
	}
	return v.records(backward, func(f *os.File) iter.Seq2[[]byte, error] { return lines(f, needle) })
}

// records yields the records in the lines of all files.
func (v View) records(order func([]*os.File) iter.Seq[*os.File], lines func(*os.File) iter.Seq2[[]byte, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files, err := v.open()
		if err != nil {
			yield(Record{}, err)
			return
		}
		defer closeAll(files)
		for f := range order(files) {
			for line, err := range lines(f) {
				if err != nil {
					yield(Record{}, fmt.Errorf("crawllog: %w", err))
					return
				}
				if !yield(parse(line)) {
					return
				}
			}
		}
	}
}

// lines returns the complete lines of a file that contain needle, last first.
func lines(f *os.File, needle []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		info, err := f.Stat()
		if err != nil {
			yield(nil, err)
			return
		}
		end, size := info.Size(), int64(chunk)
		whole := false // a line ends at end
		var buf []byte
		for end > 0 {
			start := max(0, end-size)
			buf = slices.Grow(buf[:0], int(end-start))[:end-start]
			if _, err := f.ReadAt(buf, start); err != nil {
				yield(nil, err)
				return
			}
			part := buf
			if start > 0 {
				i := bytes.IndexByte(part, '\n')
				if i < 0 || i == len(part)-1 && whole { // a line longer than this
					size *= 2
					continue
				}
				part, start = part[i+1:], start+int64(i)+1
			}
			if !whole {
				part = part[:bytes.LastIndexByte(part, '\n')+1]
			}
			end, size, whole = start, chunk, true
			if len(needle) > 0 && !bytes.Contains(part, needle) {
				continue
			}
			for len(part) > 0 {
				i := bytes.LastIndexByte(part[:len(part)-1], '\n')
				line := part[i+1:]
				part = part[:i+1]
				if (len(needle) == 0 || bytes.Contains(line, needle)) && !yield(line, nil) {
					return
				}
			}
		}
	}
}

// Recent returns up to n of the newest records, newest first. Lines that cannot be read are
// skipped.
func (v View) Recent(n int) (all []Record, err error) {
	for r, err := range v.Backward() {
		if len(all) >= n {
			break
		}
		if err == nil {
			all = append(all, r)
		} else if !errors.Is(err, ErrLine) {
			return all, err
		}
	}
	return all, nil
}

// Find returns the newest record of a URL, spelled as in the log; ok is false if there is none. It
// reads the files, newest first, until it finds one.
func (v View) Find(url string) (r Record, ok bool, err error) {
	for r, err := range v.Of(url) {
		return r, err == nil, err
	}
	return Record{}, false, nil
}

// Of returns the records of a URL, newest first. An error is the last.
func (v View) Of(url string) iter.Seq2[Record, error] {
	n, err := needle(url)
	return v.only(n, err, func(r *Record) bool { return r.URL == url })
}

// OfHost returns the records of a host key with an outcome, or with any if it is empty, newest first. An
// error is the last.
func (v View) OfHost(host string, o Outcome) iter.Seq2[Record, error] {
	n, err := hostNeedle(host, o)
	return v.only(n, err, func(r *Record) bool { return r.Host == host && (o == "" || r.Outcome == o) })
}

// only yields the records that match among the lines that contain needle, newest first. An error is the last.
func (v View) only(needle []byte, err error, match func(*Record) bool) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err != nil {
			yield(Record{}, err)
			return
		}
		for r, err := range v.backward(needle) {
			switch {
			case errors.Is(err, ErrLine) || err == nil && !match(&r):
			case !yield(r, err):
				return
			}
		}
	}
}

// Oldest returns the oldest record; ok is false if there is none.
func (v View) Oldest() (r Record, ok bool, err error) {
	for r, err := range v.All() {
		if !errors.Is(err, ErrLine) {
			return r, err == nil, err
		}
	}
	return Record{}, false, nil
}
