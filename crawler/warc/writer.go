// This file writes WARC files: one record after the other, one file after the other.
// What a crash left is dealt with in recover.go.

package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/seed-7440039f/frontier/crawler/spool"
	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/faults"
)

var (
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("warc: closed")
	// ErrInUse is returned by Open, wrapped, for a folder that another Writer has open, in this
	// process or another. It is detected only on systems with flock.
	ErrInUse = durablefs.ErrLocked
)

// openSuffix ends the name of the file that is being written.
const openSuffix = ".open"

// Options configure a Writer. The zero value is fit for a crawl.
type Options struct {
	// Prefix begins the names of files: letters, digits, hyphens, underscores. Empty means
	// "frontier".
	Prefix string
	// MaxSize is the size, in bytes, from which on the next file is started. Zero means 1 GB, as
	// the standard recommends.
	MaxSize int64
	// MaxRecords is the number of records from which on the next file is started. It limits the
	// memory for a file's index, about 300 bytes for each answer. Zero means 100,000.
	MaxRecords int
	// Plain writes files that are not compressed.
	Plain bool
	// NoIndex leaves the index files out.
	NoIndex bool
	// Remember is the number of payloads remembered, to write revisit records for payloads that
	// occur again at any URL, and the number of URLs remembered with their last capture, for
	// answers with status 304. They take 130 and 200 bytes each. Open reads the latest from the
	// folder's indexes. Zero means none.
	Remember int
	// Sync makes Write return only when the records are on the medium, so that they survive a loss
	// of power. Without it they survive the death of the process.
	Sync bool
	// TempDir is the folder for building records that are longer than 1 MiB. Empty means
	// os.TempDir.
	TempDir string
	// Software and Info are written to each file's warcinfo record: the crawler's name and version,
	// and further fields such as operator, robots or description.
	Software string
	Info     Header
	// Now returns the time. Nil means time.Now.
	Now func() time.Time
	// Logger receives messages about finished files and about repairs after a crash. Nil discards
	// them.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, "frontier")
	o.MaxSize = cmp.Or(o.MaxSize, 1e9)
	o.MaxRecords = cmp.Or(o.MaxRecords, 100_000)
	o.Software = cmp.Or(o.Software, "frontier (+https://github.com/seed-7440039f/frontier)")
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

func (o Options) validate() error { // runs after withDefaults; reports every fault at once
	var wrong faults.List
	other := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}
	wrong.If(strings.ContainsFunc(o.Prefix, other), "Prefix is %q; want letters, digits, hyphens and underscores", o.Prefix)
	wrong.If(o.MaxSize < 0, "MaxSize is %d; want >= 0", o.MaxSize)
	wrong.If(o.MaxRecords < 0, "MaxRecords is %d; want >= 0", o.MaxRecords)
	wrong.If(o.Remember < 0, "Remember is %d; want >= 0", o.Remember)
	return wrong.Of("warc: options")
}

// Writer writes records into the files of a folder. It is safe for concurrent use.
type Writer struct {
	dir  string
	opts Options  // read-only
	lock *os.File // of the folder, held until Close

	mu      sync.Mutex // held while a record is written: files are written one record at a time
	closed  bool       // guarded by mu
	file    file       // guarded by mu; nil before the first record of a file
	name    string     // guarded by mu; of file, without openSuffix
	size    int64      // guarded by mu
	records int        // guarded by mu; in file
	number  int        // guarded by mu; of the last file begun
	lines   []string   // guarded by mu; of the file's index
	broken  error      // guarded by mu; why nothing more can be written

	seen     payloads // by digest
	captures payloads // by URL
}

// file is an *os.File, or a faulty one in tests.
type file interface {
	io.WriteSeeker
	io.Closer
	Sync() error
	Truncate(size int64) error
}

// packed is a record ready to be written, in memory or a file.
type packed struct {
	body *spool.Body
	line *IndexLine // nil if it is not indexed
}

// Write writes records next to each other in one file. It sets an ID and a Date where they are
// missing. Once it has returned, the records survive kill -9. After an error none of them is in the
// file, unless Close reports that the file could not be repaired.
func (w *Writer) Write(records ...*Record) error {
	all := make([]packed, 0, len(records))
	defer func() {
		for _, p := range all {
			_ = p.body.Close()
		}
	}()
	for _, r := range records {
		p, err := w.pack(r)
		if err != nil {
			return fmt.Errorf("warc: write: %w", err)
		}
		all = append(all, p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.put(all); err != nil {
		return fmt.Errorf("warc: write: %w", err)
	}
	return nil
}

// pack makes a record's bytes, outside of the lock.
func (w *Writer) pack(r *Record) (packed, error) {
	if r.ID == "" {
		r.ID = NewID()
	}
	if r.Date.IsZero() {
		r.Date = w.opts.Now()
	}
	block, ok := r.Block.(io.ReadSeeker)
	if r.Block != nil && !ok { // it must be read twice
		spool := spool.New(spool.Options{Dir: w.opts.TempDir})
		defer spool.Close()
		if _, err := io.Copy(spool, r.Block); err != nil {
			return packed{}, err
		}
		block = spool.Reader()
	}
	if block == nil {
		block = bytes.NewReader(nil)
	}
	head := heads.Get().(*[maxHeader]byte)
	defer heads.Put(head)
	n, err := io.ReadFull(block, head[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return packed{}, err
	}
	sum, err := summed(block)
	if err != nil {
		return packed{}, err
	}
	begin, err := r.head(sum)
	if err != nil {
		return packed{}, err
	}
	p := packed{body: spool.New(spool.Options{Dir: w.opts.TempDir}), line: indexLine(r, head[:n])}
	src := io.MultiReader(bytes.NewReader(begin), block, strings.NewReader("\r\n\r\n"))
	if w.opts.Plain {
		_, err = io.Copy(p.body, src)
	} else {
		err = compress(p.body, src)
	}
	if err != nil {
		return packed{}, errors.Join(err, p.body.Close())
	}
	return p, nil
}

// heads are buffers for the beginnings of records.
var heads = sync.Pool{New: func() any { return new([maxHeader]byte) }}

var zippers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// compress makes a gzip member.
func compress(out io.Writer, in io.Reader) error {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	z.Reset(out)
	_, err := io.Copy(z, in)
	return errors.Join(err, z.Close())
}

// put writes records to the file, the first in a new one if that is due.
func (w *Writer) put(all []packed) error {
	switch {
	case w.closed:
		return ErrClosed
	case w.broken != nil:
		return w.broken
	}
	if w.file != nil && (w.size >= w.opts.MaxSize || w.records >= w.opts.MaxRecords) {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.file == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	return w.append(all)
}

// append adds records to the file; those in memory are one write. If it fails, the file is
// truncated to its previous length.
func (w *Writer) append(all []packed) error {
	size, lines := w.size, len(w.lines)
	out := bufio.NewWriterSize(w.file, 64<<10)
	var err error
	for _, p := range all {
		if p.line != nil && !w.opts.NoIndex {
			p.line.Offset, p.line.Length, p.line.Filename = fmt.Sprint(size), fmt.Sprint(p.body.Size()), w.name
			w.lines = append(w.lines, p.line.String())
		}
		if _, err = io.Copy(out, p.body.Reader()); err != nil {
			break
		}
		size += p.body.Size()
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil && w.opts.Sync {
		err = w.file.Sync()
	}
	if err != nil {
		w.lines = w.lines[:lines]
		undo := w.file.Truncate(w.size)
		_, back := w.file.Seek(w.size, io.SeekStart)
		if undo = errors.Join(undo, back); undo != nil {
			w.broken = fmt.Errorf("%s may end in a torn record: %w", w.name, errors.Join(err, undo))
		}
		return err
	}
	w.size = size
	w.records += len(all)
	return nil
}

// begin makes the next file, with its warcinfo record.
func (w *Writer) begin() error {
	now := w.opts.Now().UTC()
	suffix := ".warc.gz"
	if w.opts.Plain {
		suffix = ".warc"
	}
	var name string
	for { // another Writer may have started files in this second
		w.number++
		name = fmt.Sprintf("%s-%s-%05d%s", w.opts.Prefix, now.Format("20060102150405"), w.number, suffix)
		if _, err := os.Lstat(filepath.Join(w.dir, name)); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name+openSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	info := &Record{Type: Info, Date: now, Header: Header{{"WARC-Filename", name}, {"Content-Type", "application/warc-fields"}}, Block: bytes.NewReader(w.info())}
	p, err := w.pack(info)
	if err == nil {
		defer p.body.Close()
		w.file, w.name, w.size, w.records, w.lines = f, name, 0, 0, nil
		err = w.append([]packed{p})
	}
	if err != nil {
		w.file = nil
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return nil
}

// info returns the block of a warcinfo record.
func (w *Writer) info() []byte {
	return fieldsBlock(append(Header{{"software", w.opts.Software}, {"format", "WARC File Format 1.1"},
		{"conformsTo", "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"}}, w.opts.Info...))
}

// finish gives the file its final name, and writes its index.
func (w *Writer) finish() error {
	f := w.file
	w.file = nil
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		w.broken = err
		return err
	}
	return w.publish(w.name, w.lines)
}

// publish gives a complete file its final name, after its index was written.
func (w *Writer) publish(name string, lines []string) error {
	if !w.opts.NoIndex {
		if err := writeIndex(filepath.Join(w.dir, name), lines); err != nil {
			return err
		}
	}
	path := filepath.Join(w.dir, name)
	if err := os.Rename(path+openSuffix, path); err != nil {
		return err
	}
	w.opts.Logger.Info("a WARC file is finished", "file", path)
	return nil
}

// Close finishes the file that is being written.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	defer w.lock.Close()
	switch {
	case w.broken != nil && w.file != nil:
		return errors.Join(w.broken, w.file.Close())
	case w.file != nil:
		return w.finish()
	}
	return w.broken
}
