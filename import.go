// This file reads what Export wrote, or a list of URLs, into a frontier.
//
// Unless malformed lines are to be passed over, everything is read twice: first
// to see that all of it is good. importlines.go reads lines, importapply.go does
// what they say.

package frontier

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// ImportOptions say how Import works. The zero value is good.
type ImportOptions struct {
	// SkipBad imports the good lines if others are malformed. Otherwise nothing is
	// imported then.
	SkipBad bool
	// Crawl is the crawl of URLs in a plain list.
	Crawl uint32
	// Normalize spells the URLs of a plain list; a line for which it has an error is
	// malformed. Nil takes them as they are.
	Normalize func(url string) (string, error)
	// TempDir is the folder of the temporary file, which is needed without SkipBad
	// unless the reader is an io.Seeker. Empty means os.TempDir().
	TempDir string
}

// Imported is what an import did.
type Imported struct {
	Lines     int64 // read
	Bad       int64 // of them, malformed ones
	URLs      int64 // admitted
	KnownURLs int64 // that were known, and left as they were
	Crawls    int64 // whose settings were put in force
	Rules     int64 // put in force
	Groups    int64 // whose clocks or settings were read
	Hosts     int64 // whose clocks and the like were read
	Marks     int64 // URLs that became known without being admitted
	// ForeignMarks are marks under another key than the frontier's, which say
	// nothing to it: the URLs would be new.
	ForeignMarks int64
}

// LineError reports a line that Import could not read. Several are joined;
// errors.As finds the first.
type LineError struct {
	Line int64  // counted from 1
	Text string // its beginning
	Err  error  // what was wrong
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("frontier: import: line %d %q: %v", e.Line, e.Text, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

const (
	maxLine       = 1 << 20 // bytes
	lineErrorsMax = 100     // that are kept
	lineErrorText = 80      // bytes of a line that are told
)

// Import takes in what Export wrote, or a list with a URL in each line, where empty
// lines and those that begin with # do not count. docs/export.md has the format.
//
// Known URLs stay as they are, clocks of hosts and groups move only later, and
// rules replace those of the same scope: importing the same again changes nothing.
// URLs wait behind those that wait already. Times are those of the wall clock, so
// politeness goes on where it was.
//
// Marks of URLs that are gone are of use only under the key under which they were
// made. A frontier in which there never was a URL or host takes the key over;
// call Import before anything else then. Otherwise they are counted in
// Imported.ForeignMarks.
//
// Malformed lines are reported as joined *LineErrors, the first 100 of them. If
// there are any nothing is imported, or with SkipBad all the others. After any
// other error, those of Add among them, a part was imported: import again. What
// was imported is durable when Import returns. Like Add it waits while the disk is
// behind; until it returns the crawl is not over.
func (f *Frontier) Import(ctx context.Context, r io.Reader, o ImportOptions) (Imported, error) {
	if err := ctx.Err(); err != nil {
		return Imported{}, err
	}
	in := &lent{r: r}
	defer in.end()
	r = in
	if s, ok := in.r.(io.Seeker); ok {
		r = lentSeeker{in, s}
	}
	return inTime(ctx, f, func() (Imported, error) { return f.importFrom(ctx, r, o) })
}

func (f *Frontier) importFrom(ctx context.Context, r io.Reader, o ImportOptions) (Imported, error) {
	f.adding.Add(1)
	defer f.addedAll()
	if o.SkipBad {
		im := &importer{f: f, ctx: ctx, o: o}
		err := im.run(r)
		return im.done, errors.Join(errors.Join(im.bad...), err)
	}
	again, end, err := f.checkImport(ctx, r, o)
	defer end()
	if err != nil {
		return Imported{}, err
	}
	im := &importer{f: f, ctx: ctx, o: o}
	err = im.run(again)
	return im.done, errors.Join(errors.Join(im.bad...), err)
}

// checkImport reads all of r and returns the same to be read again, or what is
// wrong with it. end frees what it needs for that.
func (f *Frontier) checkImport(ctx context.Context, r io.Reader, o ImportOptions) (again io.Reader, end func(), err error) {
	end = func() {}
	check := &importer{f: f, ctx: ctx, o: o, dry: true}
	s, seeks := r.(io.Seeker)
	var from int64
	if seeks {
		if from, err = s.Seek(0, io.SeekCurrent); err != nil {
			seeks = false // it only looks like it
		}
	}
	again = r
	if !seeks {
		file, err := os.CreateTemp(o.TempDir, "frontier-import-*")
		if err != nil {
			return nil, end, fmt.Errorf("frontier: import: %w", err)
		}
		end = func() { _, _ = file.Close(), os.Remove(file.Name()) }
		s, from, again = file, 0, file
		r = io.TeeReader(r, file)
	}
	if err := check.run(r); err != nil {
		return nil, end, err
	}
	if len(check.bad) > 0 {
		return nil, end, errors.Join(check.bad...)
	}
	if _, err := s.Seek(from, io.SeekStart); err != nil {
		return nil, end, fmt.Errorf("frontier: import: %w", err)
	}
	return again, end, nil
}

// importer is one reading of an import.
type importer struct {
	f    *Frontier
	ctx  context.Context
	o    ImportOptions
	dry  bool // only to see what is malformed
	done Imported
	bad  []error

	header  bool // there was one: it is an export
	foreign bool // its key is not ours
	ended   bool // its last line was read
	line    exportLine
	op      *op // URLs to be admitted; nil: none
	marks   []Mark
	pending pendingOps
}

// run reads and does all lines.
func (im *importer) run(r io.Reader) (err error) {
	defer func() {
		err = errors.Join(err, im.pending.wait())
		im.f.letGo(im.pending.members)
		if im.op != nil {
			im.op.free()
		}
	}()
	br := bufio.NewReaderSize(r, 64<<10)
	var buf []byte
	for {
		line, long, err := readLine(br, buf[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("frontier: import: %w", err)
		}
		if len(line) > 0 || err == nil {
			im.done.Lines++
			if err := im.take(line, long); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
		buf = line
		if im.done.Lines%256 == 0 && im.ctx.Err() != nil {
			return im.ctx.Err()
		}
	}
	if im.header && !im.ended {
		im.fault(nil, fmt.Errorf("the export was cut off: its last line is missing: %w", io.ErrUnexpectedEOF))
	}
	return unwrapped(im.flushMarks())
}

// readLine reads a line into buf, without its end. Of one that is too long it
// reads the beginning and passes over the rest.
func readLine(r *bufio.Reader, buf []byte) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(buf)+len(part) <= maxLine {
			buf = append(buf, part...)
		} else {
			long = true
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(buf, []byte{'\n'}), long, err
		}
	}
}

// fault notes that the current line is malformed.
func (im *importer) fault(line []byte, err error) {
	im.done.Bad++
	if len(im.bad) < lineErrorsMax {
		text := string(line[:min(len(line), lineErrorText)])
		im.bad = append(im.bad, &LineError{Line: im.done.Lines, Text: text, Err: err})
	}
}

// take does what a line says. Only what is not the line's fault is an error.
func (im *importer) take(line []byte, long bool) error {
	if im.done.Lines == 1 {
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	text := bytes.TrimSpace(line)
	var err error
	switch {
	case long:
		err = fmt.Errorf("longer than %d bytes", maxLine)
	case im.ended:
		err = errors.New("comes after the export's last line")
	case len(text) > 0 && text[0] == '{':
		err = im.json(text)
	case im.header:
		err = errors.New("not a line of an export")
	case len(text) == 0 || text[0] == '#':
	default:
		err = im.listed(string(text))
	}
	if ours := unwrapped(err); ours != nil {
		return ours
	}
	if err != nil {
		im.fault(line, err)
	}
	return nil
}

// importError is an error that is not the line's fault.
type importError struct{ error }

func (e *importError) Unwrap() error { return e.error }

// unwrapped is the error that is not the line's fault, if err is one.
func unwrapped(err error) error {
	var ours *importError
	if errors.As(err, &ours) {
		return ours.error
	}
	return nil
}

// listed takes a URL of a plain list.
func (im *importer) listed(url string) (err error) {
	if im.o.Normalize != nil {
		if url, err = im.o.Normalize(url); err != nil {
			return err
		}
	}
	return im.url(&Entry{URL: url, Crawl: im.o.Crawl}, 0, 0, History{})
}
