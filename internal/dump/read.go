package dump

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/jsonl"
	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/urllist"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	maxLine   = 1 << 20 // bytes
	malformed = 80      // bytes of a malformed line that are reported
)

// Reader passes the content of the lines of an export, or of a plain list of URLs, to a Sink.
type Reader struct {
	Sink  Sink
	Lines int64 // read so far

	header bool // there was one: it is an export
	ended  bool // its last line was read

	in    jsonl.Scanner
	line  line
	url   URL
	marks []storage.Mark
}

// Read reads all lines. An error is no line's fault.
func (r *Reader) Read(ctx context.Context, from io.Reader) error {
	br := bufio.NewReaderSize(urllist.NewReader(from), 64<<10)
	var buf []byte
	for {
		line, long, err := readLine(br, buf[:0])
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("frontier: import: %w", err)
		}
		if len(line) > 0 || err == nil {
			r.Lines++
			if err := r.take(line, long); err != nil {
				return err
			}
		}
		if err != nil {
			break
		}
		buf = line
		if r.Lines%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if r.header && !r.ended {
		r.Sink.Malformed(r.Lines, "", fmt.Errorf("the export was cut off: its last line is missing: %w", io.ErrUnexpectedEOF))
	}
	return nil
}

// readLine reads a line into buf, without its end. It reads only the beginning of a line that is
// too long, and skips the rest.
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

// take processes a line. It returns only errors that the line did not cause.
func (r *Reader) take(line []byte, long bool) error {
	text := bytes.TrimSpace(line)
	var err error
	switch {
	case long:
		err = fmt.Errorf("longer than %d bytes", maxLine)
	case len(text) == 0:
	case r.ended && bytes.HasPrefix(text, []byte(`{"frontier":`)):
		err = Stop(fmt.Errorf("frontier: import: line %d begins another export: import each by itself, or all into a fleet or through a router with the same parts", r.Lines))
	case r.ended:
		err = errors.New("comes after the export's last line")
	case len(text) > 0 && text[0] == '{':
		err = r.json(text)
	case r.header:
		err = errors.New("not a line of an export")
	default:
		var url []byte
		if url, err = urllist.URL(text); len(url) > 0 {
			err = r.Sink.Listed(string(url))
		}
	}
	if ours := Stopped(err); ours != nil {
		return ours
	}
	if err != nil {
		r.Sink.Malformed(r.Lines, string(line[:min(len(line), malformed)]), err)
	}
	return nil
}

// json processes a line of JSON.
func (r *Reader) json(text []byte) error {
	l := &r.line
	*l = line{}
	if err := r.in.Line(text, l); err != nil {
		return err
	}
	kinds := []struct {
		is bool
		do func(*Reader, *line) error
	}{
		{l.Frontier != nil, (*Reader).headerLine},
		{l.End != nil, (*Reader).endLine},
		{l.Settings != nil, (*Reader).crawlLine},
		{l.Rule != nil, (*Reader).ruleLine},
		{l.Used != nil, (*Reader).usedLine},
		{l.Value != nil || l.Value64 != nil, (*Reader).valueLine},
		{l.Forgotten != nil, (*Reader).forgottenLine},
		{l.Group != nil || l.Group64 != nil, (*Reader).groupLine},
		{(l.Host != nil || l.Host64 != nil) && !l.hasURL(), (*Reader).hostLine},
		{l.hasURL(), (*Reader).urlLine},
		{l.Marks != nil, (*Reader).marksLine},
	}
	var do func(*Reader, *line) error
	for _, k := range kinds {
		if k.is && do != nil {
			return errors.New("line of several kinds")
		}
		if k.is {
			do = k.do
		}
	}
	if do == nil {
		return errors.New("line of no kind")
	}
	return do(r, l)
}

func (r *Reader) headerLine(l *line) error {
	if r.Lines != 1 {
		return errors.New("header is not the first line")
	}
	if *l.Frontier > version {
		return Stop(fmt.Errorf("frontier: import: the export has version %d, this program knows %d: %w", *l.Frontier, version, storage.ErrVersion))
	}
	if *l.Frontier < 1 {
		return fmt.Errorf("version is %d", *l.Frontier)
	}
	key, err := hex.DecodeString(l.Key)
	if err != nil || len(key) != 16 {
		return errors.New("key: want 32 hexadecimal digits")
	}
	r.header = true
	return r.Sink.Header(Header{
		Moment: int64(l.Time), Held: int64(l.Held),
		Key: [2]uint64{binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])},
	})
}

func (r *Reader) endLine(l *line) error {
	switch {
	case !r.header:
		return errors.New("end without a header")
	case *l.End != r.Lines-1:
		r.ended = true
		return fmt.Errorf("%d lines come before it; there were %d", r.Lines-1, *l.End)
	}
	r.ended = true
	return nil
}

func (r *Reader) crawlLine(l *line) error {
	c := row.Crawl{ID: *l.Settings, CrawlSettings: row.CrawlSettings{Weight: int(l.Weight), Limits: l.Limits}}
	if lineFloat(c.Weight) != l.Weight || c.Weight < 0 || c.Weight > row.MaxWeight {
		return fmt.Errorf("weight is %v; want 1 to %d", l.Weight, row.MaxWeight)
	}
	switch l.Paused {
	case "", "off":
	case "on":
		c.Paused = true
	default:
		return fmt.Errorf("paused is %q; want on or off", l.Paused)
	}
	return r.Sink.Crawl(&c)
}

// scope returns the scope of a line, which must be of the given kind.
func (l *line) scope(member, kind string) (row.Scope, error) {
	if kind == "all" {
		return row.Scope{}, nil
	}
	name, err := either("name", l.Name, l.Name64)
	if err != nil {
		return row.Scope{}, err
	}
	s := row.Scope{Name: name, Named: true, Domain: kind == "domain"}
	if kind != "host" && kind != "domain" {
		return s, fmt.Errorf("%s is %q; want all, domain or host", member, kind)
	}
	return s, s.Check()
}

// usedLine processes the use of the limits of a scope or crawl.
func (r *Reader) usedLine(l *line) error {
	u, err := l.Counts.usage()
	if err != nil {
		return err
	}
	if *l.Used == "crawl" {
		return r.Sink.UsedByCrawl(l.Crawl, u)
	}
	s, err := l.scope("used", *l.Used)
	if err != nil {
		return err
	}
	return r.Sink.UsedByScope(s, u)
}

func (r *Reader) valueLine(l *line) error {
	key, err := either("value", l.Value, l.Value64)
	if err == nil {
		err = row.CheckValue(key, l.Data)
	}
	if err == nil && l.Data == nil {
		err = errors.New("has no data")
	}
	if err != nil {
		return err
	}
	return r.Sink.Value(key, l.Data)
}

func (r *Reader) forgottenLine(l *line) error {
	s, err := l.scope("forgotten", *l.Forgotten)
	if err != nil {
		return err
	}
	x := row.Forgotten{Number: l.Number, Scope: s}
	if l.Within != nil {
		x.OfCrawl, x.Crawl = true, *l.Within
	}
	switch err := x.Check(); {
	case err != nil:
		return err
	case !r.header:
		return errors.New("forgotten without a header that has the key of marks")
	}
	return r.Sink.Forgotten(&x)
}

func (r *Reader) groupLine(l *line) error {
	name, err := either("group", l.Group, l.Group64)
	if err != nil {
		return err
	}
	g := row.Group{Due: int64(l.Due), Concurrency: l.Concurrency}
	g.Delay, err = l.Delay.policy()
	if err := errors.Join(row.CheckGroup(name), err); err != nil {
		return err
	}
	return r.Sink.Group(name, &g)
}

func (r *Reader) hostLine(l *line) error {
	name, err := either("host", l.Host, l.Host64)
	if err != nil {
		return err
	}
	h, err := l.host()
	if err != nil {
		return err
	}
	return r.Sink.Host(name, &h)
}

// host returns the content of a host's line.
func (l *line) host() (h row.Host, err error) {
	h.Due = int64(l.Due)
	clock := slices.Index(clocks[:], l.Why)
	if clock < 0 {
		return h, fmt.Errorf("why is %q; want one of %q", l.Why, clocks[1:])
	}
	h.Why = uint8(clock)
	if l.Trouble != nil {
		if h.Trouble, err = l.Trouble.trouble(); err != nil {
			return h, err
		}
	}
	if h.Standing = int8(l.Standing); int(h.Standing) != l.Standing || l.Standing < -row.MaxPriorities || l.Standing > row.MaxPriorities {
		return h, fmt.Errorf("standing is %d; want %d to %d", l.Standing, -row.MaxPriorities, row.MaxPriorities)
	}
	if l.Joined != nil || l.Joined64 != nil {
		if h.Group, err = either("joined", l.Joined, l.Joined64); err == nil {
			err = row.CheckGroup(h.Group)
			h.Assigned = l.Assigned == 1
		}
	}
	if d := l.CrawlDelay; d < 0 || d > row.MaxCrawlDelay {
		err = errors.Join(err, fmt.Errorf("crawlDelay is %v; want 0 to %v", d, row.MaxCrawlDelay))
	}
	used, uerr := l.Counts.usage()
	h.Used, err = used, errors.Join(err, uerr)
	h.CrawlDelay = int32((l.CrawlDelay + time.Millisecond - 1) / time.Millisecond)
	return h, err
}

func (l *line) hasURL() bool { return l.URL != "" || l.URL64 != nil }

func (r *Reader) urlLine(l *line) error {
	text, host := &l.URL, ""
	if l.URL == "" {
		text = nil
	}
	url, err := either("url", text, l.URL64)
	if err != nil {
		return err
	}
	if l.Host != nil || l.Host64 != nil {
		if host, err = either("host", l.Host, l.Host64); err != nil {
			return err
		}
		if err := hostkey.Check(host); err != nil {
			return err
		}
	}
	for _, n := range [...]int{l.Fails, l.Visits, l.Changes} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("a count is %d; want 0 to %d", n, math.MaxInt32)
		}
	}
	last := max(0, slices.Index(Results[:], l.Last))
	if l.Last != "" && l.Last != Results[last] {
		return fmt.Errorf("last is %q; want a result, visited to denied", l.Last)
	}
	u := &r.url
	*u = URL{
		URL: url, Host: host, Crawl: l.Crawl, Priority: l.Priority, Depth: l.Depth, Weight: float64(l.Weight), Due: int64(l.Due),
		Fails: l.Fails, Meta: l.Meta,
		History: record.History{
			Visits: l.Visits, Changes: l.Changes, Last: uint8(last),
			FirstVisit: int64(l.FirstVisit), LastVisit: int64(l.LastVisit), LastChange: int64(l.LastChange), LastModified: int64(l.LastModified),
		},
	}
	if n := len(l.State); n != 0 && n != len(u.State) {
		return fmt.Errorf("state has %d bytes; want %d", n, len(u.State))
	}
	switch {
	case l.Finished < 0 || l.Finished > 1:
		return fmt.Errorf("finished is %d; want 1", l.Finished)
	case l.Finished == 1 && l.Due != 0:
		return errors.New("has both due and finished")
	case l.Finished == 1:
		u.Due = instant.KeptMillis
	case u.Due == instant.KeptMillis:
		return errors.New("due is out of range")
	}
	copy(u.State[:], l.State)
	return r.Sink.URL(u)
}

func (r *Reader) marksLine(l *line) error {
	b, err := base64.StdEncoding.DecodeString(*l.Marks)
	switch {
	case err != nil:
		return err
	case !r.header:
		return errors.New("marks without a header that has their key")
	case len(b)%len(storage.Mark{}) != 0:
		return fmt.Errorf("%d bytes of marks; want 12 for each", len(b))
	}
	r.marks = r.marks[:0]
	for ; len(b) > 0; b = b[len(storage.Mark{}):] {
		r.marks = append(r.marks, storage.Mark(b[:len(storage.Mark{})]))
	}
	return r.Sink.Marks(r.marks)
}
