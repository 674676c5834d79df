// This file opens a folder of WARC files and repairs the traces of a crash: a file without its final
// name, possibly with a torn last record.

package warc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// Open returns a Writer of new files in a folder, which it creates if necessary. It finishes the
// file of a crashed Writer: it reads the file, keeps all complete records, cuts off a torn one at
// the end, and writes the index. A file that is damaged elsewhere is logged and renamed to end in
// .damaged. Open reads the payloads to remember from the folder's indexes: see Options.Remember.
// Only one Writer may use a folder at a time: see ErrInUse.
func Open(dir string, o Options) (*Writer, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("warc: open: %w", err)
	}
	lock, err := durablefs.Lock(dir)
	if err != nil {
		return nil, fmt.Errorf("warc: open: %w", err)
	}
	w := &Writer{dir: dir, opts: o, lock: lock}
	w.seen.max, w.captures.max = o.Remember, o.Remember
	if err := w.mendAll(); err != nil {
		return nil, errors.Join(fmt.Errorf("warc: open: %w", err), lock.Close())
	}
	w.recall()
	return w, nil
}

// mendAll finishes the files that a crash left.
func (w *Writer) mendAll() error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(w.dir), "*"+openSuffix))
	if err != nil {
		return err
	}
	for _, path := range left {
		if strings.HasSuffix(path, ".cdxj"+openSuffix) {
			err = os.Remove(path) // it is made again from its WARC file
		} else {
			err = w.mend(path)
		}
		if err != nil {
			return fmt.Errorf("mend %s: %w", path, err)
		}
	}
	return nil
}

func escapeGlob(dir string) string {
	if filepath.Separator == '\\' {
		return dir // there is no escaping
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}

// mend finishes a file that a crash left.
func (w *Writer) mend(path string) error {
	name := strings.TrimSuffix(filepath.Base(path), openSuffix)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	lines, whole, err := survey(f, name)
	if err == nil {
		err = checkTail(f, whole)
	}
	if errors.Is(err, ErrSyntax) { // no crash causes this
		aside := strings.TrimSuffix(path, openSuffix) + ".damaged"
		w.opts.Logger.Error("a WARC file is damaged and put aside", "file", aside, "error", err)
		return errors.Join(f.Close(), os.Rename(path, aside))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && whole < size {
		w.opts.Logger.Warn("a torn record is cut off", "file", path, "bytes", size-whole)
		err = f.Truncate(whole)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if whole == 0 { // not even its warcinfo record is complete
		return os.Remove(path)
	}
	return w.publish(name, lines)
}

// survey reads a file and returns its index, and the offset up to which its records are complete. A
// torn record at the end may be cut off; a damaged record with others after it may not.
func survey(f *os.File, name string) (lines []string, whole int64, err error) {
	r := NewReader(f)
	for {
		rec, err := r.Next()
		if err == io.EOF || errors.Is(err, ErrTorn) {
			return lines, whole, nil
		}
		if err != nil {
			return nil, 0, err
		}
		line, err := surveyRecord(rec, name)
		if errors.Is(err, ErrTorn) || err == nil && !r.block.whole {
			return lines, whole, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if line != nil {
			lines = append(lines, line.String())
		}
		whole = rec.Offset + rec.Size
	}
}

// beginnings are the first bytes of a record, in a gzip member or plain.
var beginnings = []string{"\x1f\x8b\x08", "WARC/1."}

// checkTail distinguishes damage from a torn end. Both make a record look truncated, but no record
// follows a torn one.
func checkTail(f *os.File, whole int64) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := bufio.NewReader(io.NewSectionReader(f, whole, size-whole))
	for at := whole; ; at++ {
		b, err := tail.Peek(len(beginnings[1]))
		if len(b) == 0 && err == io.EOF {
			return nil
		}
		if len(b) == 0 {
			return err
		}
		looksSo := func(begin string) bool { return bytes.HasPrefix(b, []byte(begin)) }
		if at > whole && slices.ContainsFunc(beginnings, looksSo) {
			if _, err := NewReader(io.NewSectionReader(f, at, size-at)).Next(); err == nil {
				return &Error{whole, fmt.Errorf("%w: a record that looks torn has another after it, at %d", ErrSyntax, at)}
			}
		}
		_, _ = tail.Discard(1)
	}
}

// surveyRecord reads a record to its end.
func surveyRecord(rec *Record, name string) (*IndexLine, error) {
	head, err := io.ReadAll(io.LimitReader(rec.Block, maxHeader))
	if err == nil {
		_, err = io.Copy(io.Discard, rec.Block)
	}
	if err != nil {
		return nil, err
	}
	line := indexLine(rec, head)
	if line != nil {
		line.Offset, line.Length, line.Filename = fmt.Sprint(rec.Offset), fmt.Sprint(rec.Size), name
	}
	return line, nil
}

// writeIndex writes the sorted index of a WARC file beside it.
func writeIndex(path string, lines []string) error {
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".warc") + ".cdxj"
	slices.Sort(lines)
	if err := os.WriteFile(path+openSuffix, []byte(strings.Join(append(lines, ""), "\n")), 0o644); err != nil {
		return err
	}
	return os.Rename(path+openSuffix, path)
}
