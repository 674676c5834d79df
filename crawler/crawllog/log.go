// This file appends records, within the size limit, and records what is missing.

package crawllog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Options configure a Log.
type Options struct {
	// Path is the file to append to; older files are beside it. Open creates missing folders. Empty
	// keeps only the newest records, in memory.
	Path string
	// MaxBytes bounds the files together. Zero means 256 MiB; the least is 64 KiB.
	MaxBytes int64
	// Now returns the time. Nil means time.Now.
	Now func() time.Time
}

const (
	defaultBytes = 256 << 20
	leastBytes   = 64 << 10
	shares       = 8    // files within MaxBytes
	remembered   = 1000 // newest records that are kept in memory
	doubtful     = 4096 // records of a killed run that may be repeated: more than leases are out at once
)

// Log appends records. It is safe for concurrent use.
type Log struct {
	View
	max int64
	now func() time.Time

	mu      sync.Mutex
	file    *os.File            // guarded by mu; nil: none, or no longer
	size    int64               // guarded by mu; of file
	older   []older             // guarded by mu; oldest first
	next    int                 // guarded by mu; number of the next file that is rotated
	recent  []Record            // guarded by mu; a ring
	newest  int                 // guarded by mu; where the next goes in recent
	missing int64               // guarded by mu; records that could not be written, not reported yet
	closed  bool                // guarded by mu
	seed    maphash.Seed        // read-only
	doubt   map[uint64]struct{} // guarded by mu; the last ends of a killed run
}

// older is a file that was rotated.
type older struct {
	path string
	size int64
}

// ErrClosed is returned by the use of a Log after Close.
var ErrClosed = errors.New("crawllog: log is closed")

// Open opens a log for appending. It removes a cut last line. Only one Log may have a path open.
func Open(o Options) (*Log, error) {
	o.MaxBytes = cmp.Or(o.MaxBytes, defaultBytes)
	if o.MaxBytes < leastBytes {
		return nil, fmt.Errorf("crawllog: options: MaxBytes is %d; want >= %d", o.MaxBytes, leastBytes)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{View: View{o.Path}, max: o.MaxBytes, now: o.Now, next: 1, seed: maphash.MakeSeed()}
	if o.Path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(o.Path), 0o755); err != nil {
		return nil, fmt.Errorf("crawllog: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// open takes over the files of the previous run.
func (l *Log) open() error {
	all, err := l.rotated()
	if err != nil {
		return err
	}
	for _, f := range all {
		info, err := os.Stat(f.path)
		if err != nil {
			return fmt.Errorf("crawllog: %w", err)
		}
		l.older, l.next = append(l.older, older{f.path, info.Size()}), f.number+1
	}
	torn, err := l.append()
	if err == nil {
		err = l.recall(torn)
	}
	if err != nil && l.file != nil {
		_ = l.file.Close()
	}
	return err
}

// append opens the file for appending, and removes what follows its last complete line.
func (l *Log) append() (torn bool, err error) {
	if l.file, err = os.OpenFile(l.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return false, fmt.Errorf("crawllog: %w", err)
	}
	info, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("crawllog: %w", err)
	}
	l.size, err = wholeLines(l.file, info.Size())
	if err == nil && l.size < info.Size() {
		torn, err = true, l.file.Truncate(l.size)
	}
	if err != nil {
		return torn, fmt.Errorf("crawllog: %w", err)
	}
	return torn, nil
}

// wholeLines returns where the last complete line of a file ends.
func wholeLines(f *os.File, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// recall reads how the run before ended, and records that a new one begins.
func (l *Log) recall(torn bool) error {
	opened := Record{Outcome: Opened}
	if torn {
		opened.Count = 1
	}
	var last []Record
	for r, err := range l.Backward() {
		if errors.Is(err, ErrLine) {
			continue
		}
		if err != nil {
			return err
		}
		if len(last) == 0 && r.Outcome != Closed {
			opened.Reason, l.doubt = "the run before did not end in good order: what it was about to end comes again", map[uint64]struct{}{}
		}
		if l.doubt != nil && r.URL != "" {
			l.doubt[l.mark(&r)] = struct{}{}
		}
		if last = append(last, r); len(last) >= doubtful || l.doubt == nil && len(last) >= remembered {
			break
		}
	}
	for _, r := range slices.Backward(last[:min(len(last), remembered)]) {
		l.rememberLocked(r)
	}
	return l.Add(opened)
}

// mark returns the same value for two records of the same end.
func (l *Log) mark(r *Record) uint64 {
	var h maphash.Hash
	h.SetSeed(l.seed)
	fmt.Fprintf(&h, "%d %d %d %s", r.Crawl, r.Visit, r.Attempt, r.URL)
	return h.Sum64()
}

// Add appends a record. If it returns no error, the record survives the death of the process. If it
// returns an error, the record is counted, and before the next record that can be written comes one
// with the number of Missing ones.
func (l *Log) Add(r Record) error {
	if r.Time.IsZero() {
		r.Time = l.now()
	}
	r.Time = r.Time.UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.doubt != nil && r.URL != "" {
		m := l.mark(&r)
		if _, ok := l.doubt[m]; ok {
			r.Again = true
			delete(l.doubt, m)
		}
	}
	l.rememberLocked(r)
	if l.path == "" {
		return nil
	}
	if l.missing > 0 {
		if err := l.writeLocked(Record{Time: r.Time, Outcome: Missing, Count: l.missing}); err != nil {
			l.missing++
			return err
		}
		l.missing = 0
	}
	if err := l.writeLocked(r); err != nil {
		l.missing++
		return err
	}
	return nil
}

func (l *Log) rememberLocked(r Record) {
	if len(l.recent) < remembered {
		l.recent = append(l.recent, r)
		return
	}
	l.recent[l.newest] = r
	l.newest = (l.newest + 1) % remembered
}

// writeLocked writes one line or nothing.
func (l *Log) writeLocked(r Record) error {
	line, err := r.MarshalLine()
	if err != nil {
		return err
	}
	if err := l.makeRoomLocked(int64(len(line))); err != nil {
		return fmt.Errorf("crawllog: %w", err)
	}
	n, err := l.file.Write(line)
	if err == nil {
		l.size += int64(n)
		return nil
	}
	if n > 0 {
		err = errors.Join(err, l.file.Truncate(l.size))
	}
	return fmt.Errorf("crawllog: %w", err)
}

// makeRoomLocked starts a new file if this one has reached its share, and removes the oldest while
// the total is too large.
func (l *Log) makeRoomLocked(n int64) error {
	if l.file == nil {
		if _, err := l.append(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+n > l.max/shares {
		if err := l.rotateLocked(); err != nil {
			return err
		}
	}
	total := l.size + n
	for _, f := range l.older {
		total += f.size
	}
	for total > l.max && len(l.older) > 0 {
		if err := os.Remove(l.older[0].path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		total -= l.older[0].size
		l.older = l.older[1:]
	}
	return nil
}

func (l *Log) rotateLocked() error {
	path := fmt.Sprintf("%s.%06d", l.path, l.next)
	err := l.file.Close()
	l.file = nil
	if err == nil {
		err = os.Rename(l.path, path)
	}
	if err != nil {
		return err
	}
	l.older, l.next = append(l.older, older{path, l.size}), l.next+1
	_, err = l.append()
	return err
}

// Recent returns up to n of the newest records, newest first. Records in memory are not read from
// the files.
func (l *Log) Recent(n int) ([]Record, error) {
	l.mu.Lock()
	have := len(l.recent)
	if n > have && have == remembered && l.path != "" {
		l.mu.Unlock()
		return l.View.Recent(n)
	}
	defer l.mu.Unlock()
	all := make([]Record, 0, max(0, min(n, have)))
	for i := 1; i <= have && len(all) < n; i++ {
		all = append(all, l.recent[(l.newest-i+2*have)%have])
	}
	return all, nil
}

// Close records that the run ended normally, and closes the file. Closing again does nothing.
func (l *Log) Close() error {
	err := l.Add(Record{Outcome: Closed})
	if errors.Is(err, ErrClosed) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	return err
}
