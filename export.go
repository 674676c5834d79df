// This file writes all that a frontier holds as lines of JSON, as it is at one
// moment, while it goes on.
//
// What is gathered goes through a sorter, so that two frontiers that hold the same
// write the same; exportread.go gathers it, exportlines.go writes the lines.

package frontier

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// ExportOptions say how Export works. The zero value is good.
type ExportOptions struct {
	// TempDir is the folder of the temporary file, which is needed for more than
	// Memory. Empty means os.TempDir().
	TempDir string
	// Memory is how many bytes sorting may take. Zero means 64 MiB.
	Memory int
	// NoMarks leaves out what is known of URLs that are gone: they would be new to
	// a frontier that imports the export.
	NoMarks bool
}

// minExportMemory is the least that ExportOptions.Memory may be.
const minExportMemory = 64 << 10

// Export writes everything that the frontier holds to w, in the lines that
// docs/export.md describes: rules, groups, hosts with their clocks, URLs with all
// that is known of them, and marks of the URLs that were ever admitted. Leased
// URLs are written as waiting. Import is its inverse.
//
// With a Spill it shows one moment, while everything else goes on; only clocks of
// hosts and groups are read a little later. Without one the lock is held while all
// is copied, about a second for ten million URLs, and the copy is in memory.
//
// Two frontiers that hold the same write the same bytes, but for the time in the
// first line. The order is that of domains, and within a host that in which URLs
// would be handed out after a reopening.
//
// Export returns ctx's error, ErrClosed if the frontier is closed meanwhile, w's
// error, or the Spill's. Then what was written has no last line {"end":...}, and
// Import refuses it. Calls may run side by side.
func (f *Frontier) Export(ctx context.Context, w io.Writer, o ExportOptions) error {
	out := &lent{w: w}
	defer out.end()
	_, err := inTime(ctx, f, func() (none struct{}, err error) { return none, f.export(ctx, out, o) })
	return err
}

func (f *Frontier) export(ctx context.Context, w io.Writer, o ExportOptions) (err error) {
	if o.Memory == 0 {
		o.Memory = 64 << 20
	}
	if o.Memory < minExportMemory {
		return fmt.Errorf("frontier: export: Memory is %d; want at least %d", o.Memory, minExportMemory)
	}
	x := &exporter{f: f, ctx: ctx, noMarks: o.NoMarks || f.opts.NoDedup, sorter: sorter{dir: o.TempDir, limit: o.Memory}}
	defer func() {
		if cerr := x.sorter.close(); err == nil && cerr != nil {
			err = fmt.Errorf("frontier: export: %w", cerr)
		}
	}()
	x.out = bufio.NewWriterSize(w, 64<<10)
	switch err := x.run(); {
	case err == nil:
		return nil
	case f.isClosed():
		return ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("frontier: export: %w", err)
	}
}

// exporter is one call of Export.
type exporter struct {
	f       *Frontier
	ctx     context.Context
	noMarks bool
	sorter  sorter
	out     *bufio.Writer
	line    lineWriter
	lines   int64

	moment int64 // that is shown, in Unix milliseconds
	key    [2]uint64
	held   int64  // see lineWriter.header
	young  []Mark // that are not among the Spill's completed checkpoints
	order  uint64 // of the next URL
	steps  int
	buf    []byte // key of an entry
}

// alive returns why the export should end, if it should. It looks now and then.
func (x *exporter) alive() error {
	if x.steps++; x.steps%256 != 0 {
		return nil
	}
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if x.f.isClosed() {
		return ErrClosed
	}
	return nil
}

func (x *exporter) run() error {
	if x.f.opts.Spill == nil {
		if err := x.copyAll(); err != nil {
			return err
		}
		return x.write(nil)
	}
	s, err := x.gather()
	if err != nil {
		return err
	}
	defer s.Release()
	return x.write(s)
}

// Sections of the sorted entries: the first byte of their keys.
const (
	sectionCrawl = iota + 1
	sectionRule
	sectionUsed
	sectionGroup
	sectionHost
	sectionURL
)

// Of a group or host there may be two entries: what is in memory counts.
const (
	fromMemory = iota
	fromRow
)

// addRow takes a row that goes by its key, without the prefix: of a rule or crawl.
func (x *exporter) addRow(section byte, key string, value []byte) error {
	x.buf = append(append(x.buf[:0], section), key...)
	return x.sorter.add(x.buf, value)
}

// addNamed takes the row of a host or group.
func (x *exporter) addNamed(section byte, name []byte, from byte, value []byte) error {
	x.buf = append(x.buf[:0], section)
	if section == sectionHost {
		x.buf = appendHostOrder(x.buf, name)
	} else {
		x.buf = append(escaped(x.buf, name), 0, 1)
	}
	x.buf = append(x.buf, from)
	at := len(x.buf)
	x.buf = binary.AppendUvarint(x.buf, uint64(len(name)))
	x.buf = append(append(x.buf, name...), value...)
	return x.sorter.add(x.buf[:at], x.buf[at:])
}

// appendHostOrder appends what sorts hosts by domain.
func appendHostOrder(dst, host []byte) []byte {
	var name [256]byte
	return append(escaped(dst, appendReversed(name[:0], host)), 0, 1)
}

// escaped appends s so that a 0 and a 1 behind it come before anything that
// continues it.
func escaped(dst, s []byte) []byte {
	if bytes.IndexByte(s, 0) < 0 {
		return append(dst, s...)
	}
	return append(dst, bytes.ReplaceAll(s, []byte{0}, []byte{0, 255})...)
}

// addURL takes a URL. due is 0 if it waits and always did; of others those follow
// that began to wait at some time, then those that will.
func (x *exporter) addURL(q *Queue, due int64, body []byte) error {
	if err := x.alive(); err != nil {
		return err
	}
	return x.addURLOf(bytesOf(q.Host), q.Crawl, q.Priority, due, body)
}

func (x *exporter) addURLOf(host []byte, crawl uint32, priority uint8, due int64, body []byte) error {
	x.order++
	later := byte(0)
	if due > x.moment {
		later = 1
	}
	x.buf = appendHostOrder(append(x.buf[:0], sectionURL), host)
	x.buf = binary.BigEndian.AppendUint32(x.buf, crawl)
	x.buf = append(x.buf, ^priority, later)
	x.buf = binary.BigEndian.AppendUint64(x.buf, uint64(due)^1<<63)
	x.buf = binary.BigEndian.AppendUint64(x.buf, x.order)
	return x.sorter.add(x.buf, body)
}

const urlTail = 4 + 1 + 1 + 8 + 8 // bytes behind the host in the key of a URL

// write writes all lines. s has the marks of completed checkpoints; nil: none.
func (x *exporter) write(s Snapshot) error {
	if err := x.put(x.line.header(x.moment, x.key, x.held)); err != nil {
		return err
	}
	var last []byte // host or group
	err := x.sorter.each(func(key, value []byte) error {
		if err := x.alive(); err != nil {
			return err
		}
		switch key[0] {
		case sectionCrawl:
			return x.writeCrawl(string(key[1:]), value)
		case sectionRule:
			return x.writeRule(string(key[1:]), value)
		case sectionUsed:
			return x.writeUsed(string(key[1:]), value)
		case sectionURL:
			return x.writeURL(key, value)
		}
		if name := key[:len(key)-1]; !bytes.Equal(name, last) { // else it was written as memory has it
			last = append(last[:0], name...)
			return x.writeNamed(key[0], value, key[len(key)-1] == fromRow)
		}
		return nil
	})
	if err == nil && !x.noMarks {
		err = x.writeMarks(s)
	}
	if err == nil {
		err = x.put(x.line.trailer(x.lines))
	}
	if err != nil {
		return err
	}
	return x.out.Flush()
}

func (x *exporter) put(line []byte) error {
	x.lines++
	_, err := x.out.Write(line)
	return err
}

func (x *exporter) writeCrawl(key string, value []byte) error {
	id, s, err := decodeCrawl(key, value)
	if err != nil {
		return rowError(rowCrawl+key, err)
	}
	if s == (CrawlSettings{Weight: 1}) {
		return nil
	}
	return x.put(x.line.crawl(id, &s))
}

func (x *exporter) writeRule(key string, value []byte) error {
	s, r, err := decodeRule(key, value)
	if err != nil {
		return rowError(rowRule+key, err)
	}
	if wallMillis(r.BlockedUntil) <= x.moment {
		r.BlockedUntil = millisTime(0)
	}
	if r.empty() {
		return nil
	}
	return x.put(x.line.rule(s, &r.Rule))
}

// writeUsed writes what was used of limits.
func (x *exporter) writeUsed(name string, value []byte) error {
	s, err := decodeUsage(rowUse+name, value)
	if err != nil || s == (usageState{}) {
		return err
	}
	if id, ok := strings.CutPrefix(name, "c"); ok && len(id) == 4 {
		return x.put(x.line.usedCrawl(binary.BigEndian.Uint32([]byte(id)), &s))
	}
	scope, err := scopeOf(strings.TrimPrefix(name, "r"))
	if err != nil {
		return &CorruptError{Key: []byte(rowUse + name), Err: err}
	}
	return x.put(x.line.usedScope(scope, &s))
}

// writeNamed writes what a row says of a host or group, if it says anything. One that
// is dormant is no member of a group any more unless something else is known of it.
func (x *exporter) writeNamed(section byte, entry []byte, dormant bool) error {
	n, k := binary.Uvarint(entry)
	name, value := entry[k:k+int(n)], entry[k+int(n):]
	if section == sectionGroup {
		s, err := decodeGroup(string(name), value)
		if err != nil {
			return err
		}
		if s.due <= max(x.moment, x.held) {
			s.due = 0
		}
		if s == (groupState{}) {
			return nil
		}
		return x.put(x.line.group(name, &s))
	}
	s, err := decodeHost(string(name), value)
	if err != nil {
		return err
	}
	x.present(string(name), &s)
	if rest := s; dormant && !s.assigned {
		if rest.group = ""; rest == (hostState{}) {
			return nil
		}
	}
	if s == (hostState{}) {
		return nil
	}
	return x.put(x.line.host(name, &s))
}

// present leaves of what a row says of a host what still counts.
func (x *exporter) present(name string, s *hostState) {
	f := x.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heldFrom != notHeld { // the store was opened after a crash
		if at := wallMillis(f.wall(max(f.core.hold, f.heldGap(s), f.hold(name)))); at > s.due {
			s.due, s.why = at, whyReopened
		}
	}
	if s.due <= max(x.moment, x.held) { // the header tells of the time that holds for all
		s.due, s.why = 0, whyNone
	} else if s.why == whyNone { // as of a host that is being contacted
		s.why = whyDelay
	}
	if s.free <= max(x.moment, x.held) || !s.why.forgettable() {
		s.free = 0 // or it is due
	}
	if !f.controls.counts(name, f.date(millisTime(s.used.since)), f.date(millisTime(x.moment))) {
		s.used = usageState{}
	}
	if t := f.stateTrouble(s); t.over() || t.until() <= f.owed(millisTime(x.moment)) {
		s.trouble, s.quiet, s.free = trouble{}, 0, 0
	}
	if s.group == "" || *s != (hostState{group: s.group}) {
		return
	}
	if h := f.core.lookup(f.hostHash(name), name); h == 0 || f.core.rests(h) {
		s.group = "" // it belongs to none when it comes back
	}
}

// rests reports whether a host has no URLs and no leases.
func (c *core) rests(id uint32) bool {
	switch h := c.hosts.at(id); h.place {
	case nowhere, idling, departing:
		return h.waiting == 0 && h.scheduled == 0 && c.firstLease(id) == 0
	}
	return false
}

func (x *exporter) writeURL(key, value []byte) error {
	b, err := decodeBody(value)
	if err != nil {
		return &CorruptError{Err: err}
	}
	tail := key[len(key)-urlTail:]
	due := int64(0)
	if tail[5] == 1 {
		due = int64(binary.BigEndian.Uint64(tail[6:]) ^ 1<<63)
	}
	return x.put(x.line.url(&b, binary.BigEndian.Uint32(tail), ^tail[4], due))
}

func keyBytes(key [2]uint64) (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], key[0])
	binary.LittleEndian.PutUint64(b[8:], key[1])
	return b
}
