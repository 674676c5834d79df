// This file writes the lines of an export: one function for each kind.

package dump

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/storage"
)

// version is the version of the format.
const version = 1

// lineWriter builds one line. Members with their zero value are left out.
type lineWriter struct{ b []byte }

// begin starts a line; end ends it.
func (l *lineWriter) begin() { l.b = append(l.b[:0], '{') }

func (l *lineWriter) end() []byte {
	l.b = append(l.b, '}', '\n')
	return l.b
}

func (l *lineWriter) name(name string) {
	if l.b[len(l.b)-1] != '{' {
		l.b = append(l.b, ',')
	}
	l.b = append(l.b, '"')
	l.b = append(l.b, name...)
	l.b = append(l.b, '"', ':')
}

// text writes a string under name; if it is not UTF-8, in base64 under name and "64".
func (l *lineWriter) text(name string, s []byte) {
	if utf8.Valid(s) {
		l.name(name)
		l.b = appendQuoted(l.b, s)
		return
	}
	l.binary(name+"64", s)
}

func (l *lineWriter) word(name, s string) {
	l.name(name)
	l.b = appendQuoted(l.b, bytesOf(s))
}

func (l *lineWriter) binary(name string, p []byte) {
	l.name(name)
	l.b = append(l.b, '"')
	l.b = base64.StdEncoding.AppendEncode(l.b, p)
	l.b = append(l.b, '"')
}

func (l *lineWriter) integer(name string, n int64) {
	if n != 0 {
		l.name(name)
		l.b = strconv.AppendInt(l.b, n, 10)
	}
}

func (l *lineWriter) float(name string, x float64) {
	switch {
	case x == 0 && !math.Signbit(x):
	case math.IsNaN(x) || math.IsInf(x, 0):
		l.word(name, strconv.FormatFloat(x, 'g', -1, 64))
	default:
		l.name(name)
		l.b = strconv.AppendFloat(l.b, x, 'g', -1, 64)
	}
}

// time writes Unix milliseconds.
func (l *lineWriter) time(name string, ms int64) {
	if ms == 0 {
		return
	}
	l.name(name)
	if t := time.UnixMilli(ms).UTC(); t.Year() >= 0 && t.Year() <= 9999 {
		l.b = append(l.b, '"')
		l.b = t.AppendFormat(l.b, timeFormat)
		l.b = append(l.b, '"')
		return
	}
	l.b = strconv.AppendInt(l.b, ms, 10)
}

const timeFormat = "2006-01-02T15:04:05.000Z"

func (l *lineWriter) duration(name string, d time.Duration) {
	if d != 0 {
		l.word(name, d.String())
	}
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s, which is UTF-8, as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		if c >= ' ' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[from:]...), '"')
}

// header is the first line.
func (l *lineWriter) header(h Header) []byte {
	l.begin()
	l.integer("frontier", version)
	l.time("time", h.Moment)
	k := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, h.Key[0]), h.Key[1])
	l.word("key", hex.EncodeToString(k))
	l.time("held", h.Held)
	return l.end()
}

// trailer returns the last line; lines is the number of lines before it.
func (l *lineWriter) trailer(lines int64) []byte {
	l.begin()
	l.name("end")
	l.b = strconv.AppendInt(l.b, lines, 10)
	return l.end()
}

// crawl returns the line with the settings of a crawl.
func (l *lineWriter) crawl(s *row.Crawl) []byte {
	l.begin()
	l.name("settings")
	l.b = strconv.AppendUint(l.b, uint64(s.ID), 10)
	if s.Weight != 1 {
		l.integer("weight", int64(s.Weight))
	}
	if s.Paused {
		l.word("paused", "on")
	}
	l.limits("limits", &s.Limits)
	return l.end()
}

// limits writes an object of the nonzero limits.
func (l *lineWriter) limits(name string, x *row.Limits) {
	if *x == (row.Limits{}) {
		return
	}
	l.name(name)
	l.b = append(l.b, '{')
	l.integer("waiting", x.Waiting)
	l.integer("served", x.Served)
	l.integer("bytes", x.Bytes)
	l.integer("errors", x.Errors)
	l.integer("depth", int64(x.Depth))
	l.duration("period", x.Period)
	l.b = append(l.b, '}')
}

// counts writes the use of limits.
func (l *lineWriter) counts(s *row.Usage) {
	if *s == (row.Usage{}) {
		return
	}
	l.name("counts")
	l.b = append(l.b, '{')
	l.time("since", s.Since)
	l.integer("served", s.Served)
	l.integer("bytes", s.Bytes)
	l.integer("errors", s.Errors)
	l.b = append(l.b, '}')
}

// usedByCrawl and usedByScope return lines with the use of the limits of a crawl or a scope.
func (l *lineWriter) usedByCrawl(id uint32, s *row.Usage) []byte {
	l.begin()
	l.word("used", "crawl")
	l.integer("crawl", int64(id))
	l.counts(s)
	return l.end()
}

func (l *lineWriter) usedByScope(s row.Scope, x *row.Usage) []byte {
	l.begin()
	l.scope("used", s)
	l.counts(x)
	return l.end()
}

// value is a line of a value of the program's.
func (l *lineWriter) value(key string, v []byte) []byte {
	l.begin()
	l.text("value", bytesOf(key))
	l.binary("data", v)
	return l.end()
}

// forgotten is a line with the number of what was forgotten.
func (l *lineWriter) forgotten(x *row.Forgotten) []byte {
	l.begin()
	l.scope("forgotten", x.Scope)
	if x.OfCrawl {
		l.name("within")
		l.b = strconv.AppendUint(l.b, uint64(x.Crawl), 10)
	}
	l.integer("number", int64(x.Number))
	return l.end()
}

// scope writes the kind of a scope under a name, and the scope's name.
func (l *lineWriter) scope(name string, s row.Scope) {
	switch {
	case !s.Named:
		l.word(name, "all")
		return
	case s.Domain:
		l.word(name, "domain")
	default:
		l.word(name, "host")
	}
	l.text("name", bytesOf(s.Name))
}

// delay writes one of the shipped policies: {"fixed":"5s"} or
// {"factor":10,"min":"1s","max":"30s"}.
func (l *lineWriter) delay(name string, d row.Delay) {
	if d.Kind == row.NoDelay {
		return
	}
	l.name(name)
	l.b = append(l.b, '{')
	switch d.Kind {
	case row.Fixed:
		l.word("fixed", d.Max.String())
	case row.Factor:
		l.name("factor")
		l.b = strconv.AppendFloat(l.b, d.Factor, 'g', -1, 64)
		l.duration("min", d.Min)
		l.duration("max", d.Max)
	}
	l.b = append(l.b, '}')
}

// group returns the line of a group.
func (l *lineWriter) group(name string, s *row.Group) []byte {
	l.begin()
	l.text("group", bytesOf(name))
	l.time("due", s.Due)
	l.delay("delay", s.Delay)
	l.integer("concurrency", int64(s.Concurrency))
	return l.end()
}

// host returns the line of a host.
func (l *lineWriter) host(name string, s *row.Host) []byte {
	l.begin()
	l.text("host", bytesOf(name))
	l.time("due", s.Due)
	if s.Why != 0 {
		l.word("why", clocks[s.Why])
	}
	l.duration("crawlDelay", time.Duration(s.CrawlDelay)*time.Millisecond)
	if s.Group != "" {
		l.text("joined", bytesOf(s.Group))
		if s.Assigned {
			l.integer("assigned", 1)
		}
	}
	if t := &s.Trouble; *t != (row.Trouble{}) {
		l.name("trouble")
		l.b = append(l.b, '{')
		l.time("failed", t.Quiet)
		l.time("free", t.Free)
		l.integer("failures", int64(t.Fails))
		l.integer("step", int64(t.Step))
		l.integer("from", int64(t.From))
		l.integer("search", int64(t.Search))
		l.integer("relapses", int64(t.Relapses))
		if t.Eased {
			l.name("eased")
			l.b = append(l.b, "true"...)
		}
		l.integer("lanes", int64(t.Lanes))
		l.integer("usual", int64(t.Usual))
		l.integer("probes", int64(t.Probes))
		if t.Failure != 0 {
			l.word("failure", Failures[t.Failure])
		}
		l.b = append(l.b, '}')
	}
	l.counts(&s.Used)
	return l.end()
}

// clocks are the names of the values of row.Host.Why; the first is left out.
var clocks = [row.Clocks]string{"", "delay", "crawl-delay", "retry-after", "back-off", "quarantine", "reopened"}

// Failures are the names of the values of row.Trouble.Failure.
var Failures = [row.Failures]string{"other", "dns", "connect", "timeout", "server", "unavailable", "too many requests"}

// Results are the names of the values of URL.Last; the first is left out.
var Results = [...]string{"visited", "changed", "unchanged", "gone", "failed", "denied"}

// url is a line of a URL.
func (l *lineWriter) url(u *URL) []byte {
	l.begin()
	l.text("url", bytesOf(u.URL))
	if u.Host != "" {
		l.text("host", bytesOf(u.Host))
	}
	l.integer("crawl", int64(u.Crawl))
	l.integer("priority", int64(u.Priority))
	l.integer("depth", int64(u.Depth))
	l.float("weight", u.Weight)
	if u.Due == instant.KeptMillis {
		l.integer("finished", 1)
	} else {
		l.time("due", u.Due)
	}
	l.integer("fails", int64(u.Fails))
	if u.Last != 0 {
		l.word("last", Results[u.Last])
	}
	l.integer("visits", int64(u.Visits))
	l.integer("changes", int64(u.Changes))
	l.time("firstVisit", u.FirstVisit)
	l.time("lastVisit", u.LastVisit)
	l.time("lastChange", u.LastChange)
	l.time("lastModified", u.LastModified)
	if u.State != [12]byte{} {
		l.binary("state", u.State[:])
	}
	if len(u.Meta) > 0 {
		l.binary("meta", u.Meta)
	}
	return l.end()
}

// marks is a line of marks of URLs that are known.
func (l *lineWriter) marks(ms []storage.Mark) []byte {
	l.begin()
	l.name("marks")
	l.b = append(l.b, '"')
	for i := range ms { // 12 bytes are 16 characters
		l.b = base64.StdEncoding.AppendEncode(l.b, ms[i][:])
	}
	l.b = append(l.b, '"')
	return l.end()
}

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
