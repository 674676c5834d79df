package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// marksPerLine is the maximum number of marks in a line.
const marksPerLine = 256

// Writer collects rows, URLs and marks in any order, and writes them in the order of an export: two
// frontiers with the same content produce the same export.
type Writer struct {
	Header  Header // to be set before the first URL is added
	NoMarks bool
	Source  Source

	sorter sorter
	out    *bufio.Writer
	line   lineWriter
	lines  int64
	marks  []storage.Mark
	order  uint64 // of the next URL
	buf    []byte // key of an entry
	name   []byte // of its host, reversed
	named  []byte // a body, its host, and the length of that
}

// NewWriter returns a Writer that sorts within memory bytes, and beyond that with a temporary file
// in dir. Call Close afterwards.
func NewWriter(dir string, memory int) *Writer {
	return &Writer{sorter: sorter{dir: dir, limit: memory}}
}

// Close removes the temporary file.
func (w *Writer) Close() error { return w.sorter.close() }

// InMemory calls fn, and does not write to the temporary file meanwhile.
func (w *Writer) InMemory(fn func() error) error {
	limit := w.sorter.limit
	w.sorter.limit = 0
	defer func() { w.sorter.limit = limit }()
	return fn()
}

// Sections of the sorted entries: the first byte of their keys.
const (
	sectionCrawl = iota + 1
	sectionRule
	sectionUsed
	sectionValue
	sectionForgotten
	sectionGroup
	sectionHost
	sectionURL
)

// There may be two entries for a group or host: the one from memory counts.
const (
	fromMemory = iota
	fromRow
)

// AddRow adds a row of a crawl, rule, usage, value, group or host, or of what was forgotten. memory means that
// the row comes from memory: for a group or host it replaces the stored row.
func (w *Writer) AddRow(key string, value []byte, memory bool) error {
	from := byte(fromRow)
	if memory {
		from = fromMemory
	}
	prefix, name := key[:len(row.HostKey)], key[len(row.HostKey):]
	switch prefix {
	case row.CrawlKey:
		return w.addPlain(sectionCrawl, name, value)
	case row.RuleKey:
		return w.addPlain(sectionRule, name, value)
	case row.UsageKey:
		return w.addPlain(sectionUsed, name, value)
	case row.ValueKey:
		return w.addPlain(sectionValue, name, value)
	case row.ForgetKey:
		return w.addPlain(sectionForgotten, name, value)
	case row.GroupKey:
		w.buf = append(escaped(append(w.buf[:0], sectionGroup), bytesOf(name)), 0, 1)
	default:
		w.buf = w.appendHost(append(w.buf[:0], sectionHost), name)
	}
	w.buf = append(w.buf, from)
	at := len(w.buf)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(name)))
	w.buf = append(append(w.buf, name...), value...)
	return w.sorter.add(w.buf[:at], w.buf[at:])
}

// addPlain adds a row that sorts by its key, without the prefix.
func (w *Writer) addPlain(section byte, key string, value []byte) error {
	w.buf = append(append(w.buf[:0], section), key...)
	return w.sorter.add(w.buf, value)
}

// appendHost appends a key that sorts hosts by domain.
func (w *Writer) appendHost(dst []byte, host string) []byte {
	w.name = hostkey.AppendReversed(w.name[:0], bytesOf(host))
	return append(escaped(dst, w.name), 0, 1)
}

// escaped appends s in a form in which s followed by a 0 and a 1 sorts before every continuation of s.
func escaped(dst, s []byte) []byte {
	if bytes.IndexByte(s, 0) < 0 {
		return append(dst, s...)
	}
	return append(dst, bytes.ReplaceAll(s, []byte{0}, []byte{0, 255})...)
}

// AddURL adds the record of a URL. due is 0 if it waits and was never scheduled; other waiting URLs
// come next, then those that are scheduled for later.
func (w *Writer) AddURL(q *storage.Queue, due int64, body []byte) error {
	w.order++
	later := byte(0)
	if due > w.Header.Moment {
		later = 1
	}
	w.buf = w.appendHost(append(w.buf[:0], sectionURL), q.Host)
	w.buf = binary.BigEndian.AppendUint32(w.buf, q.Crawl)
	w.buf = append(w.buf, ^q.Priority, later)
	w.buf = binary.BigEndian.AppendUint64(w.buf, uint64(due)^1<<63)
	w.buf = binary.BigEndian.AppendUint64(w.buf, w.order)
	if record.Named(body) { // the key has the host in another form
		w.named = append(append(append(w.named[:0], body...), q.Host...), byte(len(q.Host)))
		body = w.named
	}
	return w.sorter.add(w.buf, body)
}

const urlTail = 4 + 1 + 1 + 8 + 8 // bytes behind the host in the key of a URL

// GrowMarks makes room for n marks.
func (w *Writer) GrowMarks(n int) { w.marks = slices.Grow(w.marks, n) }

// AddMark adds a mark that is missing from the Snapshot.
func (w *Writer) AddMark(m storage.Mark) {
	if !w.NoMarks {
		w.marks = append(w.marks, m)
	}
}

// Write writes all lines. s provides the marks of completed checkpoints; nil means none.
func (w *Writer) Write(to io.Writer, s storage.Snapshot) error {
	w.out = bufio.NewWriterSize(to, 64<<10)
	if err := w.put(w.line.header(w.Header)); err != nil {
		return err
	}
	var last []byte // host or group
	err := w.sorter.each(func(key, value []byte) error {
		if err := w.Source.Alive(); err != nil {
			return err
		}
		switch key[0] {
		case sectionCrawl:
			return w.writeCrawl(string(key[1:]), value)
		case sectionRule:
			return w.writeRule(string(key[1:]), value)
		case sectionUsed:
			return w.writeUsed(string(key[1:]), value)
		case sectionValue:
			return w.writeValue(string(key[1:]), value)
		case sectionForgotten:
			return w.writeForgotten(string(key[1:]), value)
		case sectionURL:
			return w.writeURL(key, value)
		}
		name := key[:len(key)-1]
		if bytes.Equal(name, last) {
			return nil // the row from memory was written instead
		}
		last = append(last[:0], name...)
		n, k := binary.Uvarint(value)
		if row, name := value[k+int(n):], string(value[k:k+int(n)]); key[0] == sectionHost {
			return w.writeHost(name, row, key[len(key)-1] == fromRow)
		} else {
			return w.writeGroup(name, row)
		}
	})
	if err == nil && !w.NoMarks {
		err = w.writeMarks(s)
	}
	if err == nil {
		err = w.put(w.line.trailer(w.lines))
	}
	if err != nil {
		return err
	}
	return w.out.Flush()
}

func (w *Writer) put(line []byte) error {
	w.lines++
	_, err := w.out.Write(line)
	return err
}

func (w *Writer) writeCrawl(key string, value []byte) error {
	c, err := row.ParseCrawl(key, value)
	if err != nil || c.CrawlSettings == row.DefaultCrawl {
		return err
	}
	return w.put(w.line.crawl(&c))
}

// writeUsed writes the use of limits.
func (w *Writer) writeUsed(name string, value []byte) error {
	u, err := row.ParseUsage(row.UsageKey+name, value)
	if err != nil || u == (row.Usage{}) {
		return err
	}
	if id, ok := strings.CutPrefix(name, "c"); ok && len(id) == 4 {
		return w.put(w.line.usedByCrawl(binary.BigEndian.Uint32([]byte(id)), &u))
	}
	s, err := row.ScopeOf(strings.TrimPrefix(name, "r"))
	if err != nil {
		return row.Malformed(row.UsageKey + name)
	}
	return w.put(w.line.usedByScope(s, &u))
}

func (w *Writer) writeValue(key string, p []byte) error {
	v, err := row.ParseValue(row.ValueKey+key, p)
	if err != nil {
		return err
	}
	return w.put(w.line.value(key, v))
}

// writeForgotten writes a number. Without the marks it is of no use.
func (w *Writer) writeForgotten(key string, p []byte) error {
	x, err := row.ParseForgotten(row.ForgetKey+key, p)
	if err != nil || w.NoMarks {
		return err
	}
	return w.put(w.line.forgotten(&x))
}

func (w *Writer) writeGroup(name string, value []byte) error {
	g, err := row.ParseGroup(name, value)
	if err != nil {
		return err
	}
	if g.Due <= max(w.Header.Moment, w.Header.Held) {
		g.Due = 0
	}
	if g == (row.Group{}) {
		return nil
	}
	return w.put(w.line.group(name, &g))
}

// writeHost writes the data of a host, if there is any. A dormant host is no longer a member of a
// group unless it has other data.
func (w *Writer) writeHost(name string, value []byte, dormant bool) error {
	h, err := row.ParseHost(name, value)
	if err != nil {
		return err
	}
	w.Source.Host(name, &h)
	rest := h
	if dormant && !h.Assigned {
		rest.Group = ""
	}
	if rest == (row.Host{}) {
		return nil
	}
	return w.put(w.line.host(name, &h))
}

func (w *Writer) writeURL(key, value []byte) error {
	var u URL
	host := ""
	if record.Named(value) {
		end := len(value) - 1
		at := end - int(value[end])
		host, value = string(value[at:end]), value[:at]
	}
	if err := w.Source.URL(value, &u); err != nil {
		return &storage.CorruptError{Err: err}
	}
	u.Host = host
	tail := key[len(key)-urlTail:]
	u.Crawl, u.Priority = binary.BigEndian.Uint32(tail), int(^tail[4])
	if tail[5] == 1 {
		u.Due = int64(binary.BigEndian.Uint64(tail[6:]) ^ 1<<63)
	}
	return w.put(w.line.url(&u))
}

// writeMarks writes all marks in ascending order, including those of s.
func (w *Writer) writeMarks(s storage.Snapshot) error {
	line := make([]storage.Mark, 0, marksPerLine)
	flush := func() error {
		if len(line) == 0 {
			return nil
		}
		err := w.put(w.line.marks(line))
		line = line[:0]
		return err
	}
	var last storage.Mark
	first := true
	take := func(m storage.Mark) error {
		if m == last && !first {
			return nil
		}
		last, first = m, false
		if line = append(line, m); len(line) < cap(line) {
			return nil
		}
		return flush()
	}
	slices.SortFunc(w.marks, compareMarks)
	takeBefore := func(m *storage.Mark) error {
		for len(w.marks) > 0 && (m == nil || compareMarks(w.marks[0], *m) < 0) {
			if err := take(w.marks[0]); err != nil {
				return err
			}
			w.marks = w.marks[1:]
		}
		return nil
	}
	var err error
	if s != nil {
		err = s.Marks(func(ms []storage.Mark) error {
			for i := range ms {
				if err := errors.Join(w.Source.Alive(), takeBefore(&ms[i]), take(ms[i])); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = takeBefore(nil)
	}
	if err == nil {
		err = flush()
	}
	return err
}

func compareMarks(a, b storage.Mark) int { return bytes.Compare(a[:], b[:]) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
